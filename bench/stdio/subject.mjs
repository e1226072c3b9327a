import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** @typedef {{ content?: { text?: string }[] }} EchoResult */

/** A server in a process of its own, and a client that checks every answer. */
export class Subject {
  /** @type {import("node:child_process").ChildProcessWithoutNullStreams} */
  #child;
  /** @type {Map<number, (result: EchoResult) => void>} */
  #pending = new Map();
  #nextId = 1;
  #rest = "";
  #unsent = "";
  #wake = () => {};

  /** @param {string} name of a file in `servers/` */
  constructor(name) {
    this.name = name;
    const args = ["--import", urlOf("report-cpu.mjs").href, fileURLToPath(urlOf(`servers/${name}.mjs`))];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit", "ipc"] });
    this.#child = /** @type {import("node:child_process").ChildProcessWithoutNullStreams} */ (child);
    this.#child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => this.#read(text));
    this.#child.on("exit", (code) => {
      if (this.#pending.size > 0) throw new Error(`${name} ended with ${code} and left calls unanswered`);
    });
  }

  async handshake() {
    const clientInfo = { name: "bench", version: "1.0.0" };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    await new Promise((resolve) => this.#request("initialize", params, resolve));
    this.#write({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /**
   * Makes so many calls, so many at a time. Resolves with what one cost: CPU of the server and time, in microseconds.
   *
   * @param {number} calls
   * @param {number} inFlight
   */
  async measure(calls, inFlight) {
    const cpuBefore = await this.#cpu();
    const started = performance.now();
    for (let made = 0; made < calls; await this.#answered()) {
      for (; made < calls && this.#pending.size < inFlight; made++) this.#call();
    }
    while (this.#pending.size > 0) await this.#answered();
    const elapsedMs = performance.now() - started;
    return { cpu: ((await this.#cpu()) - cpuBefore) / calls, time: (elapsedMs * 1000) / calls };
  }

  async close() {
    const exited = once(this.#child, "exit");
    this.#child.stdin.end();
    await exited;
  }

  #call() {
    const message = `hello ${this.#nextId}`;
    this.#request("tools/call", { name: "echo", arguments: { message } }, (result) => {
      if (result.content?.[0]?.text !== message)
        throw new Error(`${this.name} answered ${message} with ${JSON.stringify(result)}`);
    });
  }

  /** @param {string} method @param {object} params @param {(result: EchoResult) => void} onResult */
  #request(method, params, onResult) {
    const id = this.#nextId++;
    this.#pending.set(id, onResult);
    this.#write({ jsonrpc: "2.0", id, method, params });
  }

  /**
   * Calls made in one turn of the event loop leave in one write, as from a client that has many things to ask.
   *
   * @param {object} message
   */
  #write(message) {
    if (this.#unsent === "") {
      process.nextTick(() => {
        this.#child.stdin.write(this.#unsent);
        this.#unsent = "";
      });
    }
    this.#unsent += `${JSON.stringify(message)}\n`;
  }

  /** @param {string} text */
  #read(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const { id, result } = /** @type {{ id: number, result: EchoResult }} */ (JSON.parse(line));
      const onResult = this.#pending.get(id);
      if (onResult === undefined || result === undefined) throw new Error(`${this.name} sent ${line}`);
      this.#pending.delete(id);
      onResult(result);
    }
    this.#wake();
  }

  /** @returns {Promise<void>} */
  #answered() {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  /** User and system time of the whole process, in microseconds. */
  async #cpu() {
    this.#child.send("cpu");
    const [usage] = /** @type {[NodeJS.CpuUsage]} */ (await once(this.#child, "message"));
    return usage.user + usage.system;
  }
}

/** @param {string} file */
function urlOf(file) {
  return new URL(file, import.meta.url);
}
