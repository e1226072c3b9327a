import { request, revisions } from "./envelope.mjs";
import { HttpStream } from "./http-stream.mjs";

const atOnce = 200;
const patienceMs = 10_000;

/** @typedef {{ heard: string, stream: HttpStream, wake: () => void }} Listening */

/** Open `subscriptions/listen` streams that nothing happens on, each acknowledged by the server. */
export class ListeningStreams {
  #port;
  /** @type {Listening[]} */
  #open = [];

  /** @param {number} port */
  constructor(port) {
    this.#port = port;
  }

  /**
   * Opens more, until there are so many.
   *
   * @param {number} count
   */
  async grow(count) {
    while (this.#open.length < count) {
      const batch = Array.from({ length: Math.min(atOnce, count - this.#open.length) }, () => this.#start());
      this.#open.push(...batch);
      await Promise.all(batch.map((each) => hears(each, "notifications/subscriptions/acknowledged")));
    }
  }

  /** Resolves when every stream has told of a change of the tools, with the time it took from now. */
  async toldMs() {
    const started = performance.now();
    await Promise.all(this.#open.map((each) => hears(each, "notifications/tools/list_changed")));
    return performance.now() - started;
  }

  close() {
    for (const { stream } of this.#open) stream.close();
    this.#open = [];
  }

  /** @returns {Listening} */
  #start() {
    const stream = new HttpStream(this.#port, (text) => {
      listening.heard += text;
      listening.wake();
    });
    /** @type {Listening} */
    const listening = { heard: "", stream, wake: () => {} };
    const body = request("modern", this.#open.length + 1, "subscriptions/listen", {
      notifications: { toolsListChanged: true },
    });
    stream.send(
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\nContent-Type: application/json\r\n` +
        `Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: ${revisions.modern}\r\n` +
        `Mcp-Method: subscriptions/listen\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    return listening;
  }
}

/**
 * @param {Listening} listening
 * @param {string} text
 */
async function hears(listening, text) {
  const giveUpAt = performance.now() + patienceMs;
  while (!listening.heard.includes(text)) {
    if (performance.now() > giveUpAt) throw new Error(`a stream did not hear of ${text}`);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, patienceMs);
      listening.wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }
}
