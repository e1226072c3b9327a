import { expect } from "vitest";
import { serveChannel, type ServeOptions } from "../../packages/core/src/channel/serve-channel.ts";
import type { LegacyRevision, Revision } from "../../packages/core/src/mcp/revision.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { ClientCapabilities } from "../../packages/core/src/mcp/types.ts";
import { createRawWire, type RawWire } from "./raw-wire.ts";
import { assertValidFrame, type Frame } from "./wire-schema.ts";

type Json = { readonly [key: string]: unknown };

export interface ConversationOptions extends ServeOptions {
  readonly capabilities?: ClientCapabilities;
  /** More members for the `_meta` of every modern request. */
  readonly meta?: Json;
}

/** A client of a served channel that knows nothing but the wire. Disposing it holds every frame to its schema. */
export interface Conversation extends AsyncDisposable {
  readonly wire: RawWire;
  /** Resolves when the server has let go of the channel. */
  readonly served: Promise<void>;
  /** Sends a request and takes its response. */
  request(method: string, params?: Json, id?: string | number): Promise<Frame>;
  /** The result of a request that must succeed. */
  result<T = Json>(method: string, params?: Json): Promise<T>;
  /** The error of a request that must fail. */
  error(method: string, params?: Json): Promise<{ code: number; message: string; data?: unknown }>;
  notify(method: string, params?: Json): void;
  /** The next notification with this method. */
  notified<T = Json>(method: string): Promise<T>;
  /** Everything the server sent that is not a response. */
  unasked(): readonly Frame[];
}

/** The `_meta` of a modern request. */
export function envelope(capabilities: ClientCapabilities = {}, more: Json = {}): Json {
  return {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...more,
  };
}

/** Begins to talk as a modern client. */
export function talkModern(server: Server, options: ConversationOptions = {}): Conversation {
  const { capabilities, meta, ...serving } = options;
  return talk(server, "2026-07-28", serving, (params) => ({
    ...params,
    _meta: { ...envelope(capabilities, meta), ...(params?.["_meta"] as Json | undefined) },
  }));
}

/** Begins to talk as a legacy client, handshake included. */
export async function talkLegacy(
  server: Server,
  revision: LegacyRevision,
  options: ConversationOptions = {},
): Promise<Conversation> {
  const { capabilities = {}, ...serving } = options;
  const conversation = talk(server, revision, serving, (params) => params);
  await conversation.result("initialize", handshake(revision, capabilities));
  conversation.notify("notifications/initialized");
  return conversation;
}

/** The params of `initialize`. */
export function handshake(protocolVersion: string, capabilities: ClientCapabilities = {}): Json {
  return { protocolVersion, capabilities, clientInfo: { name: "test", version: "1.0.0" } };
}

/** Begins to talk without saying anything. */
export function talk(
  server: Server,
  revision: Revision,
  options: ServeOptions,
  toParams: (params: Json | undefined) => Json | undefined,
): Conversation {
  const wire = createRawWire();
  const served = serveChannel(server, wire.channel, { lingerMs: 10, graceMs: 10, ...options });
  const requests = new Map<unknown, Frame>();
  let nextId = 1001;
  const conversation: Conversation = {
    wire,
    served,
    request: (method, params, id = nextId++) => {
      const sent = toParams(params);
      const frame = { id, method, ...(sent === undefined ? {} : { params: sent }) };
      requests.set(id, frame);
      return wire.request(frame);
    },
    result: async <T>(method: string, params?: Json) => {
      const frame = await conversation.request(method, params);
      expect(frame.error).toBeUndefined();
      return frame.result as T;
    },
    error: async (method, params) => {
      const frame = await conversation.request(method, params);
      expect(frame.result).toBeUndefined();
      return frame.error as { code: number; message: string };
    },
    notify: (method, params) =>
      wire.send({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) }),
    notified: async <T>(method: string) => {
      const frame = await wire.take((taken) => taken.method === method && taken.id === undefined);
      return (frame.params ?? {}) as T;
    },
    unasked: () => wire.frames.filter(({ method }) => method !== undefined),
    [Symbol.asyncDispose]: async () => {
      wire.end();
      await served;
      for (const frame of wire.frames) {
        const request = requests.get(frame.id);
        // Batches and answers to messages written by hand are for their tests to judge.
        if (request !== undefined || frame.method !== undefined)
          assertValidFrame("server", revision, request, frame);
      }
    },
  };
  return conversation;
}
