// `npm run bench:streams [-- COUNT]`: what idle listen streams cost the server in memory.
//
// The server is a child process that collects its garbage before it is asked; the streams are raw sockets of this
// one. Every stream is acknowledged before the measurement, and every stream is told of a change after it, so that
// none of them was dropped on the quiet.

import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";

const count = Number(process.argv[2] ?? 5000);
const atOnce = 200;

const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "subscriptions/listen",
  params: {
    notifications: { toolsListChanged: true },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});

const server = fork(fileURLToPath(new URL("server.mjs", import.meta.url)), {
  execArgv: ["--expose-gc"],
  stdio: "inherit",
});
const { port } = /** @type {{ port: number }} */ (await answer());
const before = await measure();

/** @type {{ heard: string, socket: import("node:net").Socket }[]} */
const streams = [];
while (streams.length < count) {
  const batch = Array.from({ length: Math.min(atOnce, count - streams.length) }, open);
  streams.push(...(await Promise.all(batch)));
}
const after = await measure();
const startedAt = performance.now();
server.send("change");
await answer();
await Promise.all(streams.map((stream) => hears(stream, "notifications/tools/list_changed")));
const toldMs = performance.now() - startedAt;

const perStream = (/** @type {number} */ bytes) => `${(bytes / count / 1024).toFixed(1)} KiB`;
console.log(`${count} idle listen streams, Node ${process.version}`);
console.log(
  `  resident memory  ${perStream(after.rss - before.rss)} a stream (${mebibytes(after.rss)} in all)`,
);
console.log(`  JavaScript heap  ${perStream(after.heapUsed - before.heapUsed)} a stream`);
console.log(`  outside the heap ${perStream(after.external - before.external)} a stream`);
console.log(`  telling all of them of a change took ${toldMs.toFixed(0)} ms`);

for (const { socket } of streams) socket.destroy();
server.kill();

async function open() {
  const socket = connect(port, "127.0.0.1");
  const stream = { heard: "", socket };
  socket.setEncoding("latin1").on("data", (text) => (stream.heard += text));
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
      "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n" +
      `Mcp-Method: subscriptions/listen\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await hears(stream, "notifications/subscriptions/acknowledged");
  return stream;
}

/**
 * @param {{ heard: string, socket: import("node:net").Socket }} stream
 * @param {string} text
 */
async function hears(stream, text) {
  while (!stream.heard.includes(text)) await once(stream.socket, "data");
}

/** @returns {Promise<NodeJS.MemoryUsage>} */
async function measure() {
  server.send("measure");
  return /** @type {NodeJS.MemoryUsage} */ (await answer());
}

/** @returns {Promise<unknown>} */
async function answer() {
  const messages = /** @type {unknown[]} */ (await once(server, "message"));
  return messages[0];
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
}
