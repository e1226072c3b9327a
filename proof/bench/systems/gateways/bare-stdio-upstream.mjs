import { spawn } from "node:child_process";

/** A child that answers lines with lines. */
export class StdioUpstream {
  #child;
  /** @type {Map<number, (answer: Buffer) => void>} */
  #pending = new Map();
  /** @type {Buffer[]} the beginning of a line that has not ended yet */
  #begun = [];
  #unsent = "";

  /** @param {string} file */
  constructor(file) {
    this.#child = spawn(process.execPath, [file], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdout.on("data", (/** @type {Buffer} */ chunk) => this.#read(chunk));
    this.#child.on("exit", () => process.exit(1));
  }

  /** @param {number} id @param {string} message @param {(answer: Buffer) => void} onAnswer */
  ask(id, message, onAnswer) {
    this.#pending.set(id, onAnswer);
    // Requests that arrive together leave in one write.
    if (this.#unsent === "") setImmediate(() => this.#flush());
    this.#unsent += `${message}\n`;
  }

  #flush() {
    this.#child.stdin.write(this.#unsent, "latin1");
    this.#unsent = "";
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const part = chunk.subarray(start, end);
      this.#answer(this.#begun.length === 0 ? part : Buffer.concat([...this.#begun, part]));
      this.#begun = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#begun.push(chunk.subarray(start));
  }

  /** @param {Buffer} line */
  #answer(line) {
    const at = line.indexOf('"id":') + 5;
    const id = Number.parseInt(line.toString("latin1", at, at + 16), 10);
    this.#pending.get(id)?.(line);
    this.#pending.delete(id);
  }
}
