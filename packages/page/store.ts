import { useEffect, useState } from "preact/hooks";
import type {
  AdminEvents,
  AdminLogLine,
  CallReport,
  Calls,
  ChartPoints,
  LogReport,
  ParkedCalls,
  Problems,
  Series,
  ServerReport,
  Servers,
  Status,
} from "../junctor/src/admin/answers.ts";
import { type Api, ApiError, type StreamEvent } from "./api.ts";
import type { Tone } from "./parts.tsx";

/** What the page knows of the gateway now. */
export interface Known {
  readonly link: "connecting" | "live" | "lost" | "refused" | "full";
  /** When the connection was lost, so that everything here may be out of date. */
  readonly lostAt?: number;
  readonly status?: Status;
  readonly servers: readonly ServerReport[];
  /** The newest first, at most {@link maxCalls}. */
  readonly calls: readonly CallReport[];
  readonly parked: ParkedCalls;
  readonly problems: Problems;
  readonly log: readonly AdminLogLine[];
  readonly point?: ChartPoints;
  /** Grows when tools, prompts or resources changed. */
  readonly catalogVersion: number;
}

const maxCalls = 300;
const maxLogLines = 500;
const maxSparkPoints = 60;
/** How often the members of servers that events do not carry are read again. */
const refreshMs = 30_000;

export interface Store {
  readonly api: Api;
  readonly known: Known;
  onChange(listener: () => void): () => void;
  stop(): void;
}

const unknown: Known = {
  link: "connecting",
  servers: [],
  calls: [],
  parked: { parked: [], more: 0 },
  problems: { problems: [] },
  log: [],
  catalogVersion: 0,
};

