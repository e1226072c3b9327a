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
  type Cancellation,
  LazyAbort,
} from "../async/index.ts";
import { NotFoundError, RpcError, ToolError, TimeoutError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import type { Items, Part } from "../mcp/index.ts";
import { keys, type KeysOf, nearest } from "../options/index.ts";
import { failure } from "./content.ts";
import { type CallContext, type AskCaller, type CallEvent, withContext } from "./context.ts";
import { type FilteredPart, Filters, type ListedItem } from "./filters.ts";
import { createOperation, findIn, thingOf } from "./operation.ts";
import type { Entry, Notice, Operation, Outcome, Provider, Target, Task, Wrapper } from "./provider.ts";

/** How a call ended, as `afterCall` sees it. */
export type CallEnd =
  | Outcome
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** A filter or a `beforeCall` further in threw the error: the provider was not called. */
      readonly isRefused?: boolean;
      readonly task?: undefined;
    };

/** What a `beforeCall` changes in an operation, and the terms that it sets. A whole operation is fine too. */
export type CallChanges = Partial<Pick<Operation, "name" | "arguments" | "round">> & CallTerms;

/**
 * Three optional hooks around everything that a provider does. Several middlewares nest: the first in the list is the outermost,
 * so its `filterTools` and `beforeCall` come first and its `afterCall` comes last.
 */
export interface Middleware {
  /**
   * Returns the items of a list that this caller may see; `part` says which list. A caller cannot use an item
   * that is left out, under any spelling. A resource that is in no list can be used: `beforeCall` judges it.
   * Skills are judged by their files, which come as resources.
   */
  filterTools?(
    items: readonly ListedItem[],
    context: CallContext,
    part: FilteredPart,
  ): readonly ListedItem[] | Promise<readonly ListedItem[]>;
  /** False where `filterTools` only changes how things are described: then it refuses nothing. */
  readonly isFilter?: boolean;
  /**
   * Runs before a call; `operation.method` says of which kind. Return what to change. Throw to
   * refuse: a `ToolError` reaches the model, an `RpcError` the client. The terms of other middlewares
   * are not visible here, and stay.
   */
  beforeCall?(operation: Operation, context: CallContext): CallChanges | void | Promise<CallChanges | void>;
  /**
   * Runs after a call that this middleware let through, however it ended; returning an end
   * replaces it. `operation` is what was called: the very object that `beforeCall` returned, if it
   * returned a whole operation.
   */
  afterCall?(
    operation: Operation,
    end: CallEnd,
    context: CallContext,
  ): CallEnd | void | Promise<CallEnd | void>;
}

/** Options that all middlewares share. */
export interface MiddlewareOptions {
  /** The time that `timeoutMs` of a call is measured by. */
  readonly clock?: Clock;
}

/**
 * A provider with middleware around it. The list of middlewares is fixed here, in the order given. A call
 * that waits for nothing is answered at once, without a promise; errors are never thrown but rejected.
 *
 * @example
 * const guarded = withMiddleware(registry, [{ filterTools: (tools) => tools.filter((tool) => tool.name !== "drop") }]);
 */
export function withMiddleware(
  provider: Provider,
  middlewares: readonly Middleware[],
  options: MiddlewareOptions = {},
): Provider {
  assertMiddlewares(middlewares);
  return guard(provider, [...middlewares], options.clock ?? systemClock);
}

/** Carries out an operation at the end of the chain. */
type Serve = Provider["call"];

type Listener = (notice: Notice) => void;

/** An operation on its way through the chain. */
interface Admitted {
  readonly operation: Operation;
  readonly terms: CallTerms;
  /** Whether its name is known to have passed every filter. */
  readonly isVisible: boolean;
  readonly serve: Serve;
}

function guard(inner: Provider, middlewares: readonly Middleware[], clock: Clock): Wrapper {
  const chain = new Chain(inner, middlewares, clock);
  return {
    list: (part, context) => recover(() => chain.filters.list(part, context), reject),
    call: (operation, context) => chain.run(operation, context),
    find: chain.isJudging
      ? (part, name, context) => chain.find(part, name, context)
      : inner.find?.bind(inner),
    watch:
      inner.watch &&
      ((target, context, listener) =>
        target.ref === undefined
          ? chain.watchResource(target, context, listener)
          : chain.watchTask(target, context, listener)),
    offers: (caller) => inner.offers(caller),
    onChange: inner.onChange?.bind(inner),
  };
}

