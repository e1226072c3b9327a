// The limit for gateways: takes a POST, puts an id of its own and the upstream's name of the tool into the bytes, passes
// them on, and answers with the upstream's bytes under the caller's id. Upstream NUMBER is called uNUMBER, its tools
// uNUMBER__TOOL.
//
// What it does not do: it parses nothing and trusts that the first "id" and the first "name" are the envelope's. No
// limits, no deadlines, no cancelling, no progress, no sessions, no header or origin checks, nothing happens when an
// upstream dies, and what the upstreams offer is known beforehand.
//
//   node bare.mjs PORT stdio COUNT FILE     COUNT children that run FILE
//   node bare.mjs PORT http COUNT URL       COUNT upstreams at URLu0, URLu1, …

import { createServer } from "node:http";
import { HttpUpstream } from "./bare-http-upstream.mjs";
import { StdioUpstream } from "./bare-stdio-upstream.mjs";

const [port, kind, count, target = ""] = process.argv.slice(2);
const upstreams = Array.from({ length: Number(count) }, (_, index) =>
  kind === "http" ? new HttpUpstream(target, `u${index}`) : new StdioUpstream(target),
);

const inputSchema = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
const tools = upstreams.flatMap((_, index) =>
  ["echo", "large"].map((name) => ({ name: `u${index}__${name}`, inputSchema })),
);
const serverInfo = { name: "bare", version: "1.0.0" };
/** @type {Record<string, object>} */
const own = {
  initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo },
  "tools/list": { tools },
};
let lastId = 0;

createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = (chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))?.toString("latin1") ?? "";
    if (body.includes('"tools/call"')) forward(body, response);
    else answerItself(body, response);
  });
}).listen(Number(port), "127.0.0.1");

/** @param {string} body @param {import("node:http").ServerResponse} response */
function forward(body, response) {
  const idAt = body.indexOf('"id":') + 5;
  const idEnd = body.indexOf(",", idAt);
  const callerId = body.slice(idAt, idEnd);
  const nameAt = body.indexOf('"name":"', idEnd) + 8;
  const separator = body.indexOf("__", nameAt);
  const upstream = upstreams[Number(body.slice(nameAt + 1, separator))];
  const id = ++lastId;
  const asked = `${body.slice(0, idAt)}${id}${body.slice(idEnd, nameAt)}${body.slice(separator + 2)}`;
  upstream?.ask(id, asked, (answer) => {
    const at = answer.indexOf('"id":') + 5;
    const end = at + String(id).length;
    const length = answer.length - String(id).length + callerId.length;
    response.writeHead(200, { "content-type": "application/json", "content-length": length });
    response.write(answer.subarray(0, at));
    response.write(callerId);
    response.end(answer.subarray(end));
  });
}

/** @param {string} body @param {import("node:http").ServerResponse} response */
function answerItself(body, response) {
  const { id, method } = /** @type {{ id?: unknown, method: string }} */ (JSON.parse(body));
  if (id === undefined) return void response.writeHead(202).end();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: own[method] ?? {} }));
}
