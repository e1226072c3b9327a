import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup.mjs";

const capabilitySets = [
  {},
  { elicitation: {} },
  { sampling: {} },
  { roots: {} },
  { elicitation: {}, sampling: {}, roots: {} },
];

/** How many processes a gateway starts of one stdio server for legacy callers with five sets of capabilities. */
export async function measureProcesses() {
  const { createGateway, listenHttp } = await import("../../dist/index.js");
  const folder = mkdtempSync(join(tmpdir(), "junctor-house-"));
  const log = join(folder, "log");
  const args = [join(root, "test/fixtures/bridge-upstream.mjs"), "--serves", "legacy", "--log", log];
  const gateway = await createGateway({ mcpServers: { one: { command: process.execPath, args } } });
  const listener = await listenHttp(gateway.server, { port: 0 });
  try {
    await gateway.ready;
    for (const capabilities of capabilitySets) await useTool(listener.port, capabilities);
    const started = readFileSync(log, "utf8").match(/^start .*/gm);
    const title = "processes of one stdio server, callers with five sets of capabilities";
    return { name: "processes", title, value: started.length, goal: 1, places: started };
  } finally {
    await listener.close();
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function useTool(port, capabilities) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = (message) =>
    fetch(`http://127.0.0.1:${port}/mcp`, {
      method: "POST",
      headers,
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const clientInfo = { name: "house", version: "1.0.0" };
  const params = { protocolVersion: "2025-11-25", capabilities, clientInfo };
  const hello = await post({ id: 0, method: "initialize", params });
  await hello.text();
  headers["mcp-session-id"] = hello.headers.get("mcp-session-id");
  headers["mcp-protocol-version"] = "2025-11-25";
  await (await post({ method: "notifications/initialized" })).text();
  await (await post({ id: 1, method: "tools/list" })).text();
  const call = { name: "one__ask", arguments: { nonce: "n", rounds: [] } };
  const reply = await (await post({ id: 2, method: "tools/call", params: call })).text();
  if (!reply.includes('"content"')) throw new Error(`The call failed: ${reply}`);
}
