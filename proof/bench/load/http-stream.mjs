import { connect } from "node:net";

/** A response that does not end: hands over the text of its body as it comes, without the chunk sizes. */
export class HttpStream {
  #port;
  #onText;
  /** @type {import("node:net").Socket | undefined} */
  #socket;
  #rest = "";
  #isPastHead = false;

  /** @param {number} port @param {(text: string) => void} onText */
  constructor(port, onText) {
    this.#port = port;
    this.#onText = onText;
  }

  /** @param {string} path */
  get(path) {
    this.send(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\nAccept: text/event-stream\r\n\r\n`);
  }

  /** @param {string} request */
  send(request) {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (/** @type {string} */ text) => this.#read(text));
    // Whoever waits for its text notices.
    socket.on("error", () => {});
    socket.write(request);
  }

  close() {
    this.#socket?.destroy();
  }

  /** @param {string} text */
  #read(text) {
    this.#rest += text;
    if (!this.#isPastHead) {
      const end = this.#rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.#isPastHead = true;
      this.#rest = this.#rest.slice(end + 4);
    }
    for (;;) {
      const lineEnd = this.#rest.indexOf("\r\n");
      if (lineEnd < 0) return;
      const size = Number.parseInt(this.#rest.slice(0, lineEnd), 16);
      if (this.#rest.length < lineEnd + 2 + size + 2) return;
      const chunk = this.#rest.slice(lineEnd + 2, lineEnd + 2 + size);
      this.#rest = this.#rest.slice(lineEnd + 2 + size + 2);
      this.#onText(chunk);
    }
  }
}
