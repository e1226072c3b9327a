// What `junctor check` says of a process that asks its callers questions and is shared by several.
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { cacheFolder } from "../../packages/junctor/src/config/user-files.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { startUpstream } from "../bridge/support/upstream.ts";
import { makeConfigFolder } from "../support/config-file.ts";
import { junctor } from "../support/junctor-bin.ts";

const keys = { ada: { sha256: "ab".repeat(32) }, bob: { sha256: "cd".repeat(32) } };

test("a shared process that asked a caller something is a warning where there are several keys", async () => {
  await using upstream = await startUpstream("legacy", "stdio");
  await using folder = await makeConfigFolder();
  const mcpServers = { up: upstream.entry };
  const check = async (config: object): Promise<readonly { readonly path: string }[]> => {
    const { stdout } = await junctor(["check", "--config", await folder.write(config), "--json"]);
    return (JSON.parse(stdout) as { readonly warnings: readonly { readonly path: string }[] }).warnings;
  };
  expect(await check({ mcpServers, junctor: { keys } })).toEqual([]);

  // As `junctor serve` does it.
  const gateway = await createGateway({ mcpServers }, { memoryFolder: join(cacheFolder(), "lists") });
  await using client = await connect(
    { server: gateway.server },
    { handlers: { elicit: () => ({ action: "accept", content: { nonce: "x" } }) } },
  );
  await client.callTool("up__ask", { nonce: "x", rounds: [["form"]] });
  await gateway[Symbol.asyncDispose]();

  expect(await check({ mcpServers, junctor: { keys } })).toEqual([
    {
      path: "junctor.servers.up.sharing",
      message:
        'up asks its callers questions, and all of them share its process, so a call may wait until another caller has answered: write "perSession" to give each caller its own',
    },
  ]);
  expect(await check({ mcpServers, junctor: { keys: { ada: keys.ada } } })).toEqual([]);
  const perSession = { up: { sharing: "perSession" } };
  expect(await check({ mcpServers, junctor: { keys, servers: perSession } })).toEqual([]);
});
