import { Buffer } from "node:buffer";
import { andThen, type Awaitable, recover, settled, tryThen } from "@junctor/core/async";
import { NotFoundError, RpcError, ToolError, crossingOf } from "@junctor/core/errors";
import { editMembers, RawJson, joinJson, prependMembers } from "@junctor/core/json";
import {
  assertParamHeaders,
  type CacheHints,
  hasObjectRoot,
  type Method,
  methods,
  type Part,
  projectPromptResult,
  projectToolResult,
  definitionOf,
  type Era,
  type Items,
  keyOf,
  projectListed,
  projectPrompt,
  projectTool,
  type Resource,
  type Revision,
} from "@junctor/core/mcp";
import {
  failure,
  findIn,
  type Operation,
  type Outcome,
  type Provider,
  readOperation,
  type Listing,
} from "@junctor/core/provider";
import { interact, type InteractionOptions } from "./interaction.ts";
import {
  assertObject,
  empty,
  type Finish,
  revisionOf,
  type Serve,
  type Served,
  sessionOf,
  uncached,
} from "./served.ts";
import type { ListenLimits } from "./subscriptions.ts";
import { assertDeclared, openTaskId, toTaskJson } from "./tasks.ts";

interface MethodOptions {
  readonly finish: Finish;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly unknownTool: UnknownTool;
  readonly takeCompletion: ListenLimits["takeCompletion"];
  readonly onError: (error: unknown, method: string) => void;
}

/** How each method of the protocol is served, by its name, and how all others are. */
interface ProviderMethods {
  readonly known: readonly (readonly [row: Method, serve: Serve])[];
  readonly other: Serve;
}

/** The methods of a provider, from the table of the protocol. For a caller, methods that the provider does not offer it do not exist. */
export function createMethods(provider: Provider, options: MethodOptions): ProviderMethods {
  const { finish } = options;
  const call = createCall(provider, options);
  const ask = createAsking(provider, options);
  const serveBy = (row: Method): Serve | undefined => {
    if (row.verb === "list" && row.part !== undefined) return createList(provider, row, row.part, options);
    if (row.verb !== "call") return undefined;
    return row.asks === true ? (served) => ask(row, served) : (served) => call(row, served);
  };
  return {
    known: Array.from(methods.values()).flatMap((row) => {
      const serve = serveBy(row);
      return serve === undefined ? [] : [[row, ifServed(provider, row.method, serve)] as const];
    }),
    other: ({ request: { method }, params, wire, context }) => {
      if (methods.has(method) || !provider.offers(context).serves(method)) throw methodNotFound(method);
      const operation: Operation = {
        method,
        part: undefined,
        name: method,
        arguments: params ?? empty,
        round: undefined,
        ref: undefined,
        params,
      };
      return andThen(settled(provider.call(operation, context)), (outcome) =>
        finish(toComplete(outcome, method).result, wire.era),
      );
    },
  };
}

/** Serves a method to those callers that the provider offers it to. Tools are there for every caller. */
export function ifServed(provider: Provider, method: string, serve: Serve): Serve {
  if (method === "tools/list" || method === "tools/call") return serve;
  return (served) => {
    if (provider.offers(served.context).serves(method)) return serve(served);
    throw methodNotFound(method);
  };
}

function methodNotFound(method: string): RpcError {
  return new RpcError("rpc.method_not_found", `Method not found: ${method}`);
}

function toComplete(outcome: Outcome, method: string): Extract<Outcome, { readonly kind: "complete" }> {
  if (outcome.kind === "complete" && outcome.task === undefined) return outcome;
  throw new TypeError(`The provider must answer ${method} with a result, and gave ${outcome.kind}`);
}

function createList<P extends Part>(
  provider: Provider,
  { method, member = "" }: Method,
  part: P,
  { finish, pageSize, onError }: MethodOptions,
): Serve {
  const onFault = (error: unknown): void => onError(error, method);
  const pager = createPager<P>({ part, member, pageSize, finish, onFault });
  return ({ params, wire, context }) =>
    andThen(settled(provider.list(part, context)), (listing) =>
      pager(listing, params?.at("cursor"), wire.era),
    );
}

type ServeRow = (row: Method, served: Served) => Awaitable<RawJson>;

