import { initialize, initialized, request, revisions } from "./envelope.mjs";
import { HttpSocket } from "./http-socket.mjs";
import { abridge, checkAnswer, checkLongBody, toolOf, WrongAnswer } from "./scenarios.mjs";

/** @typedef {import("./scenarios.mjs").Scenario} Scenario */
/** @typedef {import("./scenarios.mjs").Message} Message */
/** @typedef {import("./scenarios.mjs").Result} Result */
/** @typedef {{ port: number, path: string, era: import("./envelope.mjs").Era, scenario: Scenario, minTools?: number, tool?: string, isTraced?: boolean }} Front */

const longAnswers = new Set(["list", "large"]);
const toolsTimeoutMs = 30_000;
let lastId = 0;

/** Streamable HTTP: every call is a POST. In the legacy era, all calls are made in one session. */
export class HttpFront {
  #front;
  #session = "";
  /** @type {string[]} the tools to call, in turn */
  #tools = [];
  #hasParsed = false;

  /** @param {Front} front */
  constructor(front) {
    this.#front = front;
  }

  /** Opens a session where there are sessions, and finds the tools to call. */
  async open() {
    const socket = this.socket();
    try {
      if (this.#front.era === "legacy") await this.#handshake(socket);
      await this.#findTools(socket);
    } finally {
      socket.close();
    }
  }

  socket() {
    return new HttpSocket(this.#front.port);
  }

  /**
   * One call on one socket. Throws WrongAnswer.
   *
   * @param {HttpSocket} socket
   */
  async call(socket) {
    const { era, scenario, isTraced } = this.#front;
    const id = ++lastId;
    const nonce = `nonce-${process.pid}-${id}`;
    const name = this.#tools[id % this.#tools.length];
    const [method, params] =
      name === undefined ? ["tools/list", {}] : ["tools/call", { name, arguments: { message: nonce } }];
    const body = request(era, id, method, params, { hasProgress: scenario === "stream", isTraced });
    const reply = await socket.send(this.#post(body, method, name));
    if (reply.status !== 200)
      throw new WrongAnswer(`${scenario} ${id}: ${reply.status} ${abridge(reply.body)}`);
    if (this.#hasParsed && longAnswers.has(scenario)) checkLongBody(scenario, reply.body, id, nonce);
    else checkAnswer(scenario, messagesIn(reply), id, nonce);
    this.#hasParsed = true;
  }

  /** @param {HttpSocket} socket */
  async #handshake(socket) {
    const reply = await socket.send(this.#post(initialize(++lastId), "initialize"));
    if (reply.status !== 200) throw new WrongAnswer(`initialize: ${reply.status} ${abridge(reply.body)}`);
    const session = /\r\nmcp-session-id: *([^\r]+)/i.exec(reply.head)?.[1];
    this.#session =
      `MCP-Protocol-Version: ${revisions.legacy}\r\n` +
      (session === undefined ? "" : `Mcp-Session-Id: ${session}\r\n`);
    await socket.send(this.#post(initialized, "notifications/initialized"));
  }

  /**
   * A gateway has one for every upstream, by whatever name, and may take a while to find them all.
   *
   * @param {HttpSocket} socket
   */
  async #findTools(socket) {
    const { scenario, minTools = 1, tool } = this.#front;
    const wanted = tool ?? toolOf[scenario];
    if (wanted === undefined) return;
    const giveUpAt = performance.now() + toolsTimeoutMs;
    while (this.#tools.length < minTools) {
      if (performance.now() > giveUpAt)
        throw new Error(
          `${this.#tools.length} of ${minTools} tools called ${wanted} after ${toolsTimeoutMs} ms`,
        );
      const names = await this.#listAll(socket);
      this.#tools = names.filter((name) => name.endsWith(wanted));
      if (this.#tools.length < minTools) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** @param {HttpSocket} socket */
  async #listAll(socket) {
    /** @type {string[]} */
    const names = [];
    /** @type {string | undefined} */
    let cursor;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const body = request(this.#front.era, ++lastId, "tools/list", params);
      const reply = await socket.send(this.#post(body, "tools/list"));
      if (reply.status !== 200) throw new WrongAnswer(`tools/list: ${reply.status} ${abridge(reply.body)}`);
      const result = messagesIn(reply).at(-1)?.result;
      names.push(...(result?.tools ?? []).map((tool) => tool.name));
      cursor = result?.nextCursor;
    } while (cursor !== undefined);
    return names;
  }

  /** @param {string} body @param {string} method @param {string} [name] */
  #post(body, method, name) {
    const { port, path, era } = this.#front;
    const mirrored =
      era === "legacy"
        ? this.#session
        : `MCP-Protocol-Version: ${revisions.modern}\r\nMcp-Method: ${method}\r\n` +
          (name === undefined ? "" : `Mcp-Name: ${name}\r\n`);
    return (
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\n${mirrored}Content-Length: ${body.length}\r\n\r\n${body}`
    );
  }
}

/**
 * @param {import("./http-socket.mjs").Reply} reply
 * @returns {Message[]}
 */
function messagesIn({ head, body }) {
  if (!/\r\ncontent-type: *text\/event-stream/i.test(head))
    return [/** @type {Message} */ (JSON.parse(body))];
  return body
    .split("\n")
    .filter((line) => line.startsWith("data: {") || line.startsWith("data:{"))
    .map((line) => /** @type {Message} */ (JSON.parse(line.slice(5))));
}
