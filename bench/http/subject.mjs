import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";

/** @typedef {{ name: string, era: "legacy" | "modern", form: "json" | "sse" }} Case */
/** @typedef {{ content?: { text?: string }[] }} Result */
/** @typedef {{ id?: number, method?: string, params?: { progressToken?: number }, result?: Result }} Message */
/** @typedef {{ status: number, headers: import("undici").Dispatcher.ResponseData["headers"], body: string }} Reply */

const connections = 32;
const clientInfo = { name: "bench", version: "1.0.0" };
const framesPerStream = 20;

/** A server in a process of its own, and a client with so many connections that checks every answer. */
export class Subject {
  /** @type {import("node:child_process").ChildProcess} */
  #child;
  /** @type {Pool | undefined} */
  #pool;
  /** @type {Case} */
  #case;
  /** @type {Record<string, string>} */
  #headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  #nextId = 1;
  #isClosing = false;

  /** @param {string} name of a file in `servers/` @param {Case} measured */
  constructor(name, measured) {
    this.name = name;
    this.#case = measured;
    const file = fileURLToPath(new URL(`servers/${name}.mjs`, import.meta.url));
    this.#child = fork(file, [measured.form]);
    this.#child.on("exit", (code) => {
      if (!this.#isClosing) throw new Error(`${name} ended with ${code}`);
    });
  }

  /** Waits until the server listens and, in the legacy era, opens the one session all calls are made in. */
  async open() {
    const [{ port }] = /** @type {[{ port: number }]} */ (await once(this.#child, "message"));
    this.#pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
    const { era, form } = this.#case;
    if (era === "legacy") await this.#handshake();
    else {
      this.#headers["mcp-protocol-version"] = "2026-07-28";
      this.#headers["mcp-method"] = "tools/call";
      this.#headers["mcp-name"] = form === "json" ? "echo" : "stream";
    }
  }

  /**
   * Makes calls for so long, one on every connection at a time. Resolves with what one cost: CPU of the server and time,
   * in microseconds.
   *
   * @param {number} durationMs
   */
  async measure(durationMs) {
    const cpuBefore = await this.#cpu();
    const started = performance.now();
    let calls = 0;
    const keepCalling = async () => {
      for (; performance.now() - started < durationMs; calls++) await this.#call();
    };
    await Promise.all(Array.from({ length: connections }, keepCalling));
    const elapsedMs = performance.now() - started;
    return { cpu: ((await this.#cpu()) - cpuBefore) / calls, time: (elapsedMs * 1000) / calls };
  }

  async close() {
    await this.#pool?.close();
    this.#isClosing = true;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }

  async #handshake() {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    const { headers } = await this.#post({ jsonrpc: "2.0", id: 0, method: "initialize", params });
    this.#headers["mcp-protocol-version"] = "2025-11-25";
    const session = headers["mcp-session-id"];
    if (typeof session === "string") this.#headers["mcp-session-id"] = session;
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  async #call() {
    const id = this.#nextId++;
    const text = `hello ${id}`;
    const isStream = this.#case.form === "sse";
    const params = { name: isStream ? "stream" : "echo", arguments: { message: text }, ...this.#metaOf(id) };
    const reply = await this.#post({ jsonrpc: "2.0", id, method: "tools/call", params });
    const messages = messagesIn(reply);
    const answer = messages.pop();
    const progress = messages.filter(
      ({ method, params }) => method === "notifications/progress" && params?.progressToken === id,
    );
    const isComplete =
      progress.length === messages.length && messages.length === (isStream ? framesPerStream : 0);
    if (!isComplete || answer?.id !== id || answer.result?.content?.[0]?.text !== text)
      throw new Error(`${this.name} answered ${text} with ${reply.status} ${reply.body}`);
  }

  /** @param {number} progressToken */
  #metaOf(progressToken) {
    const isStream = this.#case.form === "sse";
    if (this.#case.era === "legacy") return isStream ? { _meta: { progressToken } } : {};
    return {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": clientInfo,
        ...(isStream ? { progressToken } : {}),
      },
    };
  }

  /**
   * As little work as the client can do, for it shares the machine with the server.
   *
   * @param {object} message
   * @returns {Promise<Reply>}
   */
  #post(message) {
    return new Promise((resolve, reject) => {
      /** @type {Reply} */
      const reply = { status: 0, headers: {}, body: "" };
      this.#pool?.dispatch(
        { path: "/mcp", method: "POST", headers: this.#headers, body: JSON.stringify(message) },
        {
          onRequestStart() {},
          onResponseStart(_controller, status, headers) {
            reply.status = status;
            reply.headers = headers;
          },
          // Everything said here is ASCII: no character is split between chunks.
          onResponseData: (_controller, chunk) => void (reply.body += chunk.toString("latin1")),
          onResponseEnd: () => resolve(reply),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
  }

  /** User and system time of the whole process, in microseconds. */
  async #cpu() {
    this.#child.send("cpu");
    const [usage] = /** @type {[NodeJS.CpuUsage]} */ (await once(this.#child, "message"));
    return usage.user + usage.system;
  }
}

/**
 * @param {Reply} reply
 * @returns {Message[]}
 */
function messagesIn({ headers, body }) {
  if (!String(headers["content-type"]).startsWith("text/event-stream"))
    return [/** @type {Message} */ (JSON.parse(body))];
  return body
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => /** @type {Message} */ (JSON.parse(line.slice(6))));
}
