import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  type JSONRPCMessage,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { legacyRevisions, type LegacyRevision } from "../../packages/core/src/mcp/revision.ts";
import { createWireTap, type WireTap } from "../support/wire-tap.ts";
import { createUser, type Dialect, type Notice, type SdkClient, type StdioServer } from "./sdk-client.ts";

/** `@modelcontextprotocol/sdk`, in each revision it speaks. */
export const v1Dialects: readonly Dialect[] = legacyRevisions.map((revision) => ({
  name: `SDK v1 in ${revision}`,
  revision,
  connect: (server) => connectV1(server, revision),
}));

/** The SDK's own transport, with a tap on it. The v1 client always offers its newest revision; here it offers another. */
class TappedTransport extends StdioClientTransport {
  readonly #tap: WireTap;
  readonly #revision: LegacyRevision;

  constructor(server: StdioServer, tap: WireTap, revision: LegacyRevision) {
    super({ ...server, stderr: "ignore" });
    this.#tap = tap;
    this.#revision = revision;
  }

  get child(): ChildProcess {
    return (this as unknown as { readonly _process: ChildProcess })._process;
  }

  override async start(): Promise<void> {
    await super.start();
    this.child.stdout?.on("data", (bytes: Uint8Array) => this.#tap.hear(bytes));
  }

  override send(message: JSONRPCMessage): Promise<void> {
    const isHandshake = "method" in message && message.method === "initialize";
    const sent = isHandshake
      ? { ...message, params: { ...message.params, protocolVersion: this.#revision } }
      : message;
    this.#tap.sent(sent);
    return super.send(sent);
  }
}

async function connectV1(server: StdioServer, revision: LegacyRevision): Promise<SdkClient> {
  const tap = createWireTap(revision);
  const user = createUser();
  const notices: Notice[] = [];
  let negotiated: string | undefined;
  const transport = new TappedTransport(server, tap, revision);
  const client = new Client(
    { name: "sdk-v1", version: "1.0.0" },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    const { action, content } = user.elicited(params);
    return content === undefined ? { action } : { action, content };
  });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: "assistant",
    content: { type: "text", text: user.sampled() },
    model: "a-model",
  }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: user.roots().map((uri) => ({ uri })) }));
  client.fallbackNotificationHandler = async (notice) => void notices.push(notice);
  await client.connect(
    Object.assign(transport, { setProtocolVersion: (version: string) => (negotiated = version) }),
  );

  return {
    tap,
    user,
    notices,
    revision: negotiated,
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    listTools: () => allPages(async (page) => client.listTools(page), "tools"),
    callTool: async (name, args = {}, { logLevel, ...options } = {}) => {
      if (logLevel !== undefined) await client.setLoggingLevel(logLevel);
      const params = { name, arguments: { ...args } };
      return (await client.callTool(params, CallToolResultSchema, options)) as Awaited<
        ReturnType<SdkClient["callTool"]>
      >;
    },
    listResources: () => allPages(async (page) => client.listResources(page), "resources"),
    listTemplates: () => allPages(async (page) => client.listResourceTemplates(page), "resourceTemplates"),
    readResource: async (uri) => (await client.readResource({ uri })).contents,
    listPrompts: () => allPages(async (page) => client.listPrompts(page), "prompts"),
    getPrompt: (name, args) => client.getPrompt({ name, arguments: { ...args } }),
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion,
    watch: async (uri) => {
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    close: async () => {
      const exited = once(transport.child, "exit");
      await client.close();
      const [code, signal] = (await exited) as [number | null, string | null];
      return { code, signal };
    },
  };
}

/** The v1 client lists one page at a time. */
async function allPages<Member extends string, Item>(
  list: (
    page: { cursor: string } | undefined,
  ) => Promise<{ [M in Member]: Item[] } & { nextCursor?: string | undefined }>,
  member: Member,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    items.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}
