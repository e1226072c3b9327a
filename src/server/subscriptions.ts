import { createDeferred } from "../async/deferred.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import { metaKeys } from "../mcp/meta.ts";
import type { Announce, Session } from "../mcp/session.ts";
import type { ServerCapabilities } from "../mcp/types.ts";
import type { CallContext } from "../tools/context.ts";
import type { Change, Hearer, Provider } from "../tools/provider.ts";
import { type Method, objectParam } from "./served.ts";

/** The kinds of list, as the filter of a listen request names them. */
const listFilters = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
} as const;

/** What one listener asked for and gets. */
interface Filter {
  readonly lists: ReadonlySet<keyof typeof listFilters>;
  readonly uris: ReadonlySet<string>;
}

/** How change notifications reach clients of both eras. */
interface Subscriptions {
  /** `subscriptions/listen`: acknowledges, then notifies until the caller leaves, ends its input, or the server drains. */
  readonly listen: Method;
  /** Announces changes to a legacy session until the returned function is called. */
  attach(session: Session, announce: Announce, caller?: string): () => void;
  /** Ends every listen stream with its result. */
  drain(): void;
}

export function createSubscriptions(
  provider: Provider,
  capabilities: ServerCapabilities,
  maxListens: number,
): Subscriptions {
  const drains = new Set<() => void>();
  const mayHear = (change: Change, hearer: Hearer): boolean => provider.mayHear?.(change, hearer) !== false;

  const listen: Method = async ({ request, params, wire, context }) => {
    if (drains.size >= maxListens) {
      throw new RpcError("rpc.internal", `Too many listen streams; at most ${maxListens} at once`);
    }
    const asked = parseFilter(params);
    const meta = `"_meta":{"${metaKeys.subscriptionId}":${request.id}}`;
    const state = { isOver: false };
    const waiting = new Map<string, Change>();
    let wake = createDeferred<void>();
    const end = (): void => {
      state.isOver = true;
      wake.resolve();
    };
    drains.add(end);
    wire.cancellation.onAbort(end);
    // A client that sends nothing more cannot cancel this, and it would never end by itself.
    wire.inputEnd?.onAbort(end);
    let filter: Filter = { lists: new Set(), uris: new Set() };
    const stop = provider.onChange?.((change) => {
      if (!isWanted(change, filter) || !mayHear(change, context)) return;
      waiting.set(methodOf(change) + uriOf(change), change);
      wake.resolve();
    });
    const watched = new Map<string, () => void>();
    try {
      await watchAll(provider, asked.uris, context, watched);
      filter = honour(asked, capabilities, watched);
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
          if (mayHear(change, context)) await wire.notify(methodOf(change), toParams(change, meta));
        }
      }
      return RawJson.fromText(`{"resultType":"complete",${meta}}`);
    } finally {
      stop?.();
      for (const unwatch of watched.values()) unwatch();
      drains.delete(end);
      wire.cancellation.offAbort(end);
      wire.inputEnd?.offAbort(end);
    }
  };

  return {
    listen,
    attach: (session, announce, caller) => {
      session.announce = announce;
      const { capabilities: asked, revision } = session.handshake;
      const hearer: Hearer = { caller, capabilities: asked, revision, session };
      const stop = provider.onChange?.((change) => {
        const isWantedHere =
          change.kind !== "resource" || isCovered(change.uri, session.subscriptions.keys());
        if (isWantedHere && mayHear(change, hearer))
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

function parseFilter(params: RawJson | undefined): Filter {
  const raw = objectParam(params, "notifications");
  if (raw === undefined)
    throw new RpcError("rpc.invalid_params", "Invalid params: notifications must be an object");
  const wanted = raw.value as { readonly [key: string]: unknown };
  const uris = wanted["resourceSubscriptions"] ?? [];
  if (!Array.isArray(uris) || uris.some((uri) => typeof uri !== "string")) {
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: resourceSubscriptions must be an array of URIs",
    );
  }
  const lists = (Object.keys(listFilters) as (keyof typeof listFilters)[]).filter(
    (kind) => wanted[listFilters[kind]] === true,
  );
  return { lists: new Set(lists), uris: new Set(uris as readonly string[]) };
}

/** Adds what can be watched to `watched`; what cannot, for whatever reason, is left out of the acknowledgement. */
async function watchAll(
  provider: Provider,
  uris: Iterable<string>,
  context: CallContext,
  watched: Map<string, () => void>,
): Promise<void> {
  const watch = async (uri: string): Promise<void> => {
    const stop = await provider.resources?.watch?.(uri, context);
    if (stop !== undefined) watched.set(uri, stop);
  };
  await Promise.allSettled(Array.from(uris, watch));
}

/** The part of a filter this server can keep. */
function honour(
  asked: Filter,
  capabilities: ServerCapabilities,
  watched: ReadonlyMap<string, unknown>,
): Filter {
  const lists = [...asked.lists].filter((kind) => capabilities[kind]?.listChanged === true);
  return { lists: new Set(lists), uris: new Set(watched.keys()) };
}

function toFilterText({ lists, uris }: Filter): string {
  const parts = Array.from(lists, (kind) => `"${listFilters[kind]}":true`);
  if (uris.size > 0) parts.push(`"resourceSubscriptions":${JSON.stringify([...uris])}`);
  return `"notifications":{${parts.join(",")}}`;
}

function isWanted(change: Change, { lists, uris }: Filter): boolean {
  return change.kind === "resource" ? isCovered(change.uri, uris) : lists.has(change.kind);
}

/** A subscription covers its URI and what lies below it. */
function isCovered(uri: string, subscribed: Iterable<string>): boolean {
  for (const root of subscribed) {
    if (uri === root || uri.startsWith(root.endsWith("/") ? root : `${root}/`)) return true;
  }
  return false;
}

function methodOf(change: Change): string {
  return change.kind === "resource"
    ? "notifications/resources/updated"
    : `notifications/${change.kind}/list_changed`;
}

function uriOf(change: Change): string {
  return change.kind === "resource" ? ` ${change.uri}` : "";
}

function toParams(change: Change, meta?: string): RawJson {
  const uri = change.kind === "resource" ? [`"uri":${JSON.stringify(change.uri)}`] : [];
  return RawJson.fromText(`{${[...uri, ...(meta === undefined ? [] : [meta])].join(",")}}`);
}