/** Serves requests that are answered at once. */
function createCall(provider: Provider, options: MethodOptions): ServeRow {
  const { finish, pageSize, takeCompletion, interaction } = options;
  return (row, { params, wire, context }) => {
    const { era } = wire;
    if (row.kind === "task") {
      assertDeclared(context);
      const operation = readOperation(row, params);
      const id = operation.name;
      const [name, ref] = openTaskId(id, interaction.seal, wire.caller);
      const work = (): Awaitable<Outcome> => settled(provider.call({ ...operation, name, ref }, context));
      return andThen(recover(work, toUnknownTask), (outcome) =>
        finish(row.method === "tasks/get" ? toTaskJson(outcome, id) : withTaskId(outcome, row, id), era),
      );
    }
    if (row.kind === "completion") takeCompletion(wire.owner ?? wire.caller);
    return andThen(settled(provider.call(readOperation(row, params), context)), (outcome) => {
      const { result, hints } = toComplete(outcome, row.method);
      const shown =
        row.method === "resources/directory/read"
          ? toDirectoryPage(result, params?.at("cursor"), revisionOf(era), pageSize)
          : result;
      return finish(shown, era, hintsOf(row, hints));
    });
  };
}

/** How long callers may keep a result. Only the contents of resources can be kept. */
function hintsOf({ kind }: Method, hints: CacheHints | undefined): CacheHints | undefined {
  return kind === "resource" ? (hints ?? uncached) : undefined;
}

/** The answer to a request about a task, under the id that the caller has for it. */
function withTaskId(outcome: Outcome, { method }: Method, id: string): RawJson {
  const { result } = toComplete(outcome, method);
  return result.has("taskId") ? editMembers(result, { taskId: RawJson.fromValue(id) }) : result;
}

/** Turns an unknown tool into an unknown task: a task is gone with its tool. */
function toUnknownTask(error: unknown): never {
  throw error instanceof NotFoundError && error.what === "tool" ? new NotFoundError("task", "") : error;
}

/** Serves requests that may ask their caller something: tools, prompts and resources. */
function createAsking(provider: Provider, { finish, interaction, unknownTool }: MethodOptions): ServeRow {
  const isWrapped = (name: string, { context }: Served): Awaitable<boolean> =>
    andThen(findIn(provider, "tools", name, context), (entry) => {
      const schema = entry?.item.outputSchema;
      return schema !== undefined && !hasObjectRoot(schema);
    });

  const toToolResult = (name: string, result: RawJson, served: Served): Awaitable<RawJson> => {
    const { era } = served.wire;
    const session = sessionOf(served);
    if (session === undefined) return finish(result, era);
    assertObject(result);
    const { revision } = session.handshake;
    return andThen(result.has("structuredContent") && isWrapped(name, served), (wrapped) =>
      projectToolResult(result, revision, wrapped),
    );
  };

  const toPromptResult = (result: RawJson, served: Served): RawJson => {
    const finished = finish(result, served.wire.era);
    const session = sessionOf(served);
    return session === undefined ? finished : projectPromptResult(finished, session.handshake.revision);
  };

  const answer = (row: Method, operation: Operation, served: Served): Awaitable<RawJson> => {
    const { request, params, wire, context } = served;
    const { part, name } = operation;
    return tryThen(
      () =>
        interact(request, wire, interaction, name, (round) =>
          provider.call(round === undefined ? operation : { ...operation, round }, context),
        ),
      (ended) => {
        wire.observation?.outcome(ended.kind, ended.result);
        if (ended.kind !== "complete") return finish(ended.result, wire.era);
        if (part === "tools") return toToolResult(name, ended.result, served);
        if (part === "prompts") return toPromptResult(ended.result, served);
        const isRetry = params?.has("inputResponses") === true || params?.has("requestState") === true;
        return finish(ended.result, wire.era, isRetry ? uncached : hintsOf(row, ended.hints));
      },
      (error) => {
        wire.observation?.failed(error);
        const text = part === "tools" ? toFailure(error, unknownTool) : undefined;
        if (text === undefined) throw error;
        return finish(RawJson.fromValue(failure(text)), wire.era);
      },
    );
  };

  return (row, served) => {
    const { params, wire, context } = served;
    const operation = readOperation(row, params);
    const { headers } = wire;
    if (row.part !== "tools" || headers === undefined || wire.era.kind === "legacy")
      return answer(row, operation, served);
    return andThen(findIn(provider, "tools", operation.name, context), (entry) => {
      assertParamHeaders(entry?.item, operation.arguments, headers);
      return answer(row, operation, served);
    });
  };
}

