// A log at `warn` has one line for each cause, whatever its server goes on doing.
import { expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { type GatewayLog, silentLog } from "../../packages/junctor/src/log/log.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";

test("servers that fail, flap and write nonsense for minutes are warned of once for each cause", async () => {
  const clock = createVirtualClock(1_000_000);
  const warnings: string[] = [];
  const others: string[] = [];
  const log: GatewayLog = {
    ...silentLog,
    isLevelEnabled: () => true,
    debug: (_, text) => void others.push(text),
    info: (_, text) => void others.push(text),
    warn: (_, text) => void warnings.push(text),
  };
  const node = (script: string): object => ({ command: process.execPath, args: ["-e", script] });
  const answers =
    `process.stdin.on("data", (data) => { for (const line of String(data).trim().split("\\n")) {` +
    ` const { id, method } = JSON.parse(line); if (id === undefined) continue;` +
    ` console.log("reading message " + Date.now());` +
    ` const result = method === "initialize" ? { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "x", version: "1" } } : {};` +
    ` console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));` +
    ` console.log(JSON.stringify({ jsonrpc: "2.0", id: 1000 + id, result }).slice(0, -2)); } });`;
  const mcpServers = {
    crash: node("console.error('API token expired (401)'); process.exit(1)"),
    absent: { command: "/nowhere/to/be/found" },
    refused: { url: "http://127.0.0.1:9/mcp" },
    nonsense: node(answers),
  };
  await using gateway = await createGateway({ mcpServers }, { log, clock });
  const triesOf = (server: string): number =>
    others.filter((text) => text.startsWith(`${server} is still down`)).length;
  await expect
    .poll(async () => {
      // Time stands still while a process starts.
      const isStarting = gateway.status().some(({ status }) => status === "starting");
      if (!isStarting) await clock.advance(1000);
      return Math.min(triesOf("crash"), triesOf("absent"), triesOf("refused"));
    })
    .toBeGreaterThanOrEqual(8);
  expect(new Set(warnings).size).toBe(warnings.length);
  expect(warnings.map((text) => text.replace(/:.*/, "")).toSorted()).toEqual([
    "The server sent an answer that cannot be read, and its call is not known",
    "absent is down",
    "crash is down",
    "nonsense writes other text than MCP messages to its standard output",
    "refused is down",
  ]);
});
