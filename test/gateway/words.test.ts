// What the process of a server writes besides messages is told to those who run the gateway, not to callers.
import { expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { type GatewayLog, silentLog } from "../../packages/junctor/src/log/log.ts";
import { cliServer } from "../support/config-file.ts";

const secret = "s3cret-s3cret";

test("a server that hangs shows what it wrote so far, also to its standard output, without secrets", async () => {
  const warnings: object[] = [];
  const log: GatewayLog = {
    ...silentLog,
    isLevelEnabled: () => true,
    warn: (facts, text) => void warnings.push({ ...facts, text }),
  };
  const told = { silent: "all", stderr: `waiting for ${secret}`, stdout: `Listening as ${secret}` };
  const mcpServers = { a: { ...cliServer(told), env: { KEY: secret } } };
  await using gateway = await createGateway({ mcpServers }, { log });
  await expect
    .poll(() => gateway.status())
    .toMatchObject([
      { status: "starting", code: "starting", said: "waiting for [secret]", stray: "Listening as [secret]" },
    ]);
  expect(warnings).toEqual([
    {
      server: "a",
      stdout: "Listening as [secret]",
      text: "a writes other text than MCP messages to its standard output",
    },
  ]);
});

test("a server that ends again and again is reported once for writing other text", async () => {
  const warnings: string[] = [];
  const debugged: string[] = [];
  const log: GatewayLog = {
    ...silentLog,
    isLevelEnabled: () => true,
    debug: (_, text) => void debugged.push(text),
    warn: (_, text) => void warnings.push(text),
  };
  const script = "console.log('Serving'); process.exit(1)";
  const mcpServers = { a: { command: process.execPath, args: ["-e", script] } };
  await using _gateway = await createGateway({ mcpServers }, { log });
  const told = "a writes other text than MCP messages to its standard output";
  await expect.poll(() => debugged.filter((text) => text === told).length).toBeGreaterThanOrEqual(2);
  expect(warnings.filter((text) => text === told)).toHaveLength(1);
});