/** The text of the `isError` result for a failed call; undefined for errors that become error responses. */
function toFailure(error: unknown, unknownTool: UnknownTool): string | undefined {
  if (error instanceof ToolError) return error.message;
  const isUnknown = error instanceof NotFoundError && error.what === "tool";
  return isUnknown && unknownTool === "is_error" ? error.message : undefined;
}

interface PagerOptions<P extends Part> {
  readonly part: P;
  /** The member of the result that holds the items. */
  readonly member: string;
  readonly pageSize: number;
  readonly finish: Finish;
  /** Called with the error for an item that cannot be written. Only that item is left out of the list. */
  readonly onFault: (error: unknown) => void;
}

/** One page of a list, as a finished result. */
type Pager<P extends Part> = (listing: Listing<Items[P]>, cursor: RawJson | undefined, era: Era) => RawJson;

const projections: { readonly [P in Part]: (item: Items[P], revision: Revision) => Items[P] } = {
  tools: projectTool,
  prompts: projectPrompt,
  resources: projectListed,
  templates: projectListed,
  skills: (skill) => skill,
  groups: (group) => group,
};

/** How many skills are a page. A skill may list 512 files, which is 80 KB. */
const maxSkills = 100;

/** Pages lists. Each page is serialised once per revision, and kept for as long as the list lives. */
export function createPager<P extends Part>(options: PagerOptions<P>): Pager<P> {
  const { part, member, finish, onFault } = options;
  const pageSize = part === "skills" ? Math.min(options.pageSize, maxSkills) : options.pageSize;
  const project: (item: Items[P], revision: Revision) => Items[P] = projections[part];
  const written = new WeakMap<Listing<Items[P]>, Map<string, RawJson>>();

  const write = ({ items, meta, hints = uncached }: Listing<Items[P]>, start: number, era: Era): RawJson => {
    const revision = revisionOf(era);
    const shown = items.slice(start, start + pageSize);
    const page = shown.flatMap((item) => {
      try {
        return [definitionOf(project(item, revision))];
      } catch (error) {
        const text = `Left out of the ${member}: ${keyOf(item)}, which cannot be listed`;
        onFault(new TypeError(text, { cause: error }));
        return [];
      }
    });
    const last = shown.at(-1);
    const hasMore = start + shown.length < items.length && last !== undefined;
    const next = hasMore ? `,"nextCursor":"${toCursor(keyOf(last))}"` : "";
    const parts = page.flatMap((item, index) => (index === 0 ? [item] : [",", item]));
    const whole = joinJson([`{"${member}":[`, ...parts, `]${next}}`]);
    const noted = meta === undefined ? whole : prependMembers(`"_meta":${JSON.stringify(meta)}`, whole);
    return finish(noted, era, hints);
  };

  return (listing, cursor, era) => {
    const start = cursor === undefined ? 0 : startAfter(listing.items, cursor);
    // Keep only the pages of a walk from the start: every item has a cursor, and a client may try them all.
    if (start % pageSize !== 0) return write(listing, start, era);
    let pages = written.get(listing);
    if (pages === undefined) written.set(listing, (pages = new Map<string, RawJson>()));
    const key = `${revisionOf(era)} ${start}`;
    let page = pages.get(key);
    if (page === undefined) pages.set(key, (page = toKept(write(listing, start, era))));
    return page;
  };
}

/**
 * The page of a folder that a cursor names, from a result with all of its contents. A result of a provider that makes pages itself
 * is kept: a cursor that is not ours is the provider's.
 */
