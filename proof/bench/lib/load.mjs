import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** @typedef {import("../load/turn.mjs").Figure} Figure */
/** @typedef {import("../load/main.mjs").HttpLike} HttpLike */
/** @typedef {import("../load/main.mjs").StdioLike} StdioLike */

/** A system answered, but not what was asked. */
export class WrongAnswerError extends Error {}

/** The load process, seen from the one that conducts the benchmark. */
export class Load {
  #child = fork(fileURLToPath(new URL("../load/main.mjs", import.meta.url)));
  #lastSeq = 0;
  /** @type {Map<number, { resolve: (value: unknown) => void, reject: (error: Error) => void }>} */
  #pending = new Map();

  constructor() {
    this.#child.on("message", (message) =>
      this.#settle(
        /** @type {{ seq: number, value?: unknown, error?: string, isWrong?: boolean }} */ (message),
      ),
    );
    this.#child.on("exit", (code) => this.#failAll(new Error(`the load process ended with ${code}`)));
  }

  /**
   * Makes a front ready for calls. Resolves with the pid of a server that was spawned for it.
   *
   * @param {string} key
   * @param {HttpLike | StdioLike} front
   */
  async open(key, front) {
    return /** @type {number} */ (await this.#order({ act: "open", key, front }));
  }

  /** @param {string} key @param {import("../load/turn.mjs").Turn} turn */
  async turn(key, turn) {
    return /** @type {Figure} */ (await this.#order({ act: "turn", key, turn }));
  }

  /** One call. @param {string} key */
  async once(key) {
    await this.#order({ act: "once", key });
  }

  /** @param {string} key */
  async close(key) {
    await this.#order({ act: "close", key });
  }

  /** Has so many streams open. @param {string} key @param {number} port @param {number} count */
  async listen(key, port, count) {
    await this.#order({ act: "listen", key, port, count });
  }

  /** How long it takes until all streams have heard of a change. @param {string} key */
  async told(key) {
    return /** @type {number} */ (await this.#order({ act: "told", key }));
  }

  end() {
    this.#child.removeAllListeners("exit");
    if (this.#child.connected) this.#child.disconnect();
  }

  /** @param {object} order @returns {Promise<unknown>} */
  #order(order) {
    const seq = ++this.#lastSeq;
    return new Promise((resolve, reject) => {
      this.#pending.set(seq, { resolve, reject });
      this.#child.send({ seq, ...order });
    });
  }

  /** @param {{ seq: number, value?: unknown, error?: string, isWrong?: boolean }} message */
  #settle({ seq, value, error, isWrong }) {
    const waiting = this.#pending.get(seq);
    this.#pending.delete(seq);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(isWrong === true ? new WrongAnswerError(error) : new Error(error));
  }

  /** @param {Error} error */
  #failAll(error) {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
