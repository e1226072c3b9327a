import type { LegacyRevision, Revision } from "../../packages/core/src/mcp/revision.ts";
import { type Message, type RawReply, type RawRequest, RawSocket } from "./raw-http.ts";
import { assertValidFrame, type Frame } from "./wire-schema.ts";

type Headers = { readonly [name: string]: string | undefined };

const clientInfo = { name: "raw", version: "1.0.0" };

export const json = "application/json";
export const sse = "text/event-stream";
export const both: string = `${json}, ${sse}`;

/** The `_meta` of a modern request. */
export function modernMeta(
  capabilities: object = {},
  more: object = {},
): { readonly [key: string]: unknown } {
  return {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    "io.modelcontextprotocol/clientInfo": clientInfo,
    ...more,
  };
}

/** A modern request; `params._meta` is added to, not replaced. */
export function modern(
  method: string,
  params: { readonly [member: string]: unknown } = {},
  id: string | number = 1,
): Frame {
  const meta = { ...modernMeta(), ...(params["_meta"] as object | undefined) };
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } };
}

/** A modern call of a tool. */
export function modernCall(
  name: string,
  args: object = {},
  more: { readonly [member: string]: unknown } = {},
): Frame {
  return modern("tools/call", { name, arguments: args, ...more });
}

export function legacyCall(id: string | number, name: string, args: object = {}, meta?: object): Frame {
  const params = { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) };
  return { jsonrpc: "2.0", id, method: "tools/call", params };
}

/** What a modern client repeats of a message in its headers. */
export function mirrored(message: Frame): Headers {
  const params = message.params as { readonly name?: string; readonly uri?: string } | undefined;
  const isNamed = ["tools/call", "prompts/get", "resources/read"].includes(message.method ?? "");
  const name = isNamed ? (params?.name ?? params?.uri) : undefined;
  return { "mcp-protocol-version": "2026-07-28", "mcp-method": message.method, "mcp-name": name };
}

/** A POST of a message, with the headers it needs. `undefined` takes a header away. */
export function postOf(message: unknown, headers: Headers = {}): RawRequest {
  const all = { "content-type": json, accept: both, ...headers };
  const body = typeof message === "string" ? message : JSON.stringify(message);
  return { headers: toPairs(all), body };
}

/** A POST of a modern message. */
export function modernPost(message: Frame, headers: Headers = {}): RawRequest {
  return postOf(message, { ...mirrored(message), ...headers });
}

export function toPairs(headers: Headers): readonly (readonly [string, string])[] {
  return Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined);
}

interface Exchange {
  readonly sent: readonly Frame[];
  readonly reply: RawReply;
}

/**
 * A client that speaks raw HTTP and holds everything it hears to the published schema of its revision. Every request has
 * a socket of its own, which stays open as long as the client.
 */
export class HttpWire implements Disposable {
  /** Where the next request goes. A session may go on at another replica of its gateway. */
  port: number;
  readonly revision: Revision;
  sessionId: string | undefined;
  /** Where every request goes. */
  readonly path: string;
  /** Sent with every request. */
  readonly headers: { [name: string]: string } = {};
  readonly #sockets: RawSocket[] = [];
  readonly #exchanges: Exchange[] = [];

  constructor(port: number, revision: Revision, path = "/mcp") {
    this.port = port;
    this.revision = revision;
    this.path = path;
  }

  /** Sends anything; the reply has not come yet. */
  send(
    request: RawRequest,
    sent: readonly Frame[] = [],
  ): { readonly reply: RawReply; readonly socket: RawSocket } {
    const socket = new RawSocket(this.port);
    const reply = socket.send({
      path: this.path,
      ...request,
      headers: [...toPairs(this.headers), ...(request.headers ?? [])],
    });
    this.#sockets.push(socket);
    this.#exchanges.push({ sent, reply });
    return { reply, socket };
  }

  /** Posts a message; resolves with the reply when its headers are there. */
  async post(message: Frame | readonly Frame[], headers: Headers = {}): Promise<RawReply> {
    return this.open(message, headers).reply.head;
  }

  /** Posts a message, and gives back its socket too. */
  open(
    message: Frame | readonly Frame[],
    headers: Headers = {},
  ): { readonly reply: RawReply; readonly socket: RawSocket } {
    const single = Array.isArray(message) ? undefined : (message as Frame);
    const isModern = this.revision === "2026-07-28";
    const own = isModern && single !== undefined ? mirrored(single) : this.#sessionHeaders();
    return this.send(postOf(message, { ...own, ...headers }), [message].flat());
  }

  /** Posts a request and resolves with its response, once the reply is complete. */
  async ask(message: Frame, headers: Headers = {}): Promise<Message> {
    const reply = await (await this.post(message, headers)).complete;
    const response = reply.messages.find(({ id, method }) => method === undefined && id === message.id);
    if (response === undefined) throw new Error(`No response: ${reply.status} ${reply.body}`);
    return response;
  }

  /** Opens the stream of a legacy session, or goes on with one. */
  get(lastEventId?: string, headers: Headers = {}): { readonly reply: RawReply; readonly socket: RawSocket } {
    const all = { accept: sse, ...this.#sessionHeaders(), "last-event-id": lastEventId, ...headers };
    return this.send({ method: "GET", headers: toPairs(all) });
  }

  async delete(headers: Headers = {}): Promise<RawReply> {
    const request = { method: "DELETE", headers: toPairs({ ...this.#sessionHeaders(), ...headers }) };
    return this.send(request).reply.complete;
  }

  /** The legacy handshake. Resolves with the reply to `initialize`. */
  async initialize(capabilities: object = {}): Promise<RawReply> {
    this.sessionId = undefined;
    const reply = await (await this.post(initializeOf(this.revision, capabilities))).complete;
    this.sessionId = reply.headers["mcp-session-id"];
    const initialized = { jsonrpc: "2.0", method: "notifications/initialized" };
    await (
      await this.post(initialized)
    ).complete;
    return reply;
  }

  /** Throws if anything that came is not what the revision allows. */
  assertValid(): void {
    const all = this.#exchanges.flatMap(({ sent }) => sent);
    for (const { sent, reply } of this.#exchanges) {
      if (reply.status !== 200) continue;
      for (const frame of reply.messages) {
        // A stream that is gone on with answers a request that was posted elsewhere.
        const isAsked = ({ id, method }: Frame): boolean => id === frame.id && method !== undefined;
        const asked = frame.method === undefined ? (sent.find(isAsked) ?? all.find(isAsked)) : undefined;
        assertValidFrame("server", this.revision, asked, frame);
      }
    }
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket[Symbol.dispose]();
    this.assertValid();
  }

  #sessionHeaders(): Headers {
    const isVersioned = this.sessionId !== undefined && this.revision >= "2025-06-18";
    return {
      "mcp-session-id": this.sessionId,
      "mcp-protocol-version": isVersioned ? this.revision : undefined,
    };
  }
}

export function initializeOf(revision: string, capabilities: object = {}, id: string | number = 0): Frame {
  const params = { protocolVersion: revision, capabilities, clientInfo };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

/** A raw client that has shaken hands. */
export async function connectLegacy(
  port: number,
  revision: LegacyRevision = "2025-11-25",
  capabilities: object = {},
  headers: { readonly [name: string]: string } = {},
): Promise<HttpWire> {
  const wire = new HttpWire(port, revision);
  Object.assign(wire.headers, headers);
  await wire.initialize(capabilities);
  return wire;
}
