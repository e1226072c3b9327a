import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { pidsOf } from "./processes.mjs";

/** @typedef {{ command?: string, args: string[], env?: Record<string, string>, port: number }} Start */

const root = fileURLToPath(new URL("../../..", import.meta.url));
const startTimeoutMs = 30_000;

/** @type {Set<System>} */
const running = new Set();
process.on("exit", () => {
  for (const system of running) system.kill();
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
  process.once(signal, () => process.exit(130));

/** A system under test, or an upstream of one: a child process that listens on a loopback port. */
export class System {
  #child;
  #output = "";

  /** @param {Start} start */
  constructor({ command = process.execPath, args, env = {}, port }) {
    this.port = port;
    this.startedAt = performance.now();
    this.#child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_ENV: "production", ...env },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (this.#output = (this.#output + text).slice(-2000)));
    running.add(this);
  }

  get pid() {
    return this.#child.pid ?? 0;
  }

  /** Resolves when something accepts sockets on the port; rejects with the last words of a process that ended. */
  async listening() {
    const giveUpAt = this.startedAt + startTimeoutMs;
    while (!(await accepts(this.port))) {
      if (this.#hasEnded())
        throw new Error(`ended with ${this.#child.exitCode ?? this.#child.signalCode}: ${this.lastWords()}`);
      if (performance.now() > giveUpAt) throw new Error(`does not listen after ${startTimeoutMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  lastWords() {
    const lines = this.#output.split("\n").filter((line) => line.trim() !== "");
    const said = lines.find((line) => line.includes("Error: ")) ?? lines.at(-1) ?? "nothing said";
    // The report must not tell where this checkout is.
    return said.replaceAll(root, "").slice(0, 200);
  }

  /** Ends the whole tree at once: nothing here is worth a farewell, and some take seconds for theirs. */
  async stop() {
    const ended = this.#hasEnded() ? undefined : once(this.#child, "exit");
    this.kill();
    await ended;
  }

  kill() {
    running.delete(this);
    if (this.#hasEnded()) return;
    for (const pid of pidsOf({ pid: this.pid })) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
  }

  #hasEnded() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
