// A server at which each caller has an account of its own, behind several replicas.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { createMemoryStore } from "../../packages/client/src/sign-in/credential.ts";
import { connectAs, keys, namesOf, startStage } from "../accounts/stage.ts";
import { until } from "../support/until.ts";
import { startReplicas } from "./support/replicas.ts";

test("a call that is parked at the account of its caller comes back by any replica", async () => {
  const credentials = createMemoryStore();
  const { config, ...stage } = await startStage({ store: credentials, server: { asks: true } });
  await connectAs({ config, ...stage }, "ada", "a1");
  const { mcpServers, junctor } = config;
  const sha256 = createHash("sha256").update(keys.ada).digest("hex");
  const shared = { mcpServers, junctor: { servers: junctor["servers"], keys: { ada: { sha256 } } } };
  await using replicas = await startReplicas(3, shared, "socket", { credentials });
  const elicit = () => ({ action: "accept" as const, content: { name: "Ada" } });
  await using client = await connect(replicas.url, {
    revision: "2026-07-28",
    headers: { authorization: `Bearer ${keys.ada}` },
    handlers: { elicit },
    eras: createEraCache(),
  });
  await until(async () => (await namesOf(client)).includes("safe__greet"));
  for (let call = 0; call < 4; call++)
    expect(await client.callTool("safe__greet")).toMatchObject({ content: [{ text: "Ada of a1" }] });
});
