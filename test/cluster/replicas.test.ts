import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { AskParams } from "../../packages/core/src/mcp/question.ts";
import { drainReplica } from "../../packages/junctor/src/cli/serve/serve-cluster.ts";
import { fixture, startUpstream } from "../bridge/support/upstream.ts";
import { startReplicas } from "./support/replicas.ts";
import { createToldServer } from "./support/servers.ts";

const counting = { command: process.execPath, args: [fixture("bridge-counting.mjs")] };
const handlers = {
  elicit: ({ message }: AskParams) => ({
    action: "accept" as const,
    content: { name: "Ada", nonce: String(message).split(" ").at(-1) ?? "" },
  }),
};

for (const kind of ["socket", "tls"])
  for (const revision of ["2025-11-25", "2026-07-28"] as const)
    test(`a shared stdio server is one process for three replicas (${kind}, ${revision})`, async () => {
      await using replicas = await startReplicas(3, { mcpServers: { counting } }, kind);
      await using client = await connect(replicas.url, { revision, handlers, eras: createEraCache() });
      const seen: { count: number; pid: number; answer: { content: unknown } }[] = [];
      for (let call = 0; call < 6; call++) {
        const { content } = await client.callTool("counting__visit", { kind: "form", who: "ada" });
        seen.push(JSON.parse((content[0] as { text: string }).text) as (typeof seen)[0]);
      }
      expect(seen.map(({ count }) => count)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(new Set(seen.map(({ pid }) => pid)).size).toBe(1);
      expect(seen[0]?.answer.content).toMatchObject({ name: "Ada" });
    });

for (const revision of ["2025-11-25", "2026-07-28"] as const)
  test(`a call of a legacy server over HTTP that asks ends whichever replica is reached (${revision})`, async () => {
    await using upstream = await startUpstream("legacy", "http");
    await using replicas = await startReplicas(3, { mcpServers: { asking: upstream.entry } });
    await using client = await connect(replicas.url, { revision, handlers, eras: createEraCache() });
    for (let call = 0; call < 20; call++) {
      const nonce = `n${call}`;
      const { content } = await client.callTool("asking__ask", { nonce, rounds: [["form"], ["form"]] });
      const answers = JSON.parse((content[0] as { text: string }).text) as { content: unknown }[][];
      expect(answers.flat().map((answer) => answer.content)).toMatchObject([{ nonce }, { nonce }]);
    }
    expect(upstream.count("asked")).toBe(40);
    expect(upstream.count("answered")).toBe(40);
  });

test("a replica that leaves lets the calls end that others have passed on to its server", async () => {
  using told = createToldServer("legacy");
  await using replicas = await startReplicas(2, { mcpServers: { up: told.entry } });
  const [owner, other] = replicas.replicas;
  await using client = await connect(other!.url, { revision: "2026-07-28", eras: createEraCache() });
  const call = client.callTool("up__recite", { nonce: "n" });
  await expect.poll(() => told.count("run", "n")).toBe(1);
  const order: string[] = [];
  const { cluster, gateway, listener } = owner!;
  const left = drainReplica(cluster, { gateway, listener, drainMs: 0 }).then(() => order.push("left"));
  await client.callTool("up__echo", { nonce: "n" });
  // It stays until the call has ended.
  expect(order).toEqual([]);
  told.tell("go", "n");
  await call;
  await left;
  expect(order).toEqual(["left"]);
});
