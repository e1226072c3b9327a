import { createDeferred } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { prependMembers, RawJson, withoutMembers } from "@junctor/core/json";
import {
  announced,
  type Announced,
  announcedAs,
  type Announce,
  metaKeys,
  methods,
  objectParam,
  type Seal,
  type Session,
} from "@junctor/core/mcp";
import {
  type CallContext,
  type Change,
  createOperation,
  levelsOf,
  type Notice,
  type Outcome,
  type Provider,
  readOperation,
  withContext,
} from "@junctor/core/provider";
import type { ListenLimits } from "./listen-limits.ts";
import { empty, type Serve, type Served, sessionOf } from "./served.ts";
import { assertDeclared, openTaskId, toTaskJson } from "./tasks.ts";

/** A kind of list, as the filter of a listen request names it. */
function filterOf(kind: Announced): string {
  return `${kind}ListChanged`;
}

/** The changes that one listener asked for and gets. */
interface Filter {
  readonly lists: ReadonlySet<Announced>;
  readonly uris: ReadonlySet<string>;
  readonly taskIds: ReadonlySet<string>;
}

/** How change notifications reach clients of both eras. */
interface Subscriptions {
  /** `subscriptions/listen`: acknowledges, then notifies until the caller leaves, ends its input, or the server drains. */
  readonly listen: Serve;
  /** `resources/subscribe` and its opposite, of legacy clients. */
  readonly subscribe: Serve;
  readonly unsubscribe: Serve;
  /** Announces changes to a legacy session until the returned function is called. */
  attach(session: Session, announce: Announce, caller?: string): () => void;
  /** Ends every listen stream with its result. */
  drain(): void;
}

/** Most resources of one request that are asked for at the same time. */
const maxAsked = 32;

const updatedMethod = "notifications/resources/updated";

export function createSubscriptions(
  provider: Provider,
  { streams, watches, seal }: ListenLimits & { readonly seal: Seal },
): Subscriptions {
  const drains = new Set<() => void>();

  const listen: Serve = async (served) => {
    const { request, wire, context } = served;
    const { owner } = wire;
    const asked = parseFilter(served, provider, (count) => watches.refusal(owner, count));
    const count = asked.uris.size + asked.taskIds.size;
    streams.take(owner);
    watches.add(owner, count);
    const id = `"${metaKeys.subscriptionId}":${request.id}`;
    const meta = `"_meta":{${id}}`;
    const state = { isOver: false };
    /** What is to be sent, by what it is about: the last word on each counts. */
    const waiting = new Map<string, () => Promise<void> | void>();
    let wake = createDeferred<void>();
    const end = (): void => {
      state.isOver = true;
      wake.resolve();
    };
    const queue = (key: string, send: () => Promise<void> | void): void => {
      waiting.set(key, send);
      wake.resolve();
    };
    drains.add(end);
    wire.cancellation.onAbort(end);
    // A client that sends nothing more cannot cancel this, and it would never end by itself.
    wire.inputEnd?.onAbort(end);
    let lists: Filter["lists"] = new Set();
    const stop = provider.onChange?.((change) => {
      const method = methodOf(change);
      if (!lists.has(announcedAs(change.part)) || !isFor(change, context)) return;
      queue(method, () => {
        // What the caller may hear of may have changed while this waited.
        if (isFor(change, context)) return wire.notify(method, RawJson.fromText(`{${meta}}`));
      });
    });
    const watched = new Map<string, () => void>();
    const watchedTasks = new Map<string, () => void>();
    const onUpdate = (notice: Notice): void => {
      if (notice.kind === "updated")
        queue(`uri ${notice.uri}`, () => wire.notify(updatedMethod, toUpdated(notice, id)));
    };
    const onTask = (taskId: string, outcome: Outcome): void =>
      queue(`task ${taskId}`, () => wire.notify("notifications/tasks", toTaskJson(outcome, taskId, meta)));
    try {
      await watchAll(provider, asked.uris, context, watched, onUpdate);
      await watchTasks(provider, asked.taskIds, seal, served, watchedTasks, onTask);
      lists = honour(asked.lists, provider, context);
      const filter = { lists, uris: new Set(watched.keys()), taskIds: new Set(watchedTasks.keys()) };
      await wire.notify(
        "notifications/subscriptions/acknowledged",
        RawJson.fromText(`{${toFilterText(filter)},${meta}}`),
      );
      // One notification at a time, each waiting for the transport: what changes meanwhile is merged, never queued up.
      while (!state.isOver) {
        await wake.promise;
        wake = createDeferred<void>();
        for (const [key, send] of waiting) {
          waiting.delete(key);
          await send();
        }
      }
      return RawJson.fromText(`{"resultType":"complete",${meta}}`);
    } finally {
      stop?.();
      for (const unwatch of [...watched.values(), ...watchedTasks.values()]) unwatch();
      drains.delete(end);
      streams.give(owner);
      watches.give(owner, count);
      wire.cancellation.offAbort(end);
      wire.inputEnd?.offAbort(end);
    }
  };

  const subscribe: Serve = async (served) => {
    const uri = uriOf(served);
    const session = sessionOf(served);
    const subscribed = session?.subscriptions;
    if (session === undefined || subscribed?.has(uri) !== false) return empty;
    const { owner, cancellation } = served.wire;
    watches.take(owner);
    const watching = new AbortController();
    let unwatch: (() => void) | undefined;
    const stop = (): void => {
      if (watching.signal.aborted) return;
      watches.give(owner);
      unwatch?.();
      watching.abort();
    };
    const hear = (notice: Notice): void => {
      if (notice.kind !== "updated" || watching.signal.aborted) return;
      // Of several subscriptions that cover a resource, one tells.
      const nearest = findCovering(notice.uri, subscribed);
      if (nearest === undefined || nearest === uri) session.announce?.(updatedMethod, toUpdated(notice));
    };
    try {
      const target = { part: "resources", name: uri, ref: undefined } as const;
      unwatch = await provider.watch?.(
        target,
        toWatchContext(served.context, session, watching.signal),
        hear,
      );
    } catch (error) {
      stop();
      throw error;
    }
    // The same request may have come twice at once, and one watch is enough.
    if (cancellation.isAborted || subscribed.has(uri)) stop();
    else subscribed.set(uri, stop);
    return empty;
  };
  const unsubscribe: Serve = (served) => {
    const uri = uriOf(served);
    const subscribed = sessionOf(served)?.subscriptions;
    subscribed?.get(uri)?.();
    subscribed?.delete(uri);
    return empty;
  };

  return {
    listen,
    subscribe,
    unsubscribe,
    attach: (session, announce, caller) => {
      session.announce = announce;
      const { capabilities, revision } = session.handshake;
      const stop = provider.onChange?.((change) => {
        const { identity } = session;
        if (isFor(change, { caller, identity, capabilities, revision, session }))
          announce(methodOf(change), undefined);
      });
      return () => {
        session.announce = undefined;
        stop?.();
        for (const unwatch of session.subscriptions.values()) unwatch();
        session.subscriptions.clear();
      };
    },
    drain: () => drains.forEach((end) => end()),
  };
}

