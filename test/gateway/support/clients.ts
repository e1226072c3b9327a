import * as v2 from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { connect as connectOwn, type ConnectOptions } from "../../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../../packages/client/src/client/negotiate.ts";

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: Progress) => void;
  readonly wantsLogs?: boolean;
}

export interface CallResult {
  readonly content: readonly { readonly type: string; readonly [member: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

export interface Named {
  readonly name: string;
  readonly [member: string]: unknown;
}

export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

/** A client of a gateway, whoever wrote it. Disposing it ends its session and closes it. */
export interface GatewayClient extends AsyncDisposable {
  readonly revision: string | undefined;
  /** Kinds of changes it heard of, in order: `tools`, `resources`, `prompts`, or the URI of a resource. */
  readonly changes: readonly string[];
  /** The data of log messages it heard, in order. */
  readonly logs: readonly unknown[];
  listTools(): Promise<readonly Named[]>;
  call(name: string, args?: object, options?: CallOptions): Promise<CallResult>;
  listResources(): Promise<readonly { readonly uri: string }[]>;
  listTemplates(): Promise<readonly { readonly uriTemplate: string }[]>;
  read(uri: string): Promise<unknown>;
  listPrompts(): Promise<readonly Named[]>;
  getPrompt(name: string, args: { readonly [name: string]: string }): Promise<unknown>;
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
  ): Promise<readonly string[]>;
  /** Begins to hear of changes of lists, and of a resource if one is named; resolves when it will. */
  watch(uri?: string): Promise<void>;
}

export interface ClientOptions {
  /** A bearer key. */
  readonly key?: string;
  /** Whether the user behind it can be asked to fill in a form, and says that her name is Ada. */
  readonly hasUser?: boolean;
}

export interface Dialect {
  readonly name: string;
  readonly isModern: boolean;
  connect(url: string, options?: ClientOptions): Promise<GatewayClient>;
}

const filled = { action: "accept", content: { name: "Ada" } } as const;
const headersOf = ({ key }: ClientOptions): { [name: string]: string } =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };

/** Text of a result, in one piece. */
export function textOf({ content }: CallResult): string {
  return content.map(({ text }) => (typeof text === "string" ? text : "")).join("");
}

interface Notice {
  readonly method: string;
  readonly params?: { readonly [member: string]: unknown } | undefined;
}

/** Sorts what a client is told without having asked. */
function createEar(): {
  readonly changes: string[];
  readonly logs: unknown[];
  hear(notice: Notice): Promise<void>;
} {
  const changes: string[] = [];
  const logs: unknown[] = [];
  return {
    changes,
    logs,
    hear: async ({ method, params }) => {
      const kind = /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(method)?.[1];
      if (kind !== undefined) changes.push(kind);
      if (method === "notifications/resources/updated") changes.push(String(params?.["uri"]));
      if (method === "notifications/message") logs.push(params?.["data"]);
    },
  };
}

async function connectV1(url: string, options: ClientOptions = {}): Promise<GatewayClient> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: headersOf(options) },
  });
  const client = new V1Client(
    { name: "sdk-v1", version: "1.0.0" },
    { capabilities: options.hasUser === true ? { elicitation: {} } : {} },
  );
  if (options.hasUser === true) client.setRequestHandler(ElicitRequestSchema, () => filled);
  const { changes, logs, hear } = createEar();
  client.fallbackNotificationHandler = hear;
  await client.connect(transport);
  return {
    revision: transport.protocolVersion,
    changes,
    logs,
    listTools: async () => allPages((page) => client.listTools(page), "tools"),
    call: async (name, args = {}, { wantsLogs, ...given } = {}) => {
      if (wantsLogs === true) await client.setLoggingLevel("debug");
      const params = { name, arguments: { ...args } };
      return (await client.callTool(params, CallToolResultSchema, given)) as CallResult;
    },
    listResources: async () => allPages((page) => client.listResources(page), "resources"),
    listTemplates: async () => allPages((page) => client.listResourceTemplates(page), "resourceTemplates"),
    read: async (uri) => (await client.readResource({ uri })).contents,
    listPrompts: async () => allPages((page) => client.listPrompts(page), "prompts"),
    getPrompt: async (name, args) => (await client.getPrompt({ name, arguments: { ...args } })).messages,
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
    watch: async (uri) => {
      if (uri !== undefined) await client.subscribeResource({ uri });
    },
    [Symbol.asyncDispose]: async () => {
      await transport.terminateSession();
      await client.close();
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

async function connectV2(
  url: string,
  negotiation: v2.ClientOptions,
  options: ClientOptions = {},
): Promise<GatewayClient> {
  const transport = new v2.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: headersOf(options) },
  });
  const client = new v2.Client(
    { name: "sdk-v2", version: "1.0.0" },
    { capabilities: options.hasUser === true ? { elicitation: { form: {} } } : {}, ...negotiation },
  );
  if (options.hasUser === true)
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Ada" } }));
  const { changes, logs, hear } = createEar();
  client.fallbackNotificationHandler = hear;
  await client.connect(transport);
  const isModern = client.getProtocolEra() === "modern";
  return {
    revision: client.getNegotiatedProtocolVersion(),
    changes,
    logs,
    listTools: async () => (await client.listTools()).tools,
    call: async (name, args = {}, { wantsLogs, ...given } = {}) => {
      if (wantsLogs === true && !isModern) await client.setLoggingLevel("debug");
      const meta =
        wantsLogs === true && isModern ? { _meta: { [v2.LOG_LEVEL_META_KEY]: "debug" as const } } : {};
      return (await client.callTool({ name, arguments: { ...args }, ...meta }, given)) as CallResult;
    },
    listResources: async () => (await client.listResources()).resources,
    listTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: async (uri) => (await client.readResource({ uri })).contents,
    listPrompts: async () => (await client.listPrompts()).prompts,
    getPrompt: async (name, args) => (await client.getPrompt({ name, arguments: { ...args } })).messages,
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
    watch: async (uri) => {
      if (!isModern) {
        if (uri !== undefined) await client.subscribeResource({ uri });
        return;
      }
      const lists = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true };
      await client.listen({ ...lists, ...(uri === undefined ? {} : { resourceSubscriptions: [uri] }) });
    },
    [Symbol.asyncDispose]: async () => {
      if (!isModern) await transport.terminateSession();
      await client.close();
    },
  };
}

