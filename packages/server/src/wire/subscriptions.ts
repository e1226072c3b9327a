import {
  createDeferred,
  type Clock,
  systemClock,
  LeakyBuckets,
  type CallerLimits,
  Quota,
} from "@junctor/core/async";
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
import { empty, type Served, sessionOf } from "./served.ts";
import { assertDeclared, openTaskId, toTaskJson } from "./tasks.ts";

/** The member of a listen request's filter for a kind of list. */
function filterOf(kind: Announced): string {
  return `${kind}ListChanged`;
}

/** The changes that a listener asks for, or gets. */
interface Filter {
  readonly lists: ReadonlySet<Announced>;
  readonly uris: ReadonlySet<string>;
  readonly taskIds: ReadonlySet<string>;
}

/** The most watches of one request that are begun at the same time. */
const maxAsked = 32;

const updatedMethod = "notifications/resources/updated";

/** Sends change notifications to clients of both eras. */
export class Subscriptions {
  readonly #provider: Provider;
  readonly #limits: ListenLimits;
  readonly #seal: Seal;
  readonly #streams = new Set<ListenStream>();

  constructor(provider: Provider, limits: ListenLimits, seal: Seal) {
    this.#provider = provider;
    this.#limits = limits;
    this.#seal = seal;
  }

  /** `subscriptions/listen`: acknowledges, then notifies until the caller leaves, ends its input, or the server drains. */
  async listen(served: Served): Promise<RawJson> {
    const { streams, watches } = this.#limits;
    const { owner, cancellation, inputEnd } = served.wire;
    const asked = parseFilter(served, this.#provider, (wanted) => watches.refusal(owner, wanted));
    const count = asked.uris.size + asked.taskIds.size;
    streams.take(owner);
    watches.add(owner, count);
    const stream = new ListenStream(this.#provider, served, this.#seal);
    const end = (): void => stream.end();
    this.#streams.add(stream);
    cancellation.onAbort(end);
    // A client that sends nothing more cannot cancel this, and it would never end by itself.
    inputEnd?.onAbort(end);
    try {
      return await stream.run(asked);
    } finally {
      this.#streams.delete(stream);
      streams.give(owner);
      watches.give(owner, count);
      cancellation.offAbort(end);
      inputEnd?.offAbort(end);
    }
  }

  /** `resources/subscribe` of legacy clients. */
  async subscribe(served: Served): Promise<RawJson> {
    const uri = uriOf(served);
    const session = sessionOf(served);
    const subscribed = session?.subscriptions;
    if (session === undefined || subscribed?.has(uri) !== false) return empty;
    const { watches } = this.#limits;
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
    const announce = (notice: Notice): void => {
      if (notice.kind !== "updated" || watching.signal.aborted) return;
      // If several subscriptions cover a resource, only the nearest one announces.
      const nearest = findCovering(notice.uri, subscribed);
      if (nearest === undefined || nearest === uri) session.announce?.(updatedMethod, toUpdated(notice));
    };
    try {
      const context = toWatchContext(served.context, session, watching.signal);
      unwatch = await this.#provider.watch?.(
        { part: "resources", name: uri, ref: undefined },
        context,
        announce,
      );
    } catch (error) {
      stop();
      throw error;
    }
    // The same request may have come twice at once, and one watch is enough.
    if (cancellation.isAborted || subscribed.has(uri)) stop();
    else subscribed.set(uri, stop);
    return empty;
  }

  unsubscribe(served: Served): RawJson {
    const uri = uriOf(served);
    const subscribed = sessionOf(served)?.subscriptions;
    subscribed?.get(uri)?.();
    subscribed?.delete(uri);
    return empty;
  }

  /** Announces changes to a legacy session until the returned function is called. */
  attach(session: Session, announce: Announce, caller?: string): () => void {
    const { capabilities, revision } = session.handshake;
    session.announce = announce;
    const stop = this.#provider.onChange?.((change) => {
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
  }

  /** Ends every listen stream with its result. */
  drain(): void {
    for (const stream of this.#streams) stream.end();
  }
}

/** One `subscriptions/listen` request, from its acknowledgement to its end. */
class ListenStream {
  readonly #provider: Provider;
  readonly #served: Served;
  readonly #seal: Seal;
  /** The member that names the subscription. */
  readonly #id: string;
  readonly #meta: string;
  #isOver = false;
  /** The notifications to send, by subject: a later one replaces an earlier one. */
  readonly #waiting = new Map<string, () => Promise<void> | void>();
  #wake = createDeferred<void>();
  #lists: Filter["lists"] = new Set();
  readonly #watched = new Map<string, () => void>();
  readonly #watchedTasks = new Map<string, () => void>();

  constructor(provider: Provider, served: Served, seal: Seal) {
    this.#provider = provider;
    this.#served = served;
    this.#seal = seal;
    this.#id = `"${metaKeys.subscriptionId}":${served.request.id}`;
    this.#meta = `"_meta":{${this.#id}}`;
  }

  end(): void {
    this.#isOver = true;
    this.#wake.resolve();
  }

  async run(asked: Filter): Promise<RawJson> {
    const { wire, context } = this.#served;
    const stop = this.#provider.onChange?.((change) => this.#takeChange(change));
    try {
      await watchAll(this.#provider, asked.uris, context, this.#watched, (notice) =>
        this.#takeUpdate(notice),
      );
      await watchTasks(
        this.#provider,
        asked.taskIds,
        this.#seal,
        this.#served,
        this.#watchedTasks,
        (taskId, outcome) => this.#takeTask(taskId, outcome),
      );
      this.#lists = honour(asked.lists, this.#provider, context);
      const uris = new Set(this.#watched.keys());
      const taskIds = new Set(this.#watchedTasks.keys());
      const filter = toFilterText({ lists: this.#lists, uris, taskIds });
      await wire.notify(
        "notifications/subscriptions/acknowledged",
        RawJson.fromText(`{${filter},${this.#meta}}`),
      );
      await this.#send();
      return RawJson.fromText(`{"resultType":"complete",${this.#meta}}`);
    } finally {
      stop?.();
      for (const unwatch of [...this.#watched.values(), ...this.#watchedTasks.values()]) unwatch();
    }
  }

  /** Sends one notification at a time, and waits for the transport. Changes that come meanwhile are merged, not queued. */
  async #send(): Promise<void> {
    while (!this.#isOver) {
      await this.#wake.promise;
      this.#wake = createDeferred<void>();
      for (const [key, send] of this.#waiting) {
        this.#waiting.delete(key);
        await send();
      }
    }
  }

  #queue(key: string, send: () => Promise<void> | void): void {
    this.#waiting.set(key, send);
    this.#wake.resolve();
  }

  #takeChange(change: Change): void {
    const { wire, context } = this.#served;
    const method = methodOf(change);
    if (!this.#lists.has(announcedAs(change.part)) || !isFor(change, context)) return;
    this.#queue(method, () => {
      // The caller's access may have changed while this waited.
      if (isFor(change, context)) return wire.notify(method, RawJson.fromText(`{${this.#meta}}`));
    });
  }

  #takeUpdate(notice: Notice): void {
    if (notice.kind !== "updated") return;
    const { wire } = this.#served;
    this.#queue(`uri ${notice.uri}`, () => wire.notify(updatedMethod, toUpdated(notice, this.#id)));
  }

  #takeTask(taskId: string, outcome: Outcome): void {
    const { wire } = this.#served;
    this.#queue(`task ${taskId}`, () =>
      wire.notify("notifications/tasks", toTaskJson(outcome, taskId, this.#meta)),
    );
  }
}

/** The context of a watch that outlives its request. The identity of the caller may change meanwhile. */
function toWatchContext(context: CallContext, session: Session, signal: AbortSignal): CallContext {
  const own = withContext(context, { signal });
  return Object.defineProperty(own, "identity", { get: () => session.identity, enumerable: true });
}

function isFor(change: Change, caller: Parameters<NonNullable<Change["isFor"]>>[0]): boolean {
  return change.isFor?.(caller) !== false;
}

/** Reads a filter. `refusal` says why this many subscriptions are too many; it is called before they are used. */
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

/** The most tasks of one listen request. */
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

/** Adds the resources that can be watched to `watched`. All others are left out of the acknowledgement. */
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
      // Other work gets a turn, even if watching never waits.
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
 * Watches the tasks that can be watched, and leaves the others out. The current state of each is sent once, because a task that
 * has already ended reports no more changes. `watched` takes the functions that end the watches.
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
      // Not reported: the acknowledgement does not list it.
    }
  }
}

