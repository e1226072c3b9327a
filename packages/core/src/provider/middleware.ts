import {
  type Awaitable,
  andThen,
  isPromise,
  recover,
  settled,
  fromSignal,
  type Clock,
  systemClock,
  waitFor,
} from "../async/index.ts";
import { NotFoundError } from "../errors/index.ts";
import type { ListPart } from "../fit/index.ts";
import { RawJson } from "../json/index.ts";
import { keys, type KeysOf, nearest } from "../options/index.ts";
import type { CallContext } from "./context.ts";
import { createFilteredLists, type ListedItem, thingOf } from "./filtered-lists.ts";
import { callFacet, facetsOf, followFacets, guardFacets } from "./guarded-facets.ts";
import { followTasks, guardMethods, guardTasks, nameTasks, type ServeTask } from "./guarded-tasks.ts";
import type { OldProvider, ToolCall, ToolOutcome } from "./old.ts";
import {
  addTerms,
  type CallTerms,
  noTerms,
  TimeLimit,
  withLimit,
  withMappedEvents,
  withoutTerms,
} from "./time-limit.ts";

/** How a call ended, as `afterCall` sees it. */
export type CallEnd =
  | ToolOutcome
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** A filter or a `beforeCall` further in threw the error: the provider was not called. */
      readonly isRefused?: boolean;
    };

/**
 * Three optional hooks around a provider's tools, prompts, resources and completion. Several middlewares nest: the first in the
 * list is the outermost, so its `filterTools` and `beforeCall` come first and its `afterCall` comes last.
 */
export interface Middleware {
  /**
   * The things of a list this caller may see; `part` says which list. A caller cannot use a thing that is left out, under any spelling.
   * A resource that no list has may be: `beforeCall` judges it.
   */
  filterTools?(
    items: readonly ListedItem[],
    context: CallContext,
    part: ListPart,
  ): readonly ListedItem[] | Promise<readonly ListedItem[]>;
  /** False where `filterTools` only changes how things are described: then nothing is judged by the lists. */
  readonly isFilter?: boolean;
  /**
   * Runs before a call; `call.kind` says of which facet. Returning a call replaces it. Throw to refuse: a `ToolError` reaches the model,
   * an `RpcError` the client. Set `timeoutMs` or `mapEvent` in the call you return; those that other middlewares set are not shown, and stay.
   */
  beforeCall?(call: ToolCall, context: CallContext): ToolCall | void | Promise<ToolCall | void>;
  /**
   * Runs after a call that this middleware let through, however it ended; returning an end replaces it. `call` is what
   * was called in the end: the very object that `beforeCall` returned, if it returned one.
   */
  afterCall?(call: ToolCall, end: CallEnd, context: CallContext): CallEnd | void | Promise<CallEnd | void>;
}

export interface MiddlewareOptions {
  /** The time that `timeoutMs` of a call is measured by. */
  readonly clock?: Clock;
}

/**
 * A provider with middleware around its tools and its other facets. The list of middlewares is fixed
 * here, in the order given. A call that waits for nothing is answered at once, without a promise; nothing is thrown, failures
 * are rejections.
 *
 * @example
 * const guarded = withMiddleware(registry, [{ filterTools: (tools) => tools.filter((tool) => tool.name !== "drop") }]);
 */