async function connectJunctor(
  url: string,
  given: ConnectOptions,
  options: ClientOptions = {},
): Promise<GatewayClient> {
  const changes: string[] = [];
  const logs: unknown[] = [];
  const client = await connectOwn(url, {
    headers: headersOf(options),
    eras: createEraCache(),
    onLog: ({ data }) => void logs.push(data),
    ...(options.hasUser === true ? { handlers: { elicit: () => filled } } : {}),
    ...given,
  });
  return {
    revision: (await client.agreement()).mode.revision,
    changes,
    logs,
    listTools: async () => (await client.listTools()) as unknown as readonly Named[],
    call: async (name, args = {}, { signal, onprogress, wantsLogs } = {}) =>
      (await client.callTool(name, args, {
        ...(signal === undefined ? {} : { signal }),
        ...(wantsLogs === true ? { logLevel: "debug" as const } : {}),
        onEvent: (event) => {
          if (event.kind === "progress") onprogress?.({ progress: -1, ...event });
          else logs.push(event.data);
        },
      })) as unknown as CallResult,
    listResources: () => client.listResources(),
    listTemplates: () => client.listResourceTemplates(),
    read: async (uri) => (await client.readResource(uri)).contents,
    listPrompts: async () => (await client.listPrompts()) as unknown as readonly Named[],
    getPrompt: async (name, args) => (await client.getPrompt(name, args)).messages,
    complete: async (ref, argument) => (await client.complete(ref, argument)).values,
    watch: async (uri) => {
      client.onChange?.(({ part }) => changes.push(part));
      if (uri !== undefined) await client.watchResource(uri, (updated) => changes.push(updated));
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** Every client a gateway serves at once, in each era it has. */
export const dialects: readonly Dialect[] = [
  { name: "SDK v1", isModern: false, connect: connectV1 },
  {
    name: "SDK v2, legacy",
    isModern: false,
    connect: (url, options) => connectV2(url, { supportedProtocolVersions: ["2025-11-25"] }, options),
  },
  {
    name: "SDK v2, modern",
    isModern: true,
    connect: (url, options) =>
      connectV2(url, { versionNegotiation: { mode: { pin: "2026-07-28" } } }, options),
  },
  {
    name: "ours, legacy",
    isModern: false,
    connect: (url, options) => connectJunctor(url, { revision: "2025-11-25" }, options),
  },
  { name: "ours, modern", isModern: true, connect: (url, options) => connectJunctor(url, {}, options) },
];

/** Connects as our own client. */
export function connectTo(url: string, options: ClientOptions = {}): Promise<GatewayClient> {
  return connectJunctor(url, {}, options);
}
