import { andThen, type Awaitable, settled } from "@junctor/core/async";
import { JsonError, NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { defineShape, isJsonObject, type JsonObject, RawJson, scan } from "@junctor/core/json";
import {
  type Content,
  definitionOf,
  ownerOf,
  type Tool,
  type ToolResult,
  withMembers,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf, nearest } from "@junctor/core/options";
import {
  type CallContext,
  type CallerInfo,
  emptyListing,
  findIn,
  type Listing,
  type Notice,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
} from "@junctor/core/provider";
import { clip } from "@junctor/core/schema";
import { estimateTokens } from "./estimate.ts";
import { type IndexedList, type ServerOf, ToolIndex } from "./tool-index.ts";

/** When tools are listed, and when they are left for the model to search. */
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
  readonly own?: (tools: Provider) => Provider;
}

const optionKeys: KeysOf<SearchOptions> = keys(
  "tools budget pin serverOf serversFor trustsHints hasReadTool own",
);

const usualBudget = 10_000;

/** Clients that show a model the names of tools and load definitions when it asks, by the names they send. */
const deferring = /^(?:claude-code|codex|visual studio code|openai)/i;

/**
 * A provider whose tools are found by a search, for a model that cannot hold all their definitions: the list has
 * `search_tools`, `describe_tools`, `call_read_tool`, `call_tool` and what is pinned. Whatever a caller finds is in the provider's own list for that
 * caller, and calls go to the provider under their real names. Those stay callable.
 *
 * @example
 * const server = createServer(withSearch(gateway.provider), { name: "tools", version: "1.0.0" });
 */
export function withSearch(inner: Provider, options: SearchOptions = {}): Provider {
  assertKnownKeys("withSearch", options, optionKeys);
  const tools = new SearchedTools(inner, options);
  return {
    ...inner,
    list: (part, context) =>
      andThen(settled(inner.list(part, context)), (given) =>
        part === "tools" ? (tools.show(given as Listing<Tool>, context) as typeof given) : given,
      ),
    find: (part, name, context) => {
      if (part !== "tools" || !tools.mayShow(name)) return findIn(inner, part, name, context);
      return andThen(tools.listForSearch(context), (list) => {
        const item = list.get(name);
        return item === undefined ? findIn(inner, part, name, context) : { key: name, item: item as never };
      });
    },
    call: (operation, context) => tools.call(operation, context),
    ...(inner.watch === undefined
      ? {}
      : {
          watch: (target, context, listener) =>
            isOfCalling(target)
              ? atTool(target, (found) => watchTask(inner, found, context, listener))
              : (inner.watch?.(target, context, listener) ?? (() => {})),
        }),
    // The tools of the search stay the same while servers come and go, and with them the prompt that a model has cached.
    onChange: (listener) =>
      inner.onChange?.((change) => {
        const isHidden = tools.isSteady && change.part === "tools" && change.origin !== undefined;
        if (!isHidden) listener(change);
      }) ?? (() => {}),
  };
}

/** The tools of a provider behind a search: what a caller is shown of them, and how it calls what it found. */
class SearchedTools {
  readonly #inner: Provider;
  readonly #options: SearchOptions;
  readonly #serverOf: ServerOf;
  readonly #hasReadTool: () => boolean;
  readonly #index: ToolIndex;
  readonly #lists: SearchLists;
  readonly #shown: ReadonlySet<string>;
  readonly #isOverBudget: (listing: Listing<Tool>) => boolean;
  /** `search_tools` and `describe_tools`, with what the options wrap around them. */
  readonly #own: Provider;
  /** Whether the list stays the same whatever tools there are. */
  readonly isSteady: boolean;

