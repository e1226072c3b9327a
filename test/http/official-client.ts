import * as v2 from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  type JSONRPCMessage,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { LegacyRevision, Revision } from "../../packages/core/src/mcp/revision.ts";
import { assertValidFrame, type Frame } from "../support/wire-schema.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly message?: string | undefined }) => void;
}

/** An official client over Streamable HTTP, whichever it is. */
export interface OfficialClient {
  readonly revision: string | undefined;
  readonly sessionId: string | undefined;
  /** Methods of notifications that belong to no call, in order. */
  readonly notices: readonly string[];
  listTools(): Promise<readonly string[]>;
  /** Calls a tool and gives back its text. */
  call(name: string, args?: object, options?: CallOptions): Promise<string>;
  /** Listens for changes, where that is something a client asks for. */
  watch(): Promise<void>;
  close(): Promise<void>;
  /** Throws if the server sent what its revision does not have. */
  assertValid(): void;
}

export interface Dialect {
  readonly name: string;
  readonly revision: Revision;
  connect(port: number): Promise<OfficialClient>;
}

const reconnectionOptions = {
  initialReconnectionDelay: 5,
  maxReconnectionDelay: 50,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 20,
};
const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const content = { name: "Ada" };
const sampled = { role: "assistant", content: { type: "text", text: "…" }, model: "m" } as const;
const roots = { roots: [{ uri: "file:///home" }] };
const urlOf = (port: number): URL => new URL(`http://127.0.0.1:${port}/mcp`);

/** What went over a transport: what the client sent, and what the server said. */
interface Tap {
  sent(message: unknown): void;
  heard(message: unknown): void;
  assertValid(): void;
}

function createTap(revision: Revision): Tap {
  const sent: Frame[] = [];
  const heard: Frame[] = [];
  return {
    sent: (message) => void sent.push(message as Frame),
    heard: (message) => void heard.push(message as Frame),
    assertValid: () => {
      for (const frame of heard) {
        const asked = sent.find(({ id, method }) => id === frame.id && method !== undefined);
        assertValidFrame("server", revision, frame.method === undefined ? asked : undefined, frame);
      }
    },
  };
}

interface Tappable {
  onmessage?: ((message: never) => void) | undefined;
}

/** Listens in on a transport that is connected already. */
function tapInto(transport: Tappable, tap: Tap): void {
  const { onmessage } = transport;
  Object.assign(transport, {
    onmessage: (message: never) => {
      tap.heard(message);
      onmessage?.(message);
    },
  });
}

interface Result {
  readonly content?: unknown;
}

function textOf(result: Result): string {
  const blocks = (result.content ?? []) as readonly { readonly text?: string }[];
  return blocks.map(({ text }) => text ?? "").join("");
}

/** The v1 client always offers its newest revision; here it offers another. */
class OfferingTransport extends StreamableHTTPClientTransport {
  readonly #revision: LegacyRevision;
  readonly #tap: Tap;

  constructor(port: number, revision: LegacyRevision, tap: Tap) {
    super(urlOf(port), { reconnectionOptions });
    this.#revision = revision;
    this.#tap = tap;
  }

  override send(
    message: JSONRPCMessage | JSONRPCMessage[],
    options?: Parameters<StreamableHTTPClientTransport["send"]>[1],
  ): Promise<void> {
    const single = message as JSONRPCMessage;
    const isHandshake = "method" in single && single.method === "initialize";
    const sent = isHandshake
      ? { ...single, params: { ...single.params, protocolVersion: this.#revision } }
      : single;
    this.#tap.sent(sent);
    return super.send(sent, options);
  }
}

async function connectV1(port: number, revision: LegacyRevision): Promise<OfficialClient> {
  const tap = createTap(revision);
  const notices: string[] = [];
  const transport = new OfferingTransport(port, revision, tap);
  const client = new Client({ name: "sdk-v1", version: "1.0.0" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content }));
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled);
  client.setRequestHandler(ListRootsRequestSchema, () => roots);
  client.fallbackNotificationHandler = async ({ method }) => void notices.push(method);
  await client.connect(transport);
  tapInto(transport, tap);
  return {
    revision: transport.protocolVersion,
    get sessionId() {
      return transport.sessionId;
    },
    notices,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, options = {}) =>
      textOf(
        (await client.callTool({ name, arguments: { ...args } }, CallToolResultSchema, {
          ...options,
        })) as Result,
      ),
    watch: () => Promise.resolve(),
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
    assertValid: () => tap.assertValid(),
  };
}

async function connectV2(
  port: number,
  revision: Revision,
  options: v2.ClientOptions,
): Promise<OfficialClient> {
  const tap = createTap(revision);
  const notices: string[] = [];
  const transport = new v2.StreamableHTTPClientTransport(urlOf(port), { reconnectionOptions });
  const send = transport.send.bind(transport);
  transport.send = (message, sendOptions) => {
    tap.sent(message);
    return send(message, sendOptions);
  };
  const client = new v2.Client({ name: "sdk-v2", version: "1.0.0" }, { capabilities, ...options });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content }));
  client.setRequestHandler("sampling/createMessage", () => sampled);
  client.setRequestHandler("roots/list", () => roots);
  client.fallbackNotificationHandler = async ({ method }) => void notices.push(method);
  await client.connect(transport);
  tapInto(transport, tap);
  const isModern = client.getProtocolEra() === "modern";
  return {
    revision: client.getNegotiatedProtocolVersion(),
    get sessionId() {
      return transport.sessionId;
    },
    notices,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, callOptions = {}) =>
      textOf(await client.callTool({ name, arguments: { ...args } }, { ...callOptions })),
    watch: async () => {
      if (isModern) await client.listen({ toolsListChanged: true });
    },
    close: async () => {
      if (!isModern) await transport.terminateSession();
      await client.close();
    },
    assertValid: () => tap.assertValid(),
  };
}

const legacy = ["2025-03-26", "2025-06-18", "2025-11-25"] as const;

/** Every official client in every revision it speaks over Streamable HTTP. */
export const dialects: readonly Dialect[] = [
  ...legacy.map((revision) => ({
    name: `SDK v1 in ${revision}`,
    revision,
    connect: (port: number) => connectV1(port, revision),
  })),
  ...legacy.map((revision) => ({
    name: `SDK v2 in ${revision}`,
    revision,
    connect: (port: number) => connectV2(port, revision, { supportedProtocolVersions: [revision] }),
  })),
  {
    name: "SDK v2 in 2026-07-28",
    revision: "2026-07-28",
    connect: (port) => connectV2(port, "2026-07-28", { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
  },
  {
    name: "SDK v2 that finds out by itself",
    revision: "2026-07-28",
    connect: (port) => connectV2(port, "2026-07-28", { versionNegotiation: { mode: "auto" } }),
  },
];
