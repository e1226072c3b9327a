import { Pool } from "undici";

/** An HTTP server that answers a POST with JSON. */
export class HttpUpstream {
  #pool;
  #path;
  #headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
  };

  /** @param {string} url @param {string} path */
  constructor(url, path) {
    const { origin, pathname } = new URL(url);
    this.#path = `${pathname}${path}`;
    this.#pool = new Pool(origin, { connections: 32, pipelining: 1 });
  }

  /** @param {number} _id @param {string} message @param {(answer: Buffer) => void} onAnswer */
  ask(_id, message, onAnswer) {
    /** @type {Buffer[]} */
    const chunks = [];
    this.#pool.dispatch(
      { path: this.#path, method: "POST", headers: this.#headers, body: message },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => onAnswer(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)),
        onResponseError: (_controller, error) => {
          throw error;
        },
      },
    );
  }
}