/** The context of a watch that outlives the request that began it. What is known of the caller may change meanwhile. */
function toWatchContext(context: CallContext, session: Session, signal: AbortSignal): CallContext {
  const own = withContext(context, { signal });
  return Object.defineProperty(own, "identity", { get: () => session.identity, enumerable: true });
}

function isFor(change: Change, caller: Parameters<NonNullable<Change["isFor"]>>[0]): boolean {
  return change.isFor?.(caller) !== false;
}

/** `refusal` says why so many URIs may not be subscribed to: they are counted before anything is done with them. */
function parseFilter(
  { params, context }: Served,
  provider: Provider,
  refusal: (count: number) => RpcError | undefined,
): Filter {
  const raw = objectParam(params, "notifications");
  if (raw === undefined)
    throw new RpcError("rpc.invalid_params", "Invalid params: notifications must be an object");
  const wanted = raw.value as { readonly [key: string]: unknown };
  const uris = wanted["resourceSubscriptions"] ?? [];
  const taskIds = readTaskIds(wanted["taskIds"], provider, context);
  const refused = Array.isArray(uris) ? refusal(uris.length + taskIds.size) : undefined;
  if (refused !== undefined) throw refused;
  if (!Array.isArray(uris) || uris.some((uri) => typeof uri !== "string")) {
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: resourceSubscriptions must be an array of URIs",
    );
  }
  const lists = announced.filter((kind) => wanted[filterOf(kind)] === true);
  return { lists: new Set(lists), uris: new Set(uris as readonly string[]), taskIds };
}

/** Most tasks of one listen request. */
const maxTaskIds = 256;

