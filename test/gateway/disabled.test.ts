// A server that needs a variable without a value is missing, and says so; the others work.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { connectTo, textOf } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import { statefulServer } from "./support/servers.ts";

const mcpServers = {
  github: { command: "github-server", env: { TOKEN: "${NOT_SET_HERE}" } },
  child: statefulServer(),
};
const reason = "a variable it needs is not set: set NOT_SET_HERE, or write ${NOT_SET_HERE:-}";

test("the other servers run, and status, log and lists name the one that is disabled", async () => {
  await using at = await startTestGateway({ mcpServers });
  await using client = await connectTo(at.url);
  expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
  expect(at.gateway.status()).toEqual([
    expect.objectContaining({ name: "child", status: "up" }),
    { name: "github", status: "disabled", tools: 0, resources: 0, prompts: 0, trouble: reason },
  ]);
  expect(at.log.filter(({ facts }) => facts["server"] === "github")).toEqual([
    { level: "warn", facts: { server: "github", reason }, text: "github is disabled" },
  ]);
  // Callers are not told which variables the gateway lacks.
  expect(await metaOf(at.url)).toEqual({
    github: { status: "disabled", reason: "a variable it needs is not set", isListed: false },
  });
});

test("it is up once the config needs no such variable, and is logged as disabled once", async () => {
  const env = { TOKEN_OF_CHILD: "a token for the child" };
  const child = { ...statefulServer([], { WHO: "${TOKEN_OF_CHILD}" }) };
  const late = { ...statefulServer([], { WHO: "${NOT_SET_HERE}" }) };
  await using at = await startTestGateway({ mcpServers: { child, late } }, { env });
  await at.gateway.update({ mcpServers: { child, late } });
  expect(at.log.filter(({ text }) => text === "late is disabled")).toHaveLength(1);
  await at.gateway.update({ mcpServers: { child, late: statefulServer() } });
  expect(at.gateway.status()).toMatchObject([
    { name: "child", status: "up" },
    { name: "late", status: "up" },
  ]);
  expect(await metaOf(at.url)).toBeUndefined();
  expect(at.pidsOf("child")).toHaveLength(1);
});

test("a caller that may use nothing of it does not see it", async () => {
  const key = "0123456789abcdef-bob";
  const sha256 = createHash("sha256").update(key).digest("hex");
  await using at = await startTestGateway({
    mcpServers,
    junctor: { keys: { bob: { sha256, allow: ["child__*"] } } },
  });
  expect(await metaOf(at.url, { authorization: `Bearer ${key}` })).toBeUndefined();
});

async function metaOf(url: string, headers: { readonly [name: string]: string } = {}): Promise<unknown> {
  await using client = await connect(new URL(url), { headers });
  const result = await client.request("tools/list", {});
  const { _meta } = result as { readonly _meta?: { readonly [key: string]: unknown } };
  return _meta?.["junctor/servers"];
}
