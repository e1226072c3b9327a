import { andThen, type Awaitable, recover, settled, tryThen } from "@junctor/core/async";
import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { editMembers, RawJson } from "@junctor/core/json";
import {
  assertParamHeaders,
  type CacheHints,
  hasObjectRoot,
  type Method,
  methods,
  type Part,
  projectPromptResult,
  projectToolResult,
} from "@junctor/core/mcp";
import {
  failure,
  findIn,
  type Operation,
  type Outcome,
  type Provider,
  readOperation,
} from "@junctor/core/provider";
import { interact, type InteractionOptions } from "./interaction.ts";
import type { ListenLimits } from "./listen-limits.ts";
import { createPager, toDirectoryPage } from "./pages.ts";
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
import { assertDeclared, openTaskId, toTaskJson } from "./tasks.ts";
import type { UnknownTool } from "./to-rpc-error.ts";

interface MethodOptions {
  readonly finish: Finish;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly unknownTool: UnknownTool;
  readonly takeCompletion: ListenLimits["takeCompletion"];
  readonly onError: (error: unknown, method: string) => void;
}

/** Every method that the provider has to serve, by its name, and how one is served that the protocol does not have. */
export interface ProviderMethods {
  readonly known: readonly (readonly [row: Method, serve: Serve])[];
  readonly other: Serve;
}

/** The methods of a provider, from the table of the protocol. Those that it does not serve to a caller do not exist for it. */
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

export function methodNotFound(method: string): RpcError {
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

/** How long those who asked may keep a result. Only the contents of a provider can be kept. */
function hintsOf({ kind }: Method, hints: CacheHints | undefined): CacheHints | undefined {
  return kind === "resource" ? (hints ?? uncached) : undefined;
}

/** The answer to a request about a task, under the id that the caller has for it. */
function withTaskId(outcome: Outcome, { method }: Method, id: string): RawJson {
  const { result } = toComplete(outcome, method);
  return result.has("taskId") ? editMembers(result, { taskId: RawJson.fromValue(id) }) : result;
}

/** A task of a tool that is gone is gone too. */
function toUnknownTask(error: unknown): never {
  throw error instanceof NotFoundError && error.what === "tool" ? new NotFoundError("task", "") : error;
}

/** Serves requests that may have to ask their caller something: tools, prompts and resources. */
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