/** Middlewares around a provider, and the path of an operation through them. */
class Chain {
  readonly #inner: Provider;
  readonly #middlewares: readonly Middleware[];
  readonly #clock: Clock;
  readonly #hasFilters: boolean;
  readonly filters: Filters;
  /** Whether a middleware may keep items from callers. */
  readonly isJudging: boolean;

  constructor(inner: Provider, middlewares: readonly Middleware[], clock: Clock) {
    const listFilters = middlewares.flatMap((middleware) => middleware.filterTools?.bind(middleware) ?? []);
    this.#inner = inner;
    this.#middlewares = middlewares;
    this.#clock = clock;
    this.#hasFilters = listFilters.length > 0;
    this.isJudging = middlewares.some(judges);
    this.filters = new Filters(inner, listFilters, this.isJudging);
  }

  run(operation: Operation, context: CallContext, serve: Serve = this.#serveInner): Awaitable<Outcome> {
    let { name } = operation;
    const work = (): Awaitable<Outcome> =>
      andThen(this.#resolve(operation, context), (resolved) => {
        name = resolved.name;
        const admitted = { operation: resolved, terms: noTerms, isVisible: !this.isJudging, serve };
        return this.#callFrom(0, admitted, context);
      });
    return recover(work, (thrown) => reject(toCallersError(thrown, operation, name)));
  }

  find<P extends Part>(part: P, name: string, context: CallContext): Awaitable<Entry<Items[P]> | undefined> {
    return andThen(findIn(this.#inner, part, name, context), (entry) =>
      andThen(entry && this.filters.list(part, context), (listing) => {
        const item = entry && listing?.get(entry.key);
        return item && { ...entry, key: entry.key, item };
      }),
    );
  }

  watchResource(target: Target, context: CallContext, listener: Listener): Awaitable<() => void> {
    const reading = { ...createOperation("resources/read", target.name), part: target.part };
    return andThen(settled(this.#judge(reading, context)), () => this.#watchInner(target, context, listener));
  }

  watchTask(target: Target, context: CallContext, listener: Listener): Awaitable<() => void> {
    const { name, ref } = target;
    const getTask = createOperation("tasks/get", name, { ref });
    // One after the other, so that an older state is never sent after a newer one.
    let last = Promise.resolve();
    const deliver = async (notice: Notice & { readonly kind: "task" }): Promise<void> => {
      const outcome = await this.run(getTask, context, () => notice.outcome);
      listener({ kind: "task", outcome });
    };
    const onNotice = (notice: Notice): void => {
      if (notice.kind === "task") last = last.then(() => deliver(notice)).catch(() => {});
    };
    return andThen(settled(this.#judge(getTask, context)), () => this.#watchInner(target, context, onNotice));
  }

  #watchInner(target: Target, context: CallContext, listener: Listener): Awaitable<() => void> {
    const { watch } = this.#inner;
    return watch === undefined ? () => {} : settled(watch.call(this.#inner, target, context, listener));
  }

  readonly #serveInner: Serve = (operation, context) => {
    const served = settled(this.#inner.call(operation, context));
    return operation.part === "tools" || !this.#hasFilters
      ? served
      : andThen(served, (outcome) => this.filters.leaveOf(operation, outcome, context));
  };

  /** The operation under the listed name: middlewares judge, count and record by that. */
  #resolve(operation: Operation, context: CallContext): Awaitable<Operation> {
    const inner = this.#inner;
    if (inner.find === undefined || operation.method !== "tools/call") return operation;
    return andThen(settled(inner.find("tools", operation.name, context)), (entry) =>
      entry === undefined || entry.key === operation.name ? operation : { ...operation, name: entry.key },
    );
  }

  /** Refuses a name that a filter leaves out. */
  #judge(operation: Operation, context: CallContext): Awaitable<void> {
    return andThen(!this.isJudging || this.filters.shows(operation, context), (isVisible) => {
      if (!isVisible) throw new NotFoundError(thingOf(operation), operation.name);
    });
  }

  #callFrom(index: number, admitted: Admitted, context: CallContext): Awaitable<Outcome> {
    const middleware = this.#middlewares[index];
    if (middleware === undefined) return callUnder(admitted, this.#clock, context);
    const admit = (): Awaitable<Admitted> => this.#admit(middleware, admitted, context);
    return andThen(recover(admit, refuse), (onward) => {
      const next = (): Awaitable<Outcome> => this.#callFrom(index + 1, onward, context);
      return middleware.afterCall === undefined
        ? next()
        : endWith(middleware, onward.operation, context, next);
    });
  }

  /** Has a middleware judge and change an operation. */
  #admit(
    middleware: Middleware,
    { operation, terms, isVisible, serve }: Admitted,
    context: CallContext,
  ): Awaitable<Admitted> {
    const isJudgedHere = !isVisible && judges(middleware);
    return andThen(isJudgedHere ? this.#judge(operation, context) : undefined, () =>
      andThen(settled(middleware.beforeCall?.(operation, context)), (changes) => {
        const changed = changes == null ? operation : applyChanges(operation, changes);
        const isRenamed = changed.name !== operation.name;
        return andThen(isRenamed ? this.#judge(changed, context) : undefined, () => ({
          operation: changed,
          terms: changes == null ? terms : addTerms(terms, changes),
          isVisible: isVisible || isJudgedHere || isRenamed,
          serve,
        }));
      }),
    );
  }
}