/** Keeps what the page knows up to date by the event stream, and opens the stream again when it breaks. */
export function createStore(api: Api): Store {
  let known = unknown;
  const listeners = new Set<() => void>();
  const stopping = new AbortController();
  let isScheduled = false;
  const change = (changes: Partial<Known>): void => {
    known = { ...known, ...changes };
    if (isScheduled) return;
    // Many events in one frame are one change for the views.
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      for (const listener of listeners) listener();
    });
  };
  /** Events that arrived while the lists are being read; undefined at other times. */
  let waiting: StreamEvent<AdminEvents>[] | undefined;
  /** Reads everything again. Calls that were known may be of another run of the gateway, or have ended unseen, so the lists replace them. */
  const readLists = async (): Promise<void> => {
    const pending: StreamEvent<AdminEvents>[] = [];
    waiting = pending;
    const [status, { servers }, calls, parked, problems, { lines }] = await Promise.all([
      api.get<Status>("/api/status"),
      api.get<Servers>("/api/servers"),
      api.get<Calls>("/api/calls"),
      api.get<ParkedCalls>("/api/parked"),
      api.get<Problems>("/api/problems"),
      api.get<LogReport>("/api/logs?limit=500"),
    ]).finally(() => {
      if (waiting === pending) waiting = undefined;
    });
    if (waiting !== undefined) return; // The stream was opened again, and the lists are read for that one.
    const merged = mergeCalls([], [...calls.underway, ...calls.recent]);
    const catalogVersion = known.catalogVersion + 1;
    change({ link: "live", status, servers, calls: merged, parked, problems, log: lines, catalogVersion });
    // A list may have been read before an event that arrived while the others were read.
    for (const event of pending) onEvent(event);
  };
  const readProblems = async (): Promise<void> =>
    change({ problems: await api.get<Problems>("/api/problems") });
  const onEvent = (event: StreamEvent<AdminEvents>): void => {
    const { kind, data } = event;
    if (waiting !== undefined && kind !== "hello") waiting.push(event);
    else if (kind === "hello" || kind === "dropped") void readLists().catch(onTrouble);
    else if (kind === "calls") change({ calls: mergeCalls(known.calls, data.calls) });
    else if (kind === "server") change({ servers: mergeServer(known.servers, data) });
    else if (kind === "catalog") change({ catalogVersion: known.catalogVersion + 1 });
    else if (kind === "point") change({ point: data, servers: addPoint(known.servers, data) });
    else if (kind === "status") change({ status: data });
    else if (kind === "parked") change({ parked: data });
    else if (kind === "problems") void readProblems().catch(onTrouble);
    else if (kind === "log") {
      const last = known.log.at(-1)?.seq ?? -1;
      const fresh = data.lines.filter(({ seq }) => seq > last);
      change({ log: [...known.log, ...fresh].slice(-maxLogLines) });
    }
  };
  const onTrouble = (error: unknown): void => {
    if (stopping.signal.aborted) return;
    const { status } = error instanceof ApiError ? error : { status: 0 };
    const link = status === 401 ? "refused" : status === 429 ? "full" : "lost";
    change(known.link === "live" ? { link, lostAt: Date.now() } : { link });
  };
  const refresh = setInterval(() => {
    if (known.link !== "live" || document.hidden) return;
    api.get<Servers>("/api/servers", stopping.signal).then(({ servers }) => change({ servers }), onTrouble);
  }, refreshMs);
  void follow();
  return {
    api,
    get known() {
      return known;
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop: () => {
      clearInterval(refresh);
      stopping.abort();
    },
  };

  async function follow(): Promise<void> {
    for (;;) {
      try {
        await api.stream<AdminEvents>("/api/events", onEvent, { signal: stopping.signal });
        onTrouble(new Error("the stream ended"));
      } catch (error) {
        onTrouble(error);
      }
      if (stopping.signal.aborted || known.link === "refused") return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

function mergeCalls(before: readonly CallReport[], fresh: readonly CallReport[]): readonly CallReport[] {
  const byId = new Map(before.map((call) => [call.id, call]));
  for (const call of fresh) byId.set(call.id, call);
  return [...byId.values()].toSorted((a, b) => b.at - a.at).slice(0, maxCalls);
}

function mergeServer(before: readonly ServerReport[], fresh: AdminEvents["server"]): readonly ServerReport[] {
  const rest = before.filter(({ name }) => name !== fresh.name);
  if (fresh.status === "removed") return rest;
  const { recent, day, tokens } = before.find(({ name }) => name === fresh.name) ?? {};
  // Events leave out the members that are expensive to compute.
  const kept = Object.fromEntries(
    Object.entries({ recent, day, tokens }).filter(([, value]) => value !== undefined),
  );
  const merged: ServerReport = { ...kept, ...fresh };
  const at = before.findIndex(({ name }) => name === fresh.name);
  return at < 0 ? [...before, merged] : before.with(at, merged);
}

function addPoint(servers: readonly ServerReport[], { series }: ChartPoints): readonly ServerReport[] {
  return servers.map((server) => {
    const point = series.find((each) => each.server === server.name && each.tool === undefined);
    if (point === undefined || server.recent === undefined) return server;
    const { rate, p50Ms, stepMs } = server.recent;
    const recent = {
      stepMs,
      rate: [...rate, point.rate].slice(-maxSparkPoints),
      p50Ms: [...p50Ms, point.p50Ms].slice(-maxSparkPoints),
    };
    return { ...server, recent };
  });
}

/** A series with a new point at its end and without its oldest. */
export function extendSeries(series: Series, point: ChartPoints["series"][number] | undefined): Series {
  const add = <T>(values: readonly T[], value: T): readonly T[] => [...values.slice(1), value];
  return {
    ...series,
    rate: add(series.rate, point?.rate ?? 0),
    errors: add(series.errors, point?.errors ?? 0),
    p50Ms: add(series.p50Ms, point?.p50Ms ?? null),
    p99Ms: add(series.p99Ms, point?.p99Ms ?? null),
  };
}

/** What is known now; the view is drawn again when it changes. */
export function useKnown(store: Store): Known {
  const [known, setKnown] = useState(store.known);
  useEffect(() => {
    setKnown(store.known);
    return store.onChange(() => setKnown(store.known));
  }, [store]);
  return known;
}

export type Loaded<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "loaded"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string };

/** Reads a path when the view is first drawn, and again when `version` changes. */
export function useLoaded<T>(api: Api, path: string | undefined, version: unknown = 0): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { path?: string }>({ kind: "loading" });
  useEffect(() => {
    if (path === undefined) return undefined;
    const stopping = new AbortController();
    api.get<T>(path, stopping.signal).then(
      (value) => setLoaded({ kind: "loaded", value, path }),
      (error: unknown) => {
        if (!stopping.signal.aborted)
          setLoaded({
            kind: "failed",
            message: error instanceof ApiError ? error.message : String(error),
            path,
          });
      },
    );
    return () => stopping.abort();
  }, [api, path, version]);
  return loaded.path === path ? loaded : { kind: "loading" };
}

/** The state of a server, as a tone and a word. */
export function badgeOf({ status, cause }: ServerReport): { readonly tone: Tone; readonly word: string } {
  if (cause?.kind === "down") return { tone: "down", word: status === "disabled" ? "Disabled" : "Down" };
  if (cause?.kind === "slow") return { tone: "slow", word: "Slow" };
  if (cause?.kind === "warning") return { tone: "slow", word: "Up, with a fault" };
  const words: { readonly [status: string]: readonly [Tone, string] } = {
    up: ["up", "Up"],
    down: ["down", "Down"],
    starting: ["busy", "Starting"],
    idle: ["idle", "Idle"],
    stopped: ["idle", "Stopped"],
    disabled: ["idle", "Disabled"],
  };
  const [tone, word] = words[status] ?? ["idle", status];
  return { tone, word };
}

export function isTrouble({ cause }: ServerReport): boolean {
  return cause !== undefined;
}

/** Servers in trouble first: down, slow, with a warning; then the busiest. */
export function sortServers(
  servers: readonly ServerReport[],
  callsOf: (name: string) => number,
): readonly ServerReport[] {
  const rank = ({ cause }: ServerReport): number =>
    cause === undefined ? 3 : ["down", "slow", "warning"].indexOf(cause.kind);
  return servers.toSorted((one, other) => rank(one) - rank(other) || callsOf(other.name) - callsOf(one.name));
}

export function toolCount({ servers }: Known): number {
  return servers.reduce((sum, { tools }) => sum + tools, 0);
}

/** How much waits for a person: parked calls, an edit, definitions that are not approved. */
export function waitingCount({ parked, problems, servers }: Known): number {
  return (
    parked.parked.length +
    parked.more +
    (problems.waiting === undefined ? 0 : 1) +
    servers.filter(({ unapproved = [] }) => unapproved.length > 0).length
  );
}