export function withMiddleware(
  provider: OldProvider,
  middlewares: readonly Middleware[],
  options: MiddlewareOptions = {},
): OldProvider {
  assertMiddlewares(middlewares);
  const { clock = systemClock } = options;
  const named = nameTasks(provider);
  const serveThing: ServeTask = (call, context) =>
    call.kind === undefined ? named.callTool(call, context) : callFacet(provider, call, context);
  const chain = [...middlewares];
  const filters = chain.flatMap((middleware) => middleware.filterTools?.bind(middleware) ?? []);
  const lists = createFilteredLists(provider, filters);
  const hasFilters = chain.some(judges);

  /** Refuses a name that not every filter lets through. */
  const judge = (call: ToolCall, context: CallContext): Awaitable<void> =>
    andThen(!hasFilters || lists.shows(call, context), (isVisible) => {
      if (!isVisible) throw new NotFoundError(thingOf(call), call.name);
    });

  /** The call under the name the list has for it: middlewares judge, count and record by that. */
  const resolve = (call: ToolCall, context: CallContext): Awaitable<ToolCall> => {
    const listed = call.kind === undefined ? settled(provider.listedName?.(call.name, context)) : undefined;
    return andThen(listed, (name) => (name === undefined ? call : { ...call, name }));
  };

  const callFrom = (index: number, admitted: AdmittedCall, context: CallContext): Awaitable<ToolOutcome> => {
    const { call, terms, isVisible, serve } = admitted;
    const middleware = chain[index];
    if (middleware === undefined) return callUnder({ terms, serve, clock }, call, context);
    const isJudgedHere = !isVisible && judges(middleware);
    const admit = (): Awaitable<ToolCall> =>
      andThen(isJudgedHere ? judge(call, context) : undefined, () =>
        andThen(settled(middleware.beforeCall?.(call, context)), (replacement) => {
          const made = replacement ?? call;
          if (typeof made.name !== "string")
            throw new TypeError("beforeCall must return a call, such as { ...call, name }, or nothing");
          return andThen(made.name === call.name ? undefined : judge(made, context), () => made);
        }),
      );
    return andThen(recover(admit, refuse), (made) => {
      const onward: AdmittedCall = {
        serve,
        call: hasTerms(made) ? withoutTerms(made) : made,
        terms: hasTerms(made) ? addTerms(terms, made) : terms,
        isVisible: isVisible || isJudgedHere || made.name !== call.name,
      };
      const next = (): Awaitable<ToolOutcome> => callFrom(index + 1, onward, context);
      return middleware.afterCall === undefined ? next() : endWith(middleware, made, context, next);
    });
  };

  const run = (call: ToolCall, context: CallContext, serve = serveThing): Awaitable<ToolOutcome> => {
    let { name } = call;
    const work = (): Awaitable<ToolOutcome> =>
      andThen(resolve(call, context), (resolved) => {
        name = resolved.name;
        const [terms, bare] = hasTerms(resolved)
          ? [addTerms(noTerms, resolved), withoutTerms(resolved)]
          : [noTerms, resolved];
        return callFrom(0, { call: bare, terms, isVisible: !hasFilters, serve }, context);
      });
    return recover(work, (thrown) => {
      const error = thrown instanceof Refusal ? thrown.error : thrown;
      // The error has the name that the caller used.
      const isMissing = error instanceof NotFoundError && error.what === "tool" && error.id === name;
      return reject(isMissing ? new NotFoundError("tool", call.name) : error);
    });
  };

  return {
    ...othersOf(provider),
    ...(chain.length === 0 ? facetsOf(provider) : guardFacets(provider, { run, judge, lists, filters })),
    // A registry has tasks from its first task tool on, which may be registered after this.
    get tasks() {
      const tasks = named.tasks();
      return tasks && guardTasks(tasks, run);
    },
    methods: chain.length === 0 ? provider.methods : guardMethods(provider, run),
    // A filter may show each caller another list, so one caller's is not for a cache that serves others.
    get cacheHints() {
      const { cacheHints } = provider;
      return hasFilters && cacheHints !== undefined
        ? { ...cacheHints, cacheScope: "private" as const }
        : cacheHints;
    },
    ...(provider.listMeta === undefined
      ? {}
      : { listMeta: (items) => provider.listMeta?.(lists.originOf(items)) }),
    ...(hasFilters || provider.toolNamed === undefined
      ? {}
      : { toolNamed: provider.toolNamed.bind(provider) }),
    listTools: (context) => recover(() => lists.tools.list(context), reject),
    callTool: run,
  };
}

const hooks = ["filterTools", "beforeCall", "afterCall"] as const;
const endKinds: ReadonlySet<unknown> = new Set(["complete", "input_required", "task", "failed"]);

/** Throws a `TypeError` for hooks that would never run. A middleware may have other members, but not one that is a misspelt hook. */
function assertMiddlewares(middlewares: readonly Middleware[]): void {
  if (!Array.isArray(middlewares))
    throw new TypeError("withMiddleware(provider, middlewares): write an array, such as [{ beforeCall }]");
  for (const [index, middleware] of (middlewares as readonly Middleware[]).entries()) {
    const what = `withMiddleware: middlewares[${index}]`;
    if (typeof middleware !== "object" || middleware === null)
      throw new TypeError(
        `${what} must be an object of hooks (${hooks.join(", ")}), but is ${typeof middleware}`,
      );
    for (const hook of hooks)
      if (middleware[hook] !== undefined && typeof middleware[hook] !== "function")
        throw new TypeError(`${what}: ${hook} must be a function, but is ${typeof middleware[hook]}`);
    for (const key of Object.keys(middleware)) {
      const likely = key in known ? undefined : nearest(key, hooks);
      if (likely !== undefined)
        throw new TypeError(`${what}: ${JSON.stringify(key)} is no hook; did you mean ${likely}?`);
    }
  }
}

const known: KeysOf<Middleware> = keys("filterTools isFilter beforeCall afterCall");

/** Whether a caller cannot use the things that a middleware leaves out of a list. */
function judges({ filterTools, isFilter = true }: Middleware): boolean {
  return filterTools !== undefined && isFilter;
}