const hooks = ["filterTools", "beforeCall", "afterCall"] as const;
const endKinds: ReadonlySet<unknown> = new Set([
  "complete",
  "input_required",
  "working",
  "cancelled",
  "failed",
]);

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
        throw new TypeError(`${what}: ${JSON.stringify(key)} is not a hook; did you mean ${likely}?`);
    }
  }
}

const known: KeysOf<Middleware> = keys("filterTools isFilter beforeCall afterCall");

/** Whether callers cannot use what a middleware leaves out of a list. */
function judges({ filterTools, isFilter = true }: Middleware): boolean {
  return filterTools !== undefined && isFilter;
}

/** The operation with the changes of a `beforeCall`. A whole operation without terms is used as it is. */
function applyChanges(operation: Operation, changes: CallChanges): Operation {
  if (typeof changes !== "object") throw notChanges();
  const isWhole = "method" in changes;
  if (isWhole && changes.timeoutMs === undefined && changes.mapEvent === undefined)
    return assertNamed(changes as Operation);
  const { method, part, ref, params } = operation;
  const { name = operation.name, arguments: args = operation.arguments } = changes;
  const round = "round" in changes ? changes.round : operation.round;
  return assertNamed({ method, part, name, arguments: args, round, ref, params });
}

function assertNamed(operation: Operation): Operation {
  if (typeof operation.name !== "string") throw notChanges();
  return operation;
}

function notChanges(): TypeError {
  return new TypeError(
    "beforeCall must return changes, such as { name } or { ...operation, name }, or nothing",
  );
}

/** Runs the rest of a call, and the middleware's `afterCall` on whatever end it has. */
function endWith(
  middleware: Middleware,
  operation: Operation,
  context: CallContext,
  next: () => Awaitable<Outcome>,
): Awaitable<Outcome> {
  const ended = recover<CallEnd>(next, (error) =>
    error instanceof Refusal
      ? { kind: "failed", error: error.error, isRefused: true }
      : { kind: "failed", error },
  );
  return andThen(ended, (end) => {
    const finish = (): Awaitable<Outcome> =>
      andThen(settled(middleware.afterCall?.(operation, end, context)), (replacement) => {
        const final = replacement ?? end;
        if (!endKinds.has(final.kind))
          throw new TypeError(
            'afterCall must return an end, such as { kind: "complete", result: RawJson.fromValue({ content }) }, or nothing',
          );
        if (final.kind !== "failed" || final.task !== undefined)
          return final.task === undefined && end.task !== undefined ? { ...final, task: end.task } : final;
        if ("isRefused" in final && final.isRefused) refuse(final.error);
        throw final.error;
      });
    // A hook that withholds the end of a task fails the task, and not the request for its state.
    const isOver = operation.ref !== undefined && (end.kind === "complete" || end.kind === "failed");
    return isOver && end.task !== undefined
      ? recover(finish, (error) => toFailedTask(end.task as Task, error))
      : finish();
  });
}

