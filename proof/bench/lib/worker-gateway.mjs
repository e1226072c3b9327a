// A gateway of `npm run proof -- bench workers`: started with so many workers, and loaded over HTTP.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HttpSocket } from "../load/http-socket.mjs";
import { freePort } from "./free-port.mjs";
import { pidsOf } from "./processes.mjs";

const main = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));
/** The server on stdio is no part of the gateway. */
export const stdioServer = "echo-stdio.mjs";

/** @typedef {{ workers: number, pid: number, port: number, stop: () => void }} Gateway */
/** @typedef {{ connections: number, calls: number }} Load */

/** @param {number} workers @param {string} config @param {string} folder @returns {Promise<Gateway>} */
export async function startGateway(workers, config, folder) {
  const port = await freePort();
  const args = [main, "serve", "--config", config, "--port", String(port), "--log-level", "error"];
  if (workers > 1) args.push("--workers", String(workers));
  const own = join(folder, String(port));
  const env = { ...process.env, XDG_STATE_HOME: own, XDG_CACHE_HOME: own };
  const child = spawn(process.execPath, args, { env, stdio: "ignore" });
  const gateway = {
    workers,
    pid: /** @type {number} */ (child.pid),
    port,
    stop: () => void child.kill("SIGTERM"),
  };
  await until(async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
  for (const server of ["web", "pipe"])
    await until(async () => (await callOnce(gateway, server)).status === 200);
  return gateway;
}

/** The processes that serve calls: the only one, or the workers without their primary. @param {Gateway} gateway */
export function servingPids(gateway) {
  if (gateway.workers === 1) return [gateway.pid];
  return pidsOf({ pid: gateway.pid, exceptCommand: stdioServer }).filter((pid) =>
    commandOf(pid).includes("serve-worker"),
  );
}

/** The worker that runs the server on stdio. @param {Gateway} gateway */
export function stdioOwner(gateway) {
  const child = pidsOf({ pid: gateway.pid }).find((pid) => commandOf(pid).includes(stdioServer));
  return child === undefined ? undefined : parentOf(child);
}

/** How often the processes went to sleep until something came. @param {readonly number[]} pids */
export function sleepsOf(pids) {
  const pattern = /^voluntary_ctxt_switches:\s+(\d+)/m;
  // The first thread of a process is the one with the event loop.
  const texts = pids.map((pid) => readFileSync(`/proc/${pid}/task/${pid}/status`, "latin1"));
  return texts.reduce((sum, text) => sum + Number(pattern.exec(text)?.[1] ?? 0), 0);
}

/**
 * CPU time of the threads of a process that compile and collect garbage, in microseconds: all but the one with the event loop.
 *
 * @param {number} pid
 */
export function helperMicros(pid) {
  const others = readdirSync(`/proc/${pid}/task`).filter((task) => Number(task) !== pid);
  const nanos = others.map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "latin1").split(" ", 1)[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1000;
}

/** Polls until the condition holds. @param {() => Promise<boolean>} condition */
export async function until(condition) {
  for (let count = 0; count < 3000; count++) {
    if (await condition().catch(() => false)) return;
    await pause(10);
  }
  throw new Error("it did not come to be in half a minute");
}

/**
 * Makes so many calls, one at a time on each connection. `whenOpen` is called when each connection has had its first answer.
 *
 * @param {Gateway} gateway
 * @param {string} server
 * @param {Load} load
 * @param {() => void} [whenOpen]
 */
export async function makeCalls({ port }, server, { connections, calls }, whenOpen) {
  const { head, body } = toRequest(server, port);
  const post = `POST /mcp HTTP/1.1\r\n${Object.entries(head)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n${body}`;
  const sockets = Array.from({ length: connections }, () => new HttpSocket(port));
  const call = async (/** @type {HttpSocket} */ socket) => {
    const reply = await socket.send(post);
    if (reply.status !== 200 || !reply.body.includes('"result"'))
      throw new Error(`a call of ${server} was answered with ${reply.status} ${reply.body}`);
  };
  try {
    await Promise.all(sockets.map(call));
    whenOpen?.();
    let left = calls;
    const live = async (/** @type {HttpSocket} */ socket) => {
      while (left-- > 0) await call(socket);
    };
    await Promise.all(sockets.map(live));
  } finally {
    for (const socket of sockets) socket.close();
  }
}

/**
 * Calls the echo of a server. Resolves with the status, or 0 when the connection broke, and with the port it came from.
 * @param {Pick<Gateway, "port">} gateway @param {string} server @param {import("node:http").Agent} [agent]
 * @returns {Promise<{ status: number, clientPort: number }>}
 */
export function callOnce({ port }, server, agent) {
  const { head, body } = toRequest(server, port);
  return new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers: head, agent });
    let clientPort = 0;
    asked.on("response", (answer) => {
      clientPort = answer.socket.localPort ?? 0;
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => (text += piece));
      answer.on("end", () =>
        resolve({ status: text.includes('"result"') ? (answer.statusCode ?? 0) : 500, clientPort }),
      );
      answer.on("error", () => resolve({ status: 0, clientPort }));
    });
    asked.on("error", () => resolve({ status: 0, clientPort }));
    asked.end(body);
  });
}

/** @param {string} server @param {number} port */
function toRequest(server, port) {
  const name = `${server}__echo`;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
  };
  const params = { name, arguments: { message: "hello" }, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const head = {
    host: `127.0.0.1:${port}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
    "content-length": Buffer.byteLength(body),
  };
  return { head, body };
}

/** @param {number} pid */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** @param {number} pid */
function parentOf(pid) {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}
