// The limit: node:http, one parse and one stringify, no protocol and no checks. A list is the same bytes every time.

import { createServer } from "node:http";
import * as z from "zod";
import { descriptionOf, filler, frames, host, moreTools, port } from "../settings.mjs";

/** @typedef {{ name: string, arguments: { message: string }, _meta?: { progressToken?: number } }} Params */
/** @typedef {{ id?: number, method: string, params: Params }} Message */

const inputSchema = z.toJSONSchema(z.object({ message: z.string() }), { io: "input" });
const tools = ["echo", "stream", "large", ...moreTools].map((name) => ({
  name,
  description: descriptionOf(name),
  inputSchema,
}));
const listed = Buffer.from(JSON.stringify({ tools }).slice(1, -1));
const encoder = new TextEncoder();

createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    const message = /** @type {Message} */ (JSON.parse(String(body)));
    if (message.id === undefined) response.writeHead(202).end();
    else if (message.method === "tools/list") list(response, message.id);
    else if (message.method === "subscriptions/listen") listen(response);
    else if (message.method === "tools/call" && message.params.name === "stream")
      void stream(response, message);
    else echo(response, message);
  });
}).listen(port, host);

/** @param {import("node:http").ServerResponse} response @param {Message} message */
function echo(response, message) {
  const body = JSON.stringify(answerTo(message));
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  response.writeHead(200, headers).end(body);
}

/** @param {import("node:http").ServerResponse} response @param {number} id */
function list(response, id) {
  const head = encoder.encode(`{"jsonrpc":"2.0","id":${id},"result":{`);
  const body = Buffer.concat([head, listed, encoder.encode("}}")]);
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
}

/** @param {import("node:http").ServerResponse} response */
function listen(response) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.write(frameOf({ jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged" }));
}

/**
 * Each frame is with the socket before the next one is made, as from a tool that waits for its own progress.
 *
 * @param {import("node:http").ServerResponse} response
 * @param {Message} message
 */
async function stream(response, message) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const progressToken = message.params._meta?.progressToken;
  for (let step = 1; step <= frames; step++) {
    const params = { progressToken, progress: step, total: frames, message: `step ${step}` };
    const frame = frameOf({ jsonrpc: "2.0", method: "notifications/progress", params });
    await new Promise((resolve) => response.write(frame, resolve));
  }
  response.end(frameOf(answerTo(message)));
}

/** @param {Message} message */
function answerTo({ id, method, params }) {
  if (method !== "tools/call") return { jsonrpc: "2.0", id, result: {} };
  const text = params.arguments.message + (params.name === "large" ? filler : "");
  return { jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } };
}

/** @param {object} message */
function frameOf(message) {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
