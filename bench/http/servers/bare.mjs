// The floor: node:http, one parse and one stringify, no protocol and no checks.

import { createServer } from "node:http";
import { listen } from "../child.mjs";

/** @typedef {{ name: string, arguments: { message: string }, _meta?: { progressToken?: number } }} Params */
/** @typedef {{ id?: number, method: string, params: Params }} Message */

const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  request.on("end", () => {
    const message = /** @type {Message} */ (JSON.parse(Buffer.concat(chunks).toString()));
    if (message.id === undefined) response.writeHead(202).end();
    else if (message.method === "tools/call" && message.params.name === "stream")
      void stream(response, message);
    else echo(response, message);
  });
});
listen(server);

/** @param {import("node:http").ServerResponse} response @param {Message} message */
function echo(response, message) {
  const body = JSON.stringify(answerTo(message));
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  response.writeHead(200, headers).end(body);
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
  for (let step = 1; step <= 20; step++) {
    const params = { progressToken, progress: step, total: 20, message: `step ${step}` };
    const frame = frameOf({ jsonrpc: "2.0", method: "notifications/progress", params });
    await new Promise((resolve) => response.write(frame, resolve));
  }
  response.end(frameOf(answerTo(message)));
}

/** @param {Message} message */
function answerTo({ id, method, params }) {
  const result =
    method === "initialize" ? {} : { content: [{ type: "text", text: params.arguments.message }] };
  return { jsonrpc: "2.0", id, result };
}

/** @param {object} message */
function frameOf(message) {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
