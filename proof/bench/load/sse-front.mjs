import { initialize, initialized, request } from "./envelope.mjs";
import { HttpSocket } from "./http-socket.mjs";
import { HttpStream } from "./http-stream.mjs";
import { checkAnswer, toolOf } from "./scenarios.mjs";

/** @typedef {import("./scenarios.mjs").Message} Message */

const openTimeoutMs = 1000;
let lastId = 0;

/**
 * HTTP+SSE of 2024-11-05: a call is a POST, and its answer comes on the stream of its session. One session a socket, and a
 * session lasts for many turns: to open 32 of them takes mcp-hub three seconds.
 */
export class SseFront {
  #front;
  /** @type {SseSession[]} */
  #idle = [];

  /** @param {import("./http-front.mjs").Front} front */
  constructor(front) {
    this.#front = front;
  }

  /** Waits until the tools of all upstreams are there. */
  async open() {
    const { minTools = 1 } = this.#front;
    const giveUpAt = performance.now() + 30_000;
    for (;;) {
      const session = new SseSession(this.#front, () => {});
      const found = await Promise.race([session.tools(), nothingAfter(openTimeoutMs)]);
      session.end();
      if (found.length >= minTools) return;
      if (performance.now() > giveUpAt) throw new Error(`${found.length} of ${minTools} tools`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  socket() {
    return this.#idle.pop() ?? new SseSession(this.#front, (session) => this.#idle.push(session));
  }

  /** @param {SseSession} session */
  async call(session) {
    const { scenario } = this.#front;
    const id = ++lastId;
    const nonce = `nonce-${process.pid}-${id}`;
    const tools = await session.tools();
    const params = { name: tools[id % tools.length], arguments: { message: nonce } };
    const answer = await session.ask(id, request("legacy", id, "tools/call", params));
    checkAnswer(scenario, [answer], id, nonce);
  }

  close() {
    for (const session of this.#idle) session.end();
  }
}

class SseSession {
  #front;
  #onIdle;
  #stream;
  #poster;
  #heard = "";
  /** @type {Map<unknown, { resolve: (answer: Message) => void, reject: (error: Error) => void }>} */
  #pending = new Map();
  /** @type {Promise<string[]> | undefined} */
  #tools;
  /** @type {(path: string) => void} */
  #onPath = () => {};
  /** @type {Promise<string>} */
  #path;

  /** @param {import("./http-front.mjs").Front} front @param {(session: SseSession) => void} onIdle */
  constructor(front, onIdle) {
    this.#front = front;
    this.#onIdle = onIdle;
    this.#poster = new HttpSocket(front.port);
    this.#stream = new HttpStream(front.port, (text) => this.#hear(text));
    this.#path = new Promise((resolve) => (this.#onPath = resolve));
  }

  /** The tools to call; opens the session the first time. */
  tools() {
    return (this.#tools ??= this.#open());
  }

  async #open() {
    this.#stream.get(this.#front.path);
    await this.#path;
    const id = ++lastId;
    await this.ask(id, initialize(id));
    await this.#post(initialized);
    const listId = ++lastId;
    const { result } = await this.ask(listId, request("legacy", listId, "tools/list", {}));
    const wanted = toolOf[this.#front.scenario] ?? "";
    return (result?.tools ?? []).map(({ name }) => name).filter((name) => name.endsWith(wanted));
  }

  /**
   * @param {number} id
   * @param {string} body
   * @returns {Promise<Message>}
   */
  ask(id, body) {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#post(body).catch(reject);
    });
  }

  /** Its turn is over. */
  close() {
    this.#onIdle(this);
  }

  end() {
    this.#poster.close();
    this.#stream.close();
  }

  /** @param {string} body */
  async #post(body) {
    const { port } = this.#front;
    return this.#poster.send(
      `POST ${await this.#path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  /** @param {string} text */
  #hear(text) {
    const events = (this.#heard + text).split("\n\n");
    this.#heard = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1] ?? "";
      if (/^event: endpoint$/m.test(event)) this.#onPath(data);
      else if (data.startsWith("{")) this.#settle(/** @type {Message} */ (JSON.parse(data)));
    }
  }

  /** @param {Message} message */
  #settle(message) {
    this.#pending.get(message.id)?.resolve(message);
    this.#pending.delete(message.id);
  }
}

/**
 * A hub that has not found its upstreams yet may leave a session without an answer.
 *
 * @param {number} ms
 * @returns {Promise<string[]>}
 */
function nothingAfter(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, []));
}