/** A call on its way through the chain. */
interface AdmittedCall {
  readonly call: ToolCall;
  readonly terms: CallTerms;
  /** Whether the call's name is known to have passed every filter. */
  readonly isVisible: boolean;
  /** Makes the call in the end. */
  readonly serve: ServeTask;
}

/** A provider whose middleware may be replaced while it is used. */
interface Guarded {
  readonly provider: OldProvider;
  replace(middlewares: readonly Middleware[]): void;
}

/** Like {@link withMiddleware}, with middleware that may be replaced. Whatever `around` puts around it is made anew with it. */
export function createGuarded(
  base: OldProvider,
  middlewares: readonly Middleware[],
  around: (provider: OldProvider) => OldProvider = (provider) => provider,
): Guarded {
  let guarded = around(withMiddleware(base, middlewares));
  return {
    provider: {
      ...base,
      tasks: followTasks(base, () => guarded),
      methods: base.methods && {
        has: (method, context) => guarded.methods?.has(method, context) === true,
        serve: (method, params, context) =>
          guarded.methods?.serve(method, params, context) ?? RawJson.fromText("{}"),
      },
      get cacheHints() {
        return guarded.cacheHints;
      },
      listMeta: (list) => guarded.listMeta?.(list),
      listTools: (context) => guarded.listTools(context),
      // A middleware may filter, and then only its list says which tools there are.
      toolNamed: (name, context) =>
        guarded.toolNamed === undefined
          ? andThen(guarded.listTools(context), (tools) => tools.find((tool) => tool.name === name))
          : guarded.toolNamed(name, context),
      callTool: (call, context) => guarded.callTool(call, context),
      ...followFacets(base, () => guarded),
    },
    replace: (next) => {
      guarded = around(withMiddleware(base, next));
    },
  };
}

/** Runs the rest of a call, and the middleware's `afterCall` on whatever end it has. */
function endWith(
  middleware: Middleware,
  call: ToolCall,
  context: CallContext,
  next: () => Awaitable<ToolOutcome>,
): Awaitable<ToolOutcome> {
  const ended = recover<CallEnd>(next, (error) =>
    error instanceof Refusal
      ? { kind: "failed", error: error.error, isRefused: true }
      : { kind: "failed", error },
  );
  return andThen(ended, (end) =>
    andThen(settled(middleware.afterCall?.(call, end, context)), (replacement) => {
      const final = replacement ?? end;
      if (!endKinds.has(final.kind))
        throw new TypeError(
          'afterCall must return an end, such as { kind: "complete", result: RawJson.fromValue({ content }) }, or nothing',
        );
      if (final.kind !== "failed") return final;
      if (final.isRefused === true) refuse(final.error);
      throw final.error;
    }),
  );
}

/** The error of a filter or a `beforeCall` on its way through the chain: outer middlewares can tell it from a failed call. */
class Refusal {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

function refuse(error: unknown): never {
  // oxlint-disable-next-line only-throw-error -- It never leaves this file.
  throw new Refusal(error);
}

/** A provider reports each error by a rejection, so its callers need no `try` around the call. */
function reject(error: unknown): Promise<never> {
  return Promise.reject(error);
}

/** The members of a provider that middleware leaves unchanged. */
function othersOf(provider: OldProvider): Partial<OldProvider> {
  return {
    ...(provider.listedName === undefined ? {} : { listedName: provider.listedName.bind(provider) }),
    ...(provider.onChange === undefined
      ? {}
      : { onChange: (listener) => provider.onChange?.(listener) ?? (() => {}) }),
    ...(provider.mayHear === undefined ? {} : { mayHear: provider.mayHear.bind(provider) }),
    ...(provider.extensionsFor === undefined ? {} : { extensionsFor: provider.extensionsFor.bind(provider) }),
  };
}

/** Calls a tool under terms. No timer and no listener is left when it settles. */
function callUnder(
  { terms, serve, clock }: Pick<AdmittedCall, "terms" | "serve"> & { readonly clock: Clock },
  call: ToolCall,
  context: CallContext,
): Awaitable<ToolOutcome> {
  const { timeoutMs = Infinity, mapEvent } = terms;
  const mapped = mapEvent === undefined ? context : withMappedEvents(context, mapEvent);
  if (timeoutMs === Infinity) return settled(serve(call, mapped));
  const limit = new TimeLimit(timeoutMs, context.cancellation ?? fromSignal(context.signal), clock);
  const outcome = settled(serve(call, withLimit(mapped, limit)));
  if (!isPromise(outcome)) return outcome;
  limit.watch();
  return waitFor(outcome, limit.cancellation).finally(() => limit.stop());
}

function hasTerms({ timeoutMs, mapEvent }: ToolCall): boolean {
  return timeoutMs !== undefined || mapEvent !== undefined;
}