function toDirectoryPage(
  result: RawJson,
  cursor: RawJson | undefined,
  revision: Revision,
  pageSize: number,
): RawJson {
  const { resources: all } = result.value as { readonly resources?: readonly Resource[] };
  if (all === undefined) return result;
  const start = cursor === undefined ? 0 : all.findIndex(({ uri }) => toCursor(uri) === cursor.value) + 1;
  const end = result.has("nextCursor") ? all.length : start + pageSize;
  const shown = all.slice(start, end).map((resource) => projectListed(resource, revision));
  const last = shown.at(-1);
  const next = end < all.length && last !== undefined ? toCursor(last.uri) : undefined;
  if (shown.length === all.length && shown.every((resource, index) => resource === all[index])) return result;
  return editMembers(result, {
    resources: RawJson.fromValue(shown),
    ...(next === undefined ? {} : { nextCursor: RawJson.fromValue(next) }),
  });
}

/** From here on, encoding a page for every caller costs more than the rest of the answer. */
const minEncodedLength = 16 * 1024;

/** Pages that are sent many times are kept as bytes. */
function toKept(page: RawJson): RawJson {
  return page.written.length < minEncodedLength ? page : RawJson.fromChecked(page.bytes);
}

/** A cursor names the last item of a page, so that a change elsewhere in the list makes no page skip or repeat an item. */
function toCursor(key: string): string {
  return Buffer.from(key, "utf8").toString("base64url");
}

function startAfter(items: readonly Items[Part][], cursor: RawJson): number {
  const text = cursor.kind === "string" ? (cursor.value as string) : "";
  const key = Buffer.from(text, "base64url").toString("utf8");
  const index = toCursor(key) === text ? items.findIndex((item) => keyOf(item) === key) : -1;
  if (index === -1)
    throw new RpcError("rpc.invalid_params", "Invalid params: unknown cursor; list again from the start");
  return index + 1;
}

/** How a call of an unknown tool is answered. */
export type UnknownTool = "invalid_params" | "method_not_found" | "is_error";

/**
 * Turns an error that was thrown while a server handles a request into the error of the response. An unknown error is sent without detail; `onError` gets
 * everything. Never throws, even if `onError` does: the caller must get an answer.
 */
export function toRpcError(
  thrown: unknown,
  era: Era,
  unknownTool: UnknownTool,
  onError: (error: unknown) => void,
): RpcError {
  try {
    return toKnown(thrown, era, unknownTool, onError);
  } catch {
    return new RpcError("rpc.internal", "Internal error", { cause: thrown });
  }
}

function toKnown(
  thrown: unknown,
  era: Era,
  unknownTool: UnknownTool,
  onError: (error: unknown) => void,
): RpcError {
  if (thrown instanceof RpcError) return thrown;
  if (thrown instanceof NotFoundError) return toNotFound(thrown, era, unknownTool);
  const crossing = crossingOf(thrown);
  if (crossing === undefined) {
    onError(thrown);
    return new RpcError("rpc.internal", "Internal error", { cause: thrown });
  }
  const fields = crossing.data.map((name) => [name, Reflect.get(thrown as Error, name)] as const);
  return new RpcError(crossing.as, (thrown as Error).message, {
    cause: thrown,
    ...(fields.length === 0 ? {} : { data: Object.fromEntries(fields) }),
  });
}

function toNotFound(error: NotFoundError, era: Era, unknownTool: UnknownTool): RpcError {
  const { what, id, message } = error;
  switch (what) {
    case "tool":
      return unknownTool === "method_not_found"
        ? new RpcError("rpc.method_not_found", message, { cause: error })
        : new RpcError("rpc.invalid_params", `Unknown tool: ${id}`, { cause: error });
    case "prompt":
      return new RpcError("rpc.invalid_params", `Unknown prompt: ${id}`, { cause: error });
    case "task": {
      const text = "Unknown task: it does not exist, has expired, or belongs to another caller";
      return new RpcError("rpc.invalid_params", text, { cause: error });
    }
    case "group":
      return new RpcError("rpc.resource_not_found", message, { cause: error });
    case "skill":
    case "directory":
      return new RpcError("rpc.invalid_params", message, { cause: error, data: { uri: id } });
    case "resource": {
      // 2026-07-28 took the code -32002 back; every older revision has it.
      const code = era.kind === "modern" ? "rpc.invalid_params" : "rpc.resource_not_found";
      return new RpcError(code, message, { cause: error, data: { uri: id } });
    }
  }
}