/** The ids of tasks that a filter names. Throws `-32021` for a caller that did not declare tasks. */
function readTaskIds(wanted: unknown, provider: Provider, context: CallContext): ReadonlySet<string> {
  if (wanted === undefined || provider.watch === undefined) return new Set();
  if (!provider.offers(context).serves("tasks/get")) return new Set();
  assertDeclared(context);
  const isList = Array.isArray(wanted) && wanted.every((id) => typeof id === "string");
  if (isList && wanted.length <= maxTaskIds) return new Set(wanted as readonly string[]);
  const text = `Invalid params: taskIds must be an array of at most ${maxTaskIds} ids`;
  throw new RpcError("rpc.invalid_params", text);
}

/** Adds what can be watched to `watched`; what cannot, for whatever reason, is left out of the acknowledgement. */
async function watchAll(
  provider: Provider,
  uris: Iterable<string>,
  context: CallContext,
  watched: Map<string, () => void>,
  listener: (notice: Notice) => void,
): Promise<void> {
  const left = uris[Symbol.iterator]();
  let asked = 0;
  const watchSome = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      const uri = next.value;
      // Others get a turn, also where nothing has to be waited for.
      if (asked++ >= maxAsked) await new Promise((resolve) => setTimeout(resolve));
      const stop = await watch(uri).catch(() => undefined);
      if (stop !== undefined) watched.set(uri, stop);
    }
  };
  const watch = async (uri: string): Promise<(() => void) | undefined> =>
    provider.watch?.({ part: "resources", name: uri, ref: undefined }, context, listener);
  await Promise.all(Array.from({ length: maxAsked }, watchSome));
}

/**
 * Watches the tasks that can be watched, and leaves the others out. The state of each is sent once as it is now: one that ended before
 * would not be heard of again. `watched` takes the functions that end it.
 */
async function watchTasks(
  provider: Provider,
  ids: Iterable<string>,
  seal: Seal,
  { wire, context }: Served,
  watched: Map<string, () => void>,
  onTask: (id: string, outcome: Outcome) => void,
): Promise<void> {
  for (const id of ids) {
    try {
      const [name, ref] = openTaskId(id, seal, wire.caller);
      const stop = await provider.watch?.({ part: "tools", name, ref }, context, (notice) => {
        if (notice.kind === "task") onTask(id, notice.outcome);
      });
      if (stop === undefined) continue;
      watched.set(id, stop);
      onTask(id, await provider.call(createOperation("tasks/get", name, { ref }), context));
    } catch {
      // It is not among those that are acknowledged, and that says enough.
    }
  }
}

/** The lists whose changes this server tells the caller. */
function honour(asked: Filter["lists"], provider: Provider, context: CallContext): Filter["lists"] {
  if (provider.onChange === undefined) return new Set();
  const offers = provider.offers(context);
  return new Set([...asked].filter((kind) => kind === "tools" || offers.serves(`${kind}/list`)));
}

/** The resource that a session subscribes to, or no longer. */
function uriOf({ request: { method }, params }: Served): string {
  const row = methods.get(method);
  return row === undefined ? "" : readOperation(row, params).name;
}

function toFilterText({ lists, uris, taskIds }: Filter): string {
  const parts = Array.from(lists, (kind) => `"${filterOf(kind)}":true`);
  if (uris.size > 0) parts.push(`"resourceSubscriptions":${JSON.stringify([...uris])}`);
  if (taskIds.size > 0) parts.push(`"taskIds":${JSON.stringify([...taskIds])}`);
  return `"notifications":{${parts.join(",")}}`;
}

/** The subscription that a URI lies below, or that is for it alone; of several, the nearest. */
function findCovering(uri: string, subscribed: { has(uri: string): boolean }): string | undefined {
  for (const level of levelsOf(uri)) if (subscribed.has(level)) return level;
  return undefined;
}

function methodOf({ part }: Change): string {
  return `notifications/${announcedAs(part)}/list_changed`;
}

/** The params as they came, with the URI the caller knows. `id` is the member that names its subscription. */
function toUpdated({ uri, params }: Extract<Notice, { readonly kind: "updated" }>, id?: string): RawJson {
  const head = `"uri":${JSON.stringify(uri)}`;
  if (params === undefined)
    return RawJson.fromText(id === undefined ? `{${head}}` : `{${head},"_meta":{${id}}}`);
  const given = params.at("_meta");
  const meta = given?.kind === "object" ? withoutMembers(given, [metaKeys.subscriptionId]) : empty;
  const rest = withoutMembers(params, ["uri", "_meta"]);
  const whole = id === undefined ? meta : prependMembers(id, meta);
  return prependMembers(whole.text === "{}" ? head : `${head},"_meta":${whole.text}`, rest);
}
