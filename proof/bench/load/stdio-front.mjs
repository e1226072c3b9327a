import { spawn } from "node:child_process";
import { initialize, initialized, request } from "./envelope.mjs";
import { checkAnswer, WrongAnswer } from "./scenarios.mjs";

/** @typedef {import("./scenarios.mjs").Message} Message */

let lastId = 0;

/** A server this process spawns and talks to over its pipes. A "socket" is one more call in flight. */
export class StdioFront {
  #child;
  #era;
  /** @type {Map<unknown, { resolve: (message: Message) => void, reject: (error: Error) => void }>} */
  #pending = new Map();
  #rest = "";
  #unsent = "";

  /** @param {{ command: string, args: string[], era: import("./envelope.mjs").Era }} front */
  constructor({ command, args, era }) {
    this.#era = era;
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    this.#child.stdout.setEncoding("latin1").on("data", (/** @type {string} */ text) => this.#read(text));
    this.#child.stdin.on("error", (error) => this.#fail(error));
    this.#child.on("error", (error) => this.#fail(error));
    this.#child.on("exit", (code, signal) =>
      this.#fail(new Error(`the server ended with ${code ?? signal}`)),
    );
  }

  get pid() {
    return this.#child.pid ?? 0;
  }

  async open() {
    if (this.#era === "modern") return;
    const id = ++lastId;
    await this.#ask(id, initialize(id));
    this.#write(initialized);
  }

  socket() {
    return { close() {} };
  }

  async call() {
    const id = ++lastId;
    const nonce = `nonce-${process.pid}-${id}`;
    const params = { name: "echo", arguments: { message: nonce } };
    const answer = await this.#ask(id, request(this.#era, id, "tools/call", params));
    checkAnswer("small", [answer], id, nonce);
  }

  close() {
    this.#child.removeAllListeners("exit");
    this.#child.stdin.end();
    this.#child.kill("SIGKILL");
  }

  /**
   * @param {number} id
   * @param {string} line
   * @returns {Promise<Message>}
   */
  #ask(id, line) {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#write(line);
    });
  }

  /**
   * Calls made in one turn of the event loop leave in one write, as from a client that has many things to ask.
   *
   * @param {string} line
   */
  #write(line) {
    if (this.#unsent === "") {
      process.nextTick(() => {
        this.#child.stdin.write(this.#unsent, "latin1");
        this.#unsent = "";
      });
    }
    this.#unsent += `${line}\n`;
  }

  /** @param {string} text */
  #read(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = /** @type {Message} */ (JSON.parse(line));
      const waiting = this.#pending.get(message.id);
      if (waiting === undefined) return this.#fail(new WrongAnswer(`nobody asked for ${line}`));
      this.#pending.delete(message.id);
      waiting.resolve(message);
    }
  }

  /** @param {Error} error */
  #fail(error) {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
