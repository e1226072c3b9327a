// The limit for clients: undici, one stringify and one parse. No schema, no deadline, no record, no streams.

import { Pool } from "undici";
import { serveTurns, url } from "./serve-turns.mjs";

const pool = new Pool(url.origin, { connections: 32, pipelining: 1 });
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "echo",
};
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
};
let lastId = 0;

serveTurns(async (message) => {
  const id = ++lastId;
  const params = { name: "echo", arguments: { message }, _meta };
  const answer = await pool.request({
    path: url.pathname,
    method: "POST",
    headers,
    body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
  });
  const body = /** @type {{ id: number, result: { content: { text: string }[] } }} */ (
    await answer.body.json()
  );
  return body.id === id ? body.result.content[0]?.text : undefined;
});
