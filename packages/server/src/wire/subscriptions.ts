import { createDeferred } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { metaKeys, type Seal, type Announce, type Session, type ServerCapabilities } from "@junctor/core/mcp";
import type { CallContext, OldChange, CallerInfo, OldProvider, TaskState } from "@junctor/core/provider";
import type { ListenLimits } from "./listen-limits.ts";
import {
  empty,
  type Method,
  type Methods,
  objectParam,
  type Served,
  sessionOf,
  stringParam,
} from "./served.ts";
import { toTaskJson } from "./task-wire.ts";
import { readTaskIds, watchTasks } from "./tasks.ts";

/** The kinds of list, as the filter of a listen request names them. */
const listFilters = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
} as const;

/** The changes that one listener asked for and gets. */
interface Filter {
  readonly lists: ReadonlySet<keyof typeof listFilters>;
  readonly uris: ReadonlySet<string>;
  readonly taskIds: ReadonlySet<string>;
}

/** A change or the state of a task, for a listener. */
type Notice = OldChange | { readonly kind: "task"; readonly id: string; readonly task: TaskState };

/** How change notifications reach clients of both eras. */
interface Subscriptions {
  /** `subscriptions/listen`: acknowledges, then notifies until the caller leaves, ends its input, or the server drains. */
  readonly listen: Method;
  /** `resources/subscribe` and its opposite, where resources can be watched. */
  readonly legacy: Methods;
  /** Announces changes to a legacy session until the returned function is called. */
  attach(session: Session, announce: Announce, caller?: string): () => void;
  /** Ends every listen stream with its result. */
  drain(): void;
}

/** Most resources of one request that are asked for at the same time. */
const maxAsked = 32;