/** A task that a hook failed: a `ToolError` becomes a result, as for a call. */
function toFailedTask(task: Task, thrown: unknown): Outcome {
  const error = thrown instanceof Refusal ? thrown.error : thrown;
  if (error instanceof ToolError)
    return { kind: "complete", result: RawJson.fromValue(failure(error.message)), task };
  const rpcError =
    error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
  return { kind: "failed", error: rpcError, task };
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

/** An error names what is missing as the caller did: by the name that it used, or a task by its ref. */
function toCallersError(thrown: unknown, operation: Operation, name: string): unknown {
  const error = thrown instanceof Refusal ? thrown.error : thrown;
  if (!(error instanceof NotFoundError)) return error;
  if (operation.ref !== undefined) return new NotFoundError("task", operation.ref);
  return error.what === "tool" && error.id === name ? new NotFoundError("tool", operation.name) : error;
}

/** A provider reports each error by a rejection, so its callers need no `try` around the call. */
function reject(error: unknown): Promise<never> {
  return Promise.reject(error);
}

/** Carries out an operation under its terms. No timer or listener is left when it settles. */
function callUnder(
  { operation, terms, serve }: Admitted,
  clock: Clock,
  context: CallContext,
): Awaitable<Outcome> {
  const { timeoutMs = Infinity, mapEvent } = terms;
  if (mapEvent === undefined && timeoutMs === Infinity) return settled(serve(operation, context));
  const mapped = mapEvent === undefined ? context : withMappedEvents(context, mapEvent);
  const limit =
    timeoutMs === Infinity
      ? undefined
      : new TimeLimit(timeoutMs, context.cancellation ?? fromSignal(context.signal), clock);
  const served = settled(serve(operation, limit === undefined ? mapped : withLimit(mapped, limit)));
  const outcome = mapEvent === undefined ? served : andThen(served, (ended) => mapMessage(ended, mapEvent));
  if (limit === undefined || !isPromise(outcome)) return outcome;
  limit.watch();
  return waitFor(outcome, limit.cancellation).finally(() => limit.stop());
}

/** A provider that passes everything on to the current one. What was begun with an earlier one stays with it. */
export function latest(current: () => Provider): Wrapper {
  const { watch, onChange } = current();
  return {
    list: (part, context) => current().list(part, context),
    call: (operation, context) => current().call(operation, context),
    find: (part, name, context) => findIn(current(), part, name, context),
    watch:
      watch && ((target, context, listener) => current().watch?.(target, context, listener) ?? (() => {})),
    offers: (caller) => current().offers(caller),
    onChange: onChange && ((listener) => current().onChange?.(listener) ?? (() => {})),
  };
}

/** Changes an event on its way to the caller, or drops it. */
type MapEvent = (event: CallEvent) => CallEvent | undefined;

/** The limits and mappings that middlewares set for a call. The provider does not see them. */
interface CallTerms {
  /**
   * The call is stopped with a `TimeoutError` when the provider takes longer, even if it ignores its signal. Of several, the
   * smallest counts. Each round of a call that asks something has the whole time, and waiting for an answer to a question takes none of it.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Changes what the call emits on its way to the caller, or drops it. Of several, that of the innermost
   * middleware comes first. A mapping that throws drops the event.
   */
  readonly mapEvent?: MapEvent | undefined;
}

/** The longest delay of a timer, about 25 days. With a longer one it would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * The time that a call has, from its construction on. There is no timer and no listener before {@link watch}
 * and after {@link stop}: most tools answer at once, and both took a third of such a call.
 */
class TimeLimit {
  /** Aborted with a `TimeoutError`, or with the caller's reason when the caller gives up first. */
  readonly cancellation: LazyAbort = new LazyAbort();
  readonly #timeoutMs: number;
  readonly #caller: Cancellation;
  readonly #clock: Clock;
  #endsAt: number;
  /** How many questions keep the time from running. */
  #holds = 0;
  #heldSince = 0;
  #state: "new" | "watching" | "over" = "new";
  #stopTimer = (): void => {};

  constructor(timeoutMs: number, caller: Cancellation, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
    this.#clock = clock;
    this.#endsAt = clock.now() + Math.min(timeoutMs, maxTimerMs);
    if (caller.isAborted) this.#end();
  }

  /** The call was not answered at once: from now on it can be aborted. */
  watch(): void {
    if (this.#caller.isAborted) return this.#end();
    this.#state = "watching";
    this.#caller.onAbort(this.#end);
    this.#arm();
  }

  /** Stops the time while the caller is being asked, until the returned function is called. */
  hold(): () => void {
    if (this.#holds++ === 0) this.#heldSince = this.#clock.now();
    this.#stopTimer();
    return () => {
      if (--this.#holds > 0) return;
      this.#endsAt += this.#clock.now() - this.#heldSince;
      this.#arm();
    };
  }

  /** The call ended. */
  stop(): void {
    if (this.#state === "watching") this.#caller.offAbort(this.#end);
    this.#state = "over";
    this.#stopTimer();
  }

  readonly #end = (): void => {
    this.stop();
    const { isAborted, reason } = this.#caller;
    this.cancellation.abort(isAborted ? reason : new TimeoutError("total", this.#timeoutMs));
  };

  #arm(): void {
    if (this.#state !== "watching" || this.#holds > 0) return;
    const leftMs = Math.max(0, this.#endsAt - this.#clock.now());
    this.#stopTimer = this.#clock.timer(leftMs, this.#end);
  }
}

/** The same context, whose events are changed on their way to the caller, or dropped. */
function withMappedEvents(context: CallContext, mapEvent: MapEvent): CallContext {
  const emit: CallContext["emit"] = async (event) => {
    const mapped = mapEvent(event);
    if (mapped !== undefined) await context.emit(mapped);
  };
  return withContext(context, { emit: handled(emit) });
}

/** The same context, stopped by the limit: what a provider that ignores its signal emits later is dropped. */
function withLimit(context: CallContext, limit: TimeLimit): CallContext {
  const { cancellation } = limit;
  return withContext(context, {
    cancellation,
    emit: handled(async (event) => (cancellation.isAborted ? undefined : context.emit(event))),
    ask: context.ask === undefined ? undefined : withoutTime(context.ask, limit),
  });
}

/** The time that people take to answer is not the tool's. */
function withoutTime(ask: AskCaller, limit: TimeLimit): AskCaller {
  return async (question, signal) => {
    const release = limit.hold();
    try {
      return await ask(question, signal);
    } finally {
      release();
    }
  };
}

/** A tool that does not wait for its `emit` must not end the process when that fails. A tool that waits gets the error. */
function handled(emit: CallContext["emit"]): CallContext["emit"] {
  return (event) => {
    const emitted = emit(event);
    emitted.catch(() => {});
    return emitted;
  };
}

const noTerms: CallTerms = {};

/** The terms of outer middlewares together with those of an inner one. */
function addTerms(outer: CallTerms, { timeoutMs, mapEvent }: CallTerms): CallTerms {
  if (timeoutMs === undefined && mapEvent === undefined) return outer;
  if (timeoutMs !== undefined && !(timeoutMs >= 0))
    throw new RangeError(`timeoutMs must be a number of milliseconds, not ${timeoutMs}`);
  return {
    timeoutMs: Math.min(timeoutMs ?? Infinity, outer.timeoutMs ?? Infinity),
    mapEvent: inTurn(mapEvent, outer.mapEvent),
  };
}

/** An outcome whose task message is mapped like any other progress. */
function mapMessage(outcome: Outcome, mapEvent: MapEvent): Outcome {
  const { task } = outcome;
  if (task?.message === undefined) return outcome;
  const mapped = toMapped(mapEvent, task.message);
  return { ...outcome, task: { ...task, message: mapped } };
}

function toMapped(mapEvent: MapEvent, message: string): string | undefined {
  try {
    const event = mapEvent({ kind: "progress", message });
    return event?.kind === "progress" ? event.message : undefined;
  } catch {
    return undefined;
  }
}

function inTurn(inner: MapEvent | undefined, outer: MapEvent | undefined): MapEvent | undefined {
  if (inner === undefined || outer === undefined) return inner ?? outer;
  return (event) => {
    const mapped = inner(event);
    return mapped === undefined ? undefined : outer(mapped);
  };
}
