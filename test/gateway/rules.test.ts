// Rules of a config that match nothing are told in the log, once the servers they are about are listed.
import { expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { type GatewayLog, silentLog } from "../../packages/junctor/src/log/log.ts";

test("a rule that matches nothing is reported in one warning", async () => {
  const warnings: string[] = [];
  const log: GatewayLog = {
    ...silentLog,
    isLevelEnabled: () => true,
    warn: (_facts, text) => void warnings.push(text),
  };
  const config = (deny: readonly string[]): object => ({
    mcpServers: { demo: { command: "unused" } },
    junctor: { deny, servers: { demo: { deny: ["ecoh"], tools: { add: { name: "plus" } } } } },
  });
  const registry = createDemoRegistry();
  await using gateway = await createGateway(config(["plus", "demo__archive"]), {
    local: { demo: registry },
    log,
  });
  await gateway.ready;
  const told = [
    'junctor.servers.demo.deny: "ecoh" matches none of its tools: did you mean echo?',
    'junctor.deny: "demo__archive" matches nothing that a server lists: correct or remove it',
  ];
  await expect.poll(() => warnings).toEqual(told);
  await gateway.update(config(["demo__archive", "puls"]));
  await expect
    .poll(() => warnings)
    .toEqual([...told, 'junctor.deny: "puls" matches nothing that a server lists: did you mean plus?']);
});