/** The lists whose changes this server announces to the caller. */
function honour(asked: Filter["lists"], provider: Provider, context: CallContext): Filter["lists"] {
  if (provider.onChange === undefined) return new Set();
  const offers = provider.offers(context);
  return new Set([...asked].filter((kind) => kind === "tools" || offers.serves(`${kind}/list`)));
}

/** The resource that a request subscribes to or unsubscribes from. */
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

/** The subscription to a URI, or the nearest one that the URI lies below. */
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

/** The limits on streams, subscriptions and completions, and what callers use of them. Servers with the same object share its limits. */
export interface ListenLimits {
  readonly streams: Quota;
  readonly watches: Quota;
  /** Counts a completion of a caller, or throws an `RpcError` for one too many. */
  readonly takeCompletion: (owner: unknown) => void;
}

/** Limits on streams, subscriptions and completions, with nothing held yet. */
export function createListenLimits(
  perCaller: CallerLimits = {},
  maxListens = 16_384,
  clock: Clock = systemClock,
): ListenLimits {
  return {
    streams: new Quota({ what: "listen streams", total: maxListens, each: () => perCaller.streams }),
    watches: new Quota({
      what: "resource subscriptions",
      total: maxWatched,
      each: () => perCaller.subscriptions ?? 4096,
    }),
    takeCompletion: limitCompletions(() => perCaller.completionsPerMinute ?? 600, clock),
  };
}

/** The most resources that are watched for all callers. */
const maxWatched = 100_000;

/** Limits completions: a client asks with every key press, and the protocol wants servers to limit that (2025-11-25, completion: security). */
function limitCompletions(limit: () => number, clock: Clock): (owner: unknown) => void {
  if (!(limit() >= 1)) throw new RangeError(`completionsPerMinute must be 1 or more, not ${limit()}`);
  const buckets = new LeakyBuckets<unknown>(clock, () => 60_000 - 60_000 / limit());
  return (owner) => {
    const perMinute = limit();
    const bucket = buckets.of(owner);
    const retryAfterMs = Math.ceil(bucket.charge(0));
    if (retryAfterMs === 0) return void bucket.charge(60_000 / perMinute);
    const seconds = Math.ceil(retryAfterMs / 1000);
    const text = `You asked for too many completions; at most ${perMinute} a minute. Try again in ${seconds} s`;
    const data = { code: "rpc.too_many", delivery: "not_sent", most: perMinute, retryAfterMs };
    throw new RpcError("rpc.too_many", text, { data });
  };
}