export function createSubscriptions(
  provider: OldProvider,
  capabilities: ServerCapabilities,
  { streams, watches, seal }: ListenLimits & { readonly seal: Seal },
): Subscriptions {
  const drains = new Set<() => void>();
  const mayHear = (change: OldChange, callerInfo: CallerInfo): boolean =>
    provider.mayHear?.(change, callerInfo) !== false;

  const listen: Method = async (served) => {
    const { request, wire, context } = served;
    const { owner } = wire;
    const asked = parseFilter(served, provider, (count) => watches.refusal(owner, count));
    const count = asked.uris.size + asked.taskIds.size;
    streams.take(owner);
    watches.add(owner, count);
    const meta = `"_meta":{"${metaKeys.subscriptionId}":${request.id}}`;
    const state = { isOver: false };
    const waiting = new Map<string, Notice>();
    let wake = createDeferred<void>();
    const end = (): void => {
      state.isOver = true;
      wake.resolve();
    };
    drains.add(end);
    wire.cancellation.onAbort(end);
    // A client that sends nothing more cannot cancel this, and it would never end by itself.
    wire.inputEnd?.onAbort(end);
    let filter: Filter = { lists: new Set(), uris: new Set(), taskIds: new Set() };
    const stop = provider.onChange?.((change) => {
      if (!isWanted(change, filter) || !mayHear(change, context)) return;
      waiting.set(methodOf(change) + uriOf(change), change);
      wake.resolve();
    });
    const watched = new Map<string, () => void>();
    const watchedTasks = new Map<string, () => void>();
    const onState = (id: string, task: TaskState): void => {
      waiting.set(`task ${id}`, { kind: "task", id, task });
      wake.resolve();
    };
    try {
      await watchAll(provider, asked.uris, context, watched);
      await watchTasks(asked.taskIds, provider.tasks, seal, { served, watched: watchedTasks, onState });
      filter = { ...honour(asked, capabilities, watched), taskIds: new Set(watchedTasks.keys()) };
      await wire.notify(
        "notifications/subscriptions/acknowledged",
        RawJson.fromText(`{${toFilterText(filter)},${meta}}`),
      );
      // One notification at a time, each waiting for the transport: what changes meanwhile is merged, never queued up.
      while (!state.isOver) {
        await wake.promise;
        wake = createDeferred<void>();
        for (const [key, change] of waiting) {
          waiting.delete(key);
          // What the caller may hear of may have changed while this waited.
          if (change.kind === "task")
            await wire.notify("notifications/tasks", toTaskJson(change.task, change.id, meta));
          else if (mayHear(change, context)) await wire.notify(methodOf(change), toParams(change, meta));
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

  const subscribe: Method = async (served) => {
    const uri = stringParam(served.params, "uri");
    const subscribed = sessionOf(served)?.subscriptions;
    if (subscribed?.has(uri) !== false) return empty;
    const { owner, cancellation } = served.wire;
    watches.take(owner);
    let unwatch: (() => void) | undefined;
    let isOver = false;
    const stop = (): void => {
      if (isOver) return;
      isOver = true;
      watches.give(owner);
      unwatch?.();
    };
    try {
      unwatch = await provider.resources?.watch?.(uri, served.context);
    } catch (error) {
      stop();
      throw error;
    }
    // The same request may have come twice at once, and one watch is enough.
    if (cancellation.isAborted || subscribed.has(uri)) stop();
    else subscribed.set(uri, stop);
    return empty;
  };
  const unsubscribe: Method = (served) => {
    const uri = stringParam(served.params, "uri");
    const subscribed = sessionOf(served)?.subscriptions;
    subscribed?.get(uri)?.();
    subscribed?.delete(uri);
    return empty;
  };

  return {
    listen,
    legacy:
      provider.resources?.watch === undefined
        ? {}
        : { "resources/subscribe": subscribe, "resources/unsubscribe": unsubscribe },
    attach: (session, announce, caller) => {
      session.announce = announce;
      const { capabilities: asked, revision } = session.handshake;
      const who = { caller, capabilities: asked, revision, session };
      const stop = provider.onChange?.((change) => {
        const isWantedHere = change.kind !== "resource" || isCovered(change.uri, session.subscriptions);
        if (isWantedHere && mayHear(change, { ...who, identity: session.identity }))
          announce(methodOf(change), change.kind === "resource" ? toParams(change) : undefined);
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

/** `refusal` says why so many URIs may not be subscribed to: they are counted before anything is done with them. */
function parseFilter(
  { params, context }: Served,
  { tasks }: OldProvider,
  refusal: (count: number) => RpcError | undefined,
): Filter {
  const raw = objectParam(params, "notifications");
  if (raw === undefined)
    throw new RpcError("rpc.invalid_params", "Invalid params: notifications must be an object");
  const wanted = raw.value as { readonly [key: string]: unknown };
  const uris = wanted["resourceSubscriptions"] ?? [];
  const taskIds = readTaskIds(wanted["taskIds"], tasks, context);
  const refused = Array.isArray(uris) ? refusal(uris.length + taskIds.size) : undefined;
  if (refused !== undefined) throw refused;
  if (!Array.isArray(uris) || uris.some((uri) => typeof uri !== "string")) {
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: resourceSubscriptions must be an array of URIs",
    );
  }
  const lists = (Object.keys(listFilters) as (keyof typeof listFilters)[]).filter(
    (kind) => wanted[listFilters[kind]] === true,
  );
  return { lists: new Set(lists), uris: new Set(uris as readonly string[]), taskIds };
}

/** Adds what can be watched to `watched`; what cannot, for whatever reason, is left out of the acknowledgement. */
async function watchAll(
  provider: OldProvider,
  uris: Iterable<string>,
  context: CallContext,
  watched: Map<string, () => void>,
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
    provider.resources?.watch?.(uri, context);
  await Promise.all(Array.from({ length: maxAsked }, watchSome));
}

/** The part of a filter this server can keep. */
function honour(
  asked: Filter,
  capabilities: ServerCapabilities,
  watched: ReadonlyMap<string, unknown>,
): Omit<Filter, "taskIds"> {
  const lists = [...asked.lists].filter((kind) => capabilities[kind]?.listChanged === true);
  return { lists: new Set(lists), uris: new Set(watched.keys()) };
}

function toFilterText({ lists, uris, taskIds }: Filter): string {
  const parts = Array.from(lists, (kind) => `"${listFilters[kind]}":true`);
  if (uris.size > 0) parts.push(`"resourceSubscriptions":${JSON.stringify([...uris])}`);
  if (taskIds.size > 0) parts.push(`"taskIds":${JSON.stringify([...taskIds])}`);
  return `"notifications":{${parts.join(",")}}`;
}

function isWanted(change: OldChange, { lists, uris }: Filter): boolean {
  return change.kind === "resource" ? isCovered(change.uri, uris) : lists.has(change.kind);
}

/** Most levels of a URI that are looked at: a server may announce one that is nothing but slashes. */
const maxLevels = 64;

/**
 * A subscription covers its URI and what lies below it. What a URI lies below is looked up, because there may be thousands
 * of subscriptions for one change.
 */
function isCovered(uri: string, subscribed: { has(uri: string): boolean }): boolean {
  if (subscribed.has(uri)) return true;
  let end = uri.lastIndexOf("/");
  for (let level = 0; end > 0 && level < maxLevels; level++, end = uri.lastIndexOf("/", end - 1)) {
    if (subscribed.has(uri.slice(0, end)) || subscribed.has(uri.slice(0, end + 1))) return true;
  }
  return false;
}

function methodOf(change: OldChange): string {
  return change.kind === "resource"
    ? "notifications/resources/updated"
    : `notifications/${change.kind}/list_changed`;
}

function uriOf(change: OldChange): string {
  return change.kind === "resource" ? ` ${change.uri}` : "";
}

function toParams(change: OldChange, meta?: string): RawJson {
  const uri = change.kind === "resource" ? [`"uri":${JSON.stringify(change.uri)}`] : [];
  return RawJson.fromText(`{${[...uri, ...(meta === undefined ? [] : [meta])].join(",")}}`);
}