  constructor(inner: Provider, options: SearchOptions) {
    const { tools = "search", budget = usualBudget, pin = [], serverOf = ownerOrNone, own } = options;
    this.#inner = inner;
    this.#options = options;
    this.#serverOf = serverOf;
    this.#hasReadTool = options.hasReadTool ?? (() => options.trustsHints !== undefined);
    this.#index = new ToolIndex(serverOf);
    this.#lists = new SearchLists(pin);
    this.#shown = new Set([...Object.values(searchToolNames), ...pin]);
    this.#isOverBudget = createMeter(budget);
    this.#own = own === undefined ? this.#createFinder() : own(this.#createFinder());
    this.isSteady = tools === "search" && pin.length === 0;
  }

  /** Whether a tool of this name may be in the list of the search. */
  mayShow(name: string): boolean {
    return this.#shown.has(name);
  }

  /** The list of the search, or where none is needed, the list as it is. */
  show(listing: Listing<Tool>, context: CallContext): Listing<Tool> {
    if (!this.#isSearched(listing, context)) return listing;
    void this.#index.of(listing.items, context).catch(() => {}); // The search that needs it fails, and says why.
    return this.#searchListFor(listing, context);
  }

  listForSearch(context: CallContext): Awaitable<Listing<Tool>> {
    return andThen(this.#list(context), (listing) => this.#searchListFor(listing, context));
  }

  call(operation: Operation, context: CallContext): Awaitable<Outcome> {
    const { method, name } = operation;
    if (isOfCalling(operation))
      return method === "tools/call"
        ? this.#callFound(operation, context)
        : atTool(operation, (found) =>
            andThen(settled(this.#inner.call(found, context)), (outcome) => withTool(outcome, found.name)),
          );
    const isOwn =
      method === "tools/call" && (name === searchToolNames.search || name === searchToolNames.describe);
    return (isOwn ? this.#own : this.#inner).call(operation, context);
  }

  #createFinder(): Provider {
    return {
      list: (part, context) =>
        part === "tools" ? (this.listForSearch(context) as Awaitable<Listing<never>>) : emptyListing,
      call: async ({ name, arguments: args }, context) =>
        name === searchToolNames.search
          ? answerSearch(await this.#search(context), args.value)
          : answerDescribe(await this.#search(context), args.value),
      offers: () => ({ serves: (method) => method === "tools/list" || method === "tools/call" }),
    };
  }

  #isSearched(listing: Listing<Tool>, context: CallContext): boolean {
    if (this.#options.tools !== "auto") return true;
    return !deferring.test(context.clientInfo?.name ?? "") && this.#isOverBudget(listing);
  }

  #list(context: CallContext): Awaitable<Listing<Tool>> {
    return settled(this.#inner.list("tools", context));
  }

  async #search(context: CallContext): Promise<IndexedList> {
    return this.#index.of((await this.#list(context)).items, context);
  }

  #searchListFor(listing: Listing<Tool>, context: CallContext): Listing<Tool> {
    const servers = this.#options.serversFor?.(context) ?? [
      ...new Set(listing.items.map((tool) => this.#serverOf(tool, context).server)),
    ];
    return this.#lists.of(listing, servers, this.#hasReadTool());
  }

  async #callFound(operation: Operation, context: CallContext): Promise<Outcome> {
    const found = unwrap(operation);
    if (operation.name === searchToolNames.read) await this.#assertReads(found.name, context);
    try {
      const outcome = withTool(await this.#inner.call(found, context), found.name);
      if (!isRefusal(outcome)) return outcome;
      return withSignature(outcome, await this.#signature(found.name, context));
    } catch (error) {
      throw await this.#explain(error, found.name, context);
    }
  }

  async #assertReads(name: string, context: CallContext): Promise<void> {
    const indexed = await this.#search(context);
    const tool = indexed.byName.get(name);
    if (tool === undefined) throw refused(unknownTool(name, indexed));
    const { server } = this.#serverOf(tool, context);
    if (tool.annotations?.readOnlyHint !== true || this.#options.trustsHints?.(server) !== true)
      throw refused(`${name} is not known to only read. Call it by ${searchToolNames.call}.`);
  }

  /** What a tool takes now; undefined where no tool has that name. */
  async #signature(name: string, context: CallContext): Promise<string | undefined> {
    const tool = (await this.#list(context)).get(name);
    return tool && `${name}(${parametersOf(tool, maxSignature)})`;
  }

  /** The text for a model that named no tool, or whose arguments were refused. */
  async #explain(error: unknown, name: string, context: CallContext): Promise<unknown> {
    const isUnknown = error instanceof NotFoundError && error.what === "tool" && error.id === name;
    if (isUnknown) return refused(unknownTool(name, await this.#search(context)));
    const isRefused =
      (error instanceof RpcError && error.rpcCode === -32602) ||
      (error instanceof ToolError && error.code === "tool.invalid_arguments");
    if (!isRefused) return error;
    const text = await this.#signature(name, context);
    return text === undefined ? error : refused(`${error.message}\n${text}`);
  }
}

/** Whether something is for one of the tools that call others, or for a task that such a call became. */
function isOfCalling({ part, name }: Target): boolean {
  return part === "tools" && (name === searchToolNames.read || name === searchToolNames.call);
}

/** The lists that a search shows, one for each list of the provider and each set of servers. */
class SearchLists {
  readonly #pin: ReadonlySet<string>;
  /** By the names of the servers. */
  readonly #bare = new Map<string, readonly Tool[]>();
  readonly #made = new WeakMap<Listing<Tool>, Map<readonly Tool[], Listing<Tool>>>();

  constructor(pin: readonly string[]) {
    this.#pin = new Set(pin);
  }

  of(listing: Listing<Tool>, servers: readonly string[], hasReadTool: boolean): Listing<Tool> {
    const key = JSON.stringify([servers, hasReadTool]);
    let bare = this.#bare.get(key);
    if (bare === undefined) {
      if (this.#bare.size >= maxSearchLists) this.#bare.clear();
      this.#bare.set(key, (bare = createSearchTools(servers, hasReadTool)));
    }
    const made = this.#made.get(listing) ?? new Map<readonly Tool[], Listing<Tool>>();
    this.#made.set(listing, made);
    let list = made.get(bare);
    if (list === undefined) {
      const taken = new Set(bare.map(({ name }) => name));
      const pinned = listing.items.filter(({ name }) => this.#pin.has(name) && !taken.has(name));
      made.set(bare, (list = listing.with(Object.freeze([...bare, ...pinned.map(toPinned)]))));
    }
    return list;
  }
}

const maxSearchLists = 1024;

/** Claude Code defers tools by itself, and loads at once those with this mark. */
function toPinned(tool: Tool): Tool {
  return withMembers(tool, { _meta: { ...tool._meta, "anthropic/alwaysLoad": true } });
}

/** Tells whether the definitions of a list are more than a number of tokens. It counts no further than that, and once for each list. */
function createMeter(budget: number): (listing: Listing<Tool>) => boolean {
  const known = new WeakMap<Listing<Tool>, boolean>();
  return (listing) => {
    let isOver = known.get(listing);
    if (isOver === undefined) {
      let left = budget;
      isOver = listing.items.some((tool) => (left -= estimateTokens(definitionOf(tool).byteLength)) < 0);
      known.set(listing, isOver);
    }
    return isOver;
  };
}

/** Characters of a signature for a call whose arguments were refused. */
const maxSignature = 2000;
/** Servers report invalid arguments in many ways; most of them name the code. */
const refusalText = /-32602|validation error|invalid arguments/i;
const maxRefusal = 64 * 1024;

/** Whether a tool was not run because of its arguments. */
function isRefusal(outcome: Outcome): outcome is Outcome & { readonly kind: "complete" } {
  if (outcome.kind !== "complete") return false;
  if (outcome.refusal === "tool.invalid_arguments") return true;
  const { result } = outcome;
  const isError = result.byteLength < maxRefusal && result.at("isError")?.text === "true";
  return isError && refusalText.test(result.text);
}

function withSignature(outcome: Outcome & { readonly kind: "complete" }, text: string | undefined): Outcome {
  if (text === undefined) return outcome;
  const { content, ...rest } = outcome.result.value as Partial<ToolResult>;
  const blocks: readonly Content[] = Array.isArray(content) ? content : [];
  const result: ToolResult = { ...rest, content: [...blocks, { type: "text", text }] };
  return { ...outcome, result: RawJson.fromValue(result) };
}

const callShape = defineShape({ name: true, arguments: true });
const empty = RawJson.fromText("{}");

/** The call inside of a call. Its arguments keep their bytes. A key that comes twice is refused: others may read the first. */
function unwrap(operation: Operation): Operation {
  const { bytes } = operation.arguments;
  let inner: RawJson;
  try {
    inner = RawJson.fromScan(bytes, callShape, scan(bytes, callShape));
  } catch (error) {
    throw error instanceof JsonError ? refused(error.message) : error;
  }
  const name = inner.at("name");
  const args = inner.at("arguments") ?? empty;
  if (name?.kind !== "string") throw refused('"name" must be the name of a tool');
  if (args.kind !== "object") throw refused('"arguments" must be an object');
  return { ...operation, name: name.value as string, arguments: args };
}

/** A task of a tool that was called by another: callers name it by that other, so its ref says which tool it is. */
function withTool(outcome: Outcome, tool: string): Outcome {
  const { task } = outcome;
  return task === undefined
    ? outcome
    : { ...outcome, task: { ...task, ref: JSON.stringify([tool, task.ref]) } };
}

/** Goes on with the tool of such a task, and the ref that the tool's provider gave. */
function atTool<T extends Target, R>(target: T, go: (found: T) => R): R {
  const { ref = "" } = target;
  const [tool, own] = parseRef(ref);
  if (typeof tool !== "string" || typeof own !== "string") throw new NotFoundError("task", ref);
  return go({ ...target, name: tool, ref: own });
}

function parseRef(ref: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(ref);
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

function watchTask(
  inner: Provider,
  found: Target,
  context: CallContext,
  listener: (notice: Notice) => void,
): Awaitable<() => void> {
  const tell = (notice: Notice): void =>
    listener(notice.kind === "task" ? { ...notice, outcome: withTool(notice.outcome, found.name) } : notice);
  return inner.watch?.(found, context, tell) ?? (() => {});
}

/** A name does not prove which server has a tool: a registry may have tools whose names look like those of a composition. */
function ownerOrNone(tool: Tool): ReturnType<ServerOf> {
  return ownerOf(tool) ?? { server: "tools", ownName: tool.name };
}

/** The names of the tools that a search shows in place of all others. */
export const searchToolNames = {
  search: "search_tools",
  describe: "describe_tools",
  read: "call_read_tool",
  call: "call_tool",
} as const;

/** The most signatures, and most names after them, in one answer. */
const shownSignatures = 8;
const maxSignatures = 20;
const shownInAll = 40;
const maxDescribed = 5;

/** Servers are named in the description of the search: a model does not look for what it has not heard of. */
const maxServersText = 1400;

/** The tools of a search. They are the same while the servers are. */
export function createSearchTools(servers: readonly string[], hasReadTool: boolean): readonly Tool[] {
  const { search, describe, read, call } = searchToolNames;
  const name = { type: "string", description: "The tool's name." };
  const args = { type: "object", description: "Its arguments." };
  const calling = { type: "object", properties: { name, arguments: args }, required: ["name"] };
  const ways = hasReadTool ? `${read} or ${call}` : call;
  const tools: readonly Tool[] = [
    {
      name: search,
      description:
        `Finds tools of these servers: ${namesText(servers)}. Say what is to be done, or name a tool. ` +
        `Answers with signatures and more names. Then use ${ways}.`,
      inputSchema: {
        type: "object",
        properties: {
          query: { type: "string", description: "Left out: the servers and how many tools each has." },
          server: { type: "string", description: "Only tools of this server." },
          limit: { type: "integer", minimum: 1, maximum: maxSignatures, description: "Signatures; 8." },
        },
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: describe,
      description: "The full definitions of tools, where a signature is not enough.",
      inputSchema: {
        type: "object",
        properties: {
          names: { type: "array", items: { type: "string" }, minItems: 1, maxItems: maxDescribed },
        },
        required: ["names"],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ...(hasReadTool
      ? [
          {
            name: read,
            description: "Calls a tool that only reads.",
            inputSchema: calling,
            annotations: { readOnlyHint: true },
          },
        ]
      : []),
    {
      name: call,
      description: hasReadTool ? "Calls any other tool." : "Calls a tool.",
      inputSchema: calling,
      annotations: { destructiveHint: true },
    },
  ];
  return Object.freeze(tools);
}

function namesText(servers: readonly string[]): string {
  let text = "";
  for (const [index, server] of servers.entries()) {
    if (text.length + server.length > maxServersText) return `${text} and ${servers.length - index} more`;
    text += index === 0 ? server : `, ${server}`;
  }
  return text === "" ? "none yet" : text;
}

/** Characters of one answer of a search: less than 1,000 tokens, also of names that are many tokens each. */
const maxAnswer = 3000;

/** Answers `search_tools`: signatures of the best, then names of the next; without a query, the servers. */
function answerSearch(index: IndexedList, args: unknown): Outcome {
  const { query, server, limit } = readSearch(args, index);
  if (query === undefined) return text(describeServers(index, server));
  const best = server === undefined ? index.best(query, shownInAll) : index.bestOf(server, query, shownInAll);
  if (best.length === 0)
    return text("No tool fits. Try other words, or leave out the query to see the servers.");
  const { byName } = index;
  const lines: string[] = [];
  let left = maxAnswer;
  for (const name of best.slice(0, limit)) {
    const tool = byName.get(name);
    const line = tool === undefined ? name : signatureOf(tool);
    left -= line.length + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const names: string[] = [];
  for (const name of best.slice(lines.length)) {
    left -= name.length + 2;
    if (left < 0) break;
    names.push(name);
  }
  return text([...lines, ...(names.length === 0 ? [] : [`More: ${names.join(", ")}`])].join("\n"));
}

/** Answers `describe_tools`: each definition as the list has it. */
function answerDescribe(index: IndexedList, args: unknown): Outcome {
  const { names } = readObject(args);
  if (!Array.isArray(names) || names.length === 0 || names.length > maxDescribed || !names.every(isText))
    throw refused(`"names" must be an array of 1 to ${maxDescribed} names of tools`);
  const { byName } = index;
  const content = (names as readonly string[]).map((name) => {
    const tool = byName.get(name);
    return { type: "text", text: tool === undefined ? unknownTool(name, index) : definitionOf(tool).text };
  });
  const isError = (names as readonly string[]).every((name) => !byName.has(name));
  return { kind: "complete", result: RawJson.fromValue({ content, ...(isError ? { isError } : {}) }) };
}

/** The most characters of a query, and of a name that is not there. */
const maxQuery = 1000;
/** The most names that are compared with one that is not there, letter by letter. */
const maxCompared = 1000;

/** The text for a model that used an unknown name. */
function unknownTool(given: string, index: IndexedList): string {
  const name = given.length > maxQuery ? `${given.slice(0, maxQuery)}…` : given;
  const all = [...index.servers.values()].flat();
  const near = nearest(name, all.length > maxCompared ? index.best(name, maxCompared) : all);
  const three = [...new Set([...(near === undefined ? [] : [near]), ...index.best(name, 3)])].slice(0, 3);
  const hint = three.length === 0 ? "" : ` Nearest: ${three.join(", ")}.`;
  return `Unknown tool: ${JSON.stringify(name)}.${hint} Look for it with search_tools.`;
}

function readSearch(
  args: unknown,
  { servers }: IndexedList,
): {
  readonly query: string | undefined;
  readonly server: string | undefined;
  readonly limit: number;
} {
  const { query, server, limit = shownSignatures } = readObject(args);
  if (query !== undefined && query !== null && !isText(query)) throw refused('"query" must be a string');
  if (isText(query) && query.length > maxQuery)
    throw refused(`"query" has ${query.length} characters; the limit is ${maxQuery}`);
  if (server !== undefined && server !== null && !(isText(server) && servers.has(server)))
    throw refused(`"server" must be one of the servers; leave out "query" to see them`);
  const isLimit =
    typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= maxSignatures;
  if (!isLimit) throw refused(`"limit" must be a whole number from 1 to ${maxSignatures}`);
  const asked = isText(query) && query.trim() !== "" ? query : undefined;
  return { query: asked, server: isText(server) ? server : undefined, limit };
}

/** The servers and how many tools each has; of one server, the names of its tools. */
function describeServers({ servers }: IndexedList, server: string | undefined): string {
  const counts = [...servers].map(([name, tools]) => `${name} (${tools.length})`);
  const parts = server === undefined ? counts : (servers.get(server) ?? []);
  let shown = "";
  for (const [number, part] of parts.entries()) {
    if (shown.length + part.length > maxAnswer) return `${shown}, and ${parts.length - number} more`;
    shown += number === 0 ? part : `, ${part}`;
  }
  return shown === "" ? "There are no tools." : shown;
}

/** The arguments of a tool of our own, which must be an object. */
function readObject(args: unknown): JsonObject {
  if (typeof args !== "object" || args === null || Array.isArray(args))
    throw refused("The arguments must be an object");
  return args as JsonObject;
}

function refused(message: string): ToolError {
  return new ToolError(message, { code: "tool.invalid_arguments" });
}

function text(value: string): Outcome {
  return { kind: "complete", result: RawJson.fromValue({ content: [{ type: "text", text: value }] }) };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

const maxParameters = 110;
const maxDescription = 100;

/** A tool in one line: `name(owner: string, body?: string) — What it does`. Long ones are cut. */
function signatureOf(tool: Tool): string {
  const about = firstSentence(tool.description ?? tool.title ?? "");
  return `${tool.name}(${parametersOf(tool)})${about === "" ? "" : ` — ${clip(about, maxDescription)}`}`;
}

/** The parameters of a tool, cut where they are long. */
function parametersOf(tool: Tool, most: number = maxParameters): string {
  const { properties, required } = tool.inputSchema;
  if (!isJsonObject(properties)) return "";
  const needed = new Set(Array.isArray(required) ? required : []);
  const names = Object.keys(properties);
  const sorted = [...names.filter((name) => needed.has(name)), ...names.filter((name) => !needed.has(name))];
  let text = "";
  for (const name of sorted) {
    const part = `${name}${needed.has(name) ? "" : "?"}: ${typeOf(properties[name])}`;
    const joined = text === "" ? part : `${text}, ${part}`;
    if (joined.length > most) return text === "" ? "…" : `${text}, …`;
    text = joined;
  }
  return text;
}

const maxChoices = 40;

function typeOf(schema: unknown): string {
  if (!isJsonObject(schema)) return "any";
  const { enum: choices, type, items } = schema;
  if (Array.isArray(choices)) {
    const text = choices.map((choice) => JSON.stringify(choice)).join("|");
    if (text.length <= maxChoices) return text;
  }
  if (type === "array") return `${typeOf(items)}[]`;
  if (Array.isArray(type)) return type.map(String).join("|");
  return typeof type === "string" ? type : "any";
}

function firstSentence(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  return /^.{20,}?[.!?](?=\s)/.exec(line)?.[0] ?? line;
}
