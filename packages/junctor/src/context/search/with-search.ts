import { andThen } from "@junctor/core/async";
import { JsonError, NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { RawJson, scan, defineShape } from "@junctor/core/json";
import {
  type Content,
  type Tool,
  type ToolResult,
  definitionOf,
  ownerOf,
  withMembers,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { CallContext, CallerInfo, OldProvider, ToolCall, ToolOutcome } from "@junctor/core/provider";
import { delegateTo } from "../delegate.ts";
import { estimateTokens } from "../estimate.ts";
import { answerDescribe, answerSearch, refused, unknownTool } from "./answers.ts";
import { createSurface, surfaceNames } from "./search-surface.ts";
import { parametersOf } from "./signature.ts";
import { type IndexedList, type ServerOf, ToolIndex } from "./tool-index.ts";

export interface SearchOptions {
  /**
   * `search` (the default) always lists the tools of the search. `auto` lists all tools where they are below the budget, and to
   * clients that are known to defer tools by themselves.
   */
  readonly tools?: "search" | "auto";
  /** Tokens of definitions up to which `auto` lists all; 10,000. */
  readonly budget?: number;
  /** Names of tools that stay in the list. */
  readonly pin?: readonly string[];
  /** The server of a tool, and its name there; by default as `compose` named it, and the server `tools` for others. */
  readonly serverOf?: ServerOf;
  /** The servers that are named to a caller; by default those that have tools. */
  readonly serversFor?: (caller: CallerInfo) => readonly string[];
  /** Servers whose `readOnlyHint` is believed: their tools can be called by `call_read_tool`. None by default. */
  readonly trustsHints?: (server: string) => boolean;
  /** Whether there may be such servers; by default, whether `trustsHints` is given. */
  readonly hasReadTool?: () => boolean;
  /** Wraps the tools of the search itself, such as in middleware. Calls of other tools do not pass through it. */
  readonly own?: (tools: OldProvider) => OldProvider;
}

const optionKeys: KeysOf<SearchOptions> = keys(
  "tools budget pin serverOf serversFor trustsHints hasReadTool own",
);

const usualBudget = 10_000;

/** Clients that show a model the names of tools and load definitions when it asks, by the names they say. */
const deferring = /^(?:claude-code|codex|visual studio code|openai)/i;

/**
 * A provider whose tools are found by a search, for a model that cannot hold all their definitions: the list has
 * `search_tools`, `describe_tools`, `call_read_tool`, `call_tool` and what is pinned. Whatever a caller finds is in the provider's own list for that
 * caller, and calls go to the provider under their real names. Those stay callable.
 *
 * @example
 * const server = createServer(withSearch(gateway.provider), { name: "tools", version: "1.0.0" });
 */
export function withSearch(provider: OldProvider, options: SearchOptions = {}): OldProvider {
  assertKnownKeys("withSearch", options, optionKeys);
  const { tools: mode = "search", budget = usualBudget, pin = [], serverOf = ownerOrNone } = options;
  const { trustsHints = () => false, own: wrap = (tools: OldProvider) => tools } = options;
  const { hasReadTool = () => options.trustsHints !== undefined } = options;
  const index = new ToolIndex(serverOf);
  const surfaces = new Surfaces(pin);

  const isOverBudget = createMeter(budget);
  const isSearched = (tools: readonly Tool[], context: CallContext): boolean =>
    mode === "search" || (!deferring.test(context.clientInfo?.name ?? "") && isOverBudget(tools));
  const search = async (context: CallContext): Promise<IndexedList> =>
    index.of(await provider.listTools(context), context);
  const surfaceFor = (tools: readonly Tool[], context: CallContext): readonly Tool[] => {
    const servers = options.serversFor?.(context) ?? [
      ...new Set(tools.map((tool) => serverOf(tool, context).server)),
    ];
    return surfaces.of(tools, servers, hasReadTool());
  };

  const own = wrap({
    listTools: async (context) => surfaceFor(await provider.listTools(context), context),
    callTool: async ({ name, arguments: args }, context) =>
      name === surfaceNames.search
        ? answerSearch(await search(context), args.value)
        : answerDescribe(await search(context), args.value),
  });

  const assertReads = async (name: string, context: CallContext): Promise<void> => {
    const indexed = await search(context);
    const tool = indexed.byName.get(name);
    if (tool === undefined) throw refused(unknownTool(name, indexed));
    if (tool.annotations?.readOnlyHint !== true || !trustsHints(serverOf(tool, context).server))
      throw refused(`${name} is not known to only read. Call it by ${surfaceNames.call}.`);
  };
  /** What a tool takes now; undefined where there is none of that name. */
  const signature = async (name: string, context: CallContext): Promise<string | undefined> => {
    const tool = (await provider.listTools(context)).find((each) => each.name === name);
    return tool && `${name}(${parametersOf(tool, maxSignature)})`;
  };
  /** The text for a model that named no tool, or whose arguments were refused. */
  const explain = async (error: unknown, name: string, context: CallContext): Promise<unknown> => {
    const isUnknown = error instanceof NotFoundError && error.what === "tool" && error.id === name;
    if (isUnknown) return refused(unknownTool(name, await search(context)));
    const isRefused =
      (error instanceof RpcError && error.rpcCode === -32602) ||
      (error instanceof ToolError && error.code === "tool.invalid_arguments");
    if (!isRefused) return error;
    const text = await signature(name, context);
    return text === undefined ? error : refused(`${error.message}\n${text}`);
  };
  const callInner = async (call: ToolCall, context: CallContext): Promise<ToolOutcome> => {
    const inner = unwrap(call);
    if (call.name === surfaceNames.read) await assertReads(inner.name, context);
    try {
      const outcome = await provider.callTool(inner, context);
      return isRefusal(outcome) ? withSignature(outcome, await signature(inner.name, context)) : outcome;
    } catch (error) {
      throw await explain(error, inner.name, context);
    }
  };

  return {
    ...delegateTo(provider),
    listTools: (context) =>
      andThen(provider.listTools(context), (tools) => {
        if (!isSearched(tools, context)) return tools;
        void index.of(tools, context).catch(() => {}); // The search that needs it fails, and says why.
        return surfaceFor(tools, context);
      }),
    toolNamed: async (name, context) => {
      const tools = await provider.listTools(context);
      return (
        surfaceFor(tools, context).find((tool) => tool.name === name) ??
        tools.find((tool) => tool.name === name)
      );
    },
    callTool: (call, context) => {
      const { search: finding, describe, read, call: calling } = surfaceNames;
      if (call.name === finding || call.name === describe) return own.callTool(call, context);
      return call.name === read || call.name === calling
        ? callInner(call, context)
        : provider.callTool(call, context);
    },
    listMeta: (list) => provider.listMeta?.(surfaces.originOf(list)),
    // The tools of the search stay the same while servers come and go, and with them the prompt that a model has cached.
    onChange: (listener) =>
      provider.onChange?.((change) => {
        const isHidden =
          mode === "search" && pin.length === 0 && change.kind === "tools" && change.origin !== undefined;
        if (!isHidden) listener(change);
      }) ?? (() => {}),
    get cacheHints() {
      return provider.cacheHints;
    },
  };
}

/** The lists that a search shows, one for each list of the provider and each set of servers. */
class Surfaces {
  readonly #pin: ReadonlySet<string>;
  /** By the names of the servers. */
  readonly #bare = new Map<string, readonly Tool[]>();
  readonly #made = new WeakMap<readonly Tool[], Map<readonly Tool[], readonly Tool[]>>();
  readonly #origins = new WeakMap<readonly object[], readonly object[]>();

  constructor(pin: readonly string[]) {
    this.#pin = new Set(pin);
  }

  of(tools: readonly Tool[], servers: readonly string[], hasReadTool: boolean): readonly Tool[] {
    const key = JSON.stringify([servers, hasReadTool]);
    let bare = this.#bare.get(key);
    if (bare === undefined) {
      if (this.#bare.size >= maxSurfaces) this.#bare.clear();
      this.#bare.set(key, (bare = createSurface(servers, hasReadTool)));
    }
    const made = this.#made.get(tools) ?? new Map<readonly Tool[], readonly Tool[]>();
    this.#made.set(tools, made);
    let list = made.get(bare);
    if (list === undefined) {
      const taken = new Set(bare.map(({ name }) => name));
      const pinned = tools.filter(({ name }) => this.#pin.has(name) && !taken.has(name)).map(toPinned);
      made.set(bare, (list = Object.freeze([...bare, ...pinned])));
      this.#origins.set(list, tools);
    }
    return list;
  }

  /** The provider's list that a list was made from; the list itself if it is none of ours. */
  originOf(list: readonly object[]): readonly object[] {
    return this.#origins.get(list) ?? list;
  }
}

const maxSurfaces = 1024;

/** Claude Code defers tools by itself, and loads those at once that say so. */
function toPinned(tool: Tool): Tool {
  return withMembers(tool, { _meta: { ...tool._meta, "anthropic/alwaysLoad": true } });
}

/** Tells whether the definitions of a list are more than so many tokens. It counts no further than that, and once for each list. */
function createMeter(budget: number): (tools: readonly Tool[]) => boolean {
  const known = new WeakMap<readonly Tool[], boolean>();
  return (tools) => {
    let isOver = known.get(tools);
    if (isOver === undefined) {
      let left = budget;
      isOver = tools.some((tool) => (left -= estimateTokens(definitionOf(tool).byteLength)) < 0);
      if (Object.isFrozen(tools)) known.set(tools, isOver);
    }
    return isOver;
  };
}

/** Characters of a signature for a call whose arguments were refused. */
const maxSignature = 2000;
/** Servers tell models in many words that arguments do not fit, and most of them the code. */
const refusalText = /-32602|validation error|invalid arguments/i;
const maxRefusal = 64 * 1024;

/** Whether a tool was not run because of its arguments. */
function isRefusal(outcome: ToolOutcome): outcome is ToolOutcome & { readonly kind: "complete" } {
  if (outcome.kind !== "complete") return false;
  if (outcome.refusal === "tool.invalid_arguments") return true;
  const { result } = outcome;
  const isError = result.byteLength < maxRefusal && result.at("isError")?.text === "true";
  return isError && refusalText.test(result.text);
}

function withSignature(
  outcome: ToolOutcome & { readonly kind: "complete" },
  text: string | undefined,
): ToolOutcome {
  if (text === undefined) return outcome;
  const { content, ...rest } = outcome.result.value as Partial<ToolResult>;
  const given: readonly Content[] = Array.isArray(content) ? content : [];
  const result: ToolResult = { ...rest, content: [...given, { type: "text", text }] };
  return { ...outcome, result: RawJson.fromValue(result) };
}

const callShape = defineShape({ name: true, arguments: true });
const empty = RawJson.fromText("{}");

/** The call inside of a call. Its arguments keep their bytes. A key that comes twice is refused: others may read the first. */
function unwrap({ arguments: args, round }: ToolCall): ToolCall {
  const { bytes } = args;
  let inner: RawJson;
  try {
    inner = RawJson.fromScan(bytes, callShape, scan(bytes, callShape));
  } catch (error) {
    throw error instanceof JsonError ? refused(error.message) : error;
  }
  const name = inner.at("name");
  const given = inner.at("arguments") ?? empty;
  if (name?.kind !== "string") throw refused('"name" must be the name of a tool');
  if (given.kind !== "object") throw refused('"arguments" must be an object');
  return { name: name.value as string, arguments: given, round };
}

/** A name does not say whose a tool is: a registry may have tools whose names look like those of a composition. */
function ownerOrNone(tool: Tool): ReturnType<ServerOf> {
  return ownerOf(tool) ?? { server: "tools", ownName: tool.name };
}
