import { connect } from "node:net";

/** @typedef {{ status: number, head: string, body: string }} Reply */

/**
 * One kept-alive socket that has one request under way at a time.
 *
 * It understands just enough of HTTP/1.1 for what is measured here, because it shares the machine with the server: a
 * full client would cost more than the quick servers do, and all of them would look alike. Everything said is ASCII.
 */
export class HttpSocket {
  #port;
  /** @type {import("node:net").Socket | undefined} */
  #socket;
  /** @type {{ resolve: (reply: Reply) => void, reject: (error: Error) => void } | undefined} */
  #waiting;
  /** What has arrived of the reply under way. */
  /** @type {Buffer[]} */
  #chunks = [];
  #size = 0;
  /** Bytes the reply needs at least; it is looked at again when they are there. */
  #needed = 0;

  /** @param {number} port */
  constructor(port) {
    this.#port = port;
  }

  /**
   * @param {string} request head and body
   * @returns {Promise<Reply>}
   */
  send(request) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket ??= this.#open();
      this.#socket.write(request, "latin1");
    });
  }

  close() {
    this.#socket?.destroy();
  }

  #open() {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => {
      this.#socket = undefined;
      this.#fail(new Error("the socket was closed before the answer was there"));
    });
    return socket;
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return;
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#size);
    const parsed = parseReply(bytes);
    if (parsed.kind === "more") {
      this.#chunks = [bytes];
      this.#needed = parsed.needed;
      return;
    }
    this.#forget();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (/\r\nconnection: *close/i.test(parsed.reply.head)) {
      this.#socket?.removeAllListeners("close").destroy();
      this.#socket = undefined;
    }
    waiting?.resolve(parsed.reply);
  }

  /** @param {Error} error */
  #fail(error) {
    this.#forget();
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  #forget() {
    this.#chunks = [];
    this.#size = 0;
    this.#needed = 0;
  }
}

/**
 * @param {Buffer} bytes
 * @returns {{ kind: "more", needed: number } | { kind: "reply", reply: Reply }}
 */
function parseReply(bytes) {
  const headEnd = bytes.indexOf("\r\n\r\n", 0, "latin1");
  if (headEnd < 0) return { kind: "more", needed: bytes.length + 1 };
  const head = bytes.toString("latin1", 0, headEnd);
  const status = Number(head.slice(9, 12));
  const start = headEnd + 4;
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const end = start + Number(length);
    if (bytes.length < end) return { kind: "more", needed: end };
    return { kind: "reply", reply: { status, head, body: bytes.toString("latin1", start, end) } };
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head))
    return { kind: "reply", reply: { status, head, body: "" } };
  const chunked = parseChunks(bytes, start);
  return typeof chunked === "number"
    ? { kind: "more", needed: chunked }
    : { kind: "reply", reply: { status, head, body: chunked } };
}

/**
 * @param {Buffer} bytes
 * @param {number} start
 * @returns {string | number} the body, or how many bytes are needed to go on
 */
function parseChunks(bytes, start) {
  let body = "";
  for (let position = start; ;) {
    const lineEnd = bytes.indexOf("\r\n", position, "latin1");
    if (lineEnd < 0) return bytes.length + 1;
    const size = Number.parseInt(bytes.toString("latin1", position, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (bytes.length < end) return end;
    if (size === 0) return body;
    body += bytes.toString("latin1", lineEnd + 2, end - 2);
    position = end;
  }
}
