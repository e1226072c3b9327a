import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  Client,
  type ClientOptions,
  type JSONRPCMessage,
  LOG_LEVEL_META_KEY,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { legacyRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import { createWireTap, type WireTap } from "../support/wire-tap.ts";
import { createUser, type Dialect, type Notice, type SdkClient, type StdioServer } from "./sdk-client.ts";

/** `@modelcontextprotocol/client`, in each revision it speaks: the handshake of the old ones, and the modern one. */
export const v2Dialects: readonly Dialect[] = [
  ...legacyRevisions.map((revision) => ({
    name: `SDK v2 in ${revision}`,
    revision,
    connect: (server: StdioServer) => connectV2(server, revision, { supportedProtocolVersions: [revision] }),
  })),
  {
    name: "SDK v2 in 2026-07-28",
    revision: "2026-07-28",
    connect: (server) =>
      connectV2(server, "2026-07-28", { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
  },
];

/** The SDK's own transport, with a tap on it. Being a subclass, it probes on the same pipe, so the tap hears that too. */
class TappedTransport extends StdioClientTransport {
  readonly #tap: WireTap;

  constructor(server: StdioServer, tap: WireTap) {
    super({ ...server, stderr: "ignore" });
    this.#tap = tap;
  }

  get child(): ChildProcess {
    return (this as unknown as { readonly _process: ChildProcess })._process;
  }

  override async start(): Promise<void> {
    await super.start();
    this.child.stdout?.on("data", (bytes: Uint8Array) => this.#tap.hear(bytes));
  }

  override send(message: JSONRPCMessage): Promise<void> {
    this.#tap.sent(message);
    return super.send(message);
  }
}

async function connectV2(
  server: StdioServer,
  revision: Revision,
  options: ClientOptions,
): Promise<SdkClient> {
  const tap = createWireTap(revision);
  const user = createUser();
  const notices: Notice[] = [];
  const transport = new TappedTransport(server, tap);
  const client = new Client(
    { name: "sdk-v2", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} }, ...options },
  );
  client.setRequestHandler("elicitation/create", ({ params }) => {
    const { action, content } = user.elicited(params);
    return content === undefined ? { action } : { action, content: { ...content } };
  });
  client.setRequestHandler("sampling/createMessage", () => ({
    role: "assistant",
    content: { type: "text", text: user.sampled() },
    model: "a-model",
  }));
  client.setRequestHandler("roots/list", () => ({ roots: user.roots().map((uri) => ({ uri })) }));
  client.fallbackNotificationHandler = async (notice) => void notices.push(notice);
  await client.connect(transport);
  const isModern = client.getProtocolEra() === "modern";

  return {
    tap,
    user,
    notices,
    revision: client.getNegotiatedProtocolVersion(),
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    listTools: async () => (await client.listTools()).tools,
    callTool: async (name, args = {}, { logLevel, ...options } = {}) => {
      if (logLevel !== undefined && !isModern) await client.setLoggingLevel(logLevel);
      const meta = logLevel !== undefined && isModern ? { _meta: { [LOG_LEVEL_META_KEY]: logLevel } } : {};
      return client.callTool({ name, arguments: { ...args }, ...meta }, options) as ReturnType<
        SdkClient["callTool"]
      >;
    },
    listResources: async () => (await client.listResources()).resources,
    listTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
    readResource: async (uri) => (await client.readResource({ uri })).contents,
    listPrompts: async () => (await client.listPrompts()).prompts,
    getPrompt: (name, args) => client.getPrompt({ name, arguments: { ...args } }),
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion,
    watch: async (uri) => {
      if (!isModern) {
        await client.subscribeResource({ uri });
        return async () => void (await client.unsubscribeResource({ uri }));
      }
      const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      return () => subscription.close();
    },
    close: async () => {
      const exited = once(transport.child, "exit");
      await client.close();
      const [code, signal] = (await exited) as [number | null, string | null];
      return { code, signal };
    },
  };
}
