import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "@junctor/core/async";
import { type Collision, describeCollision } from "@junctor/core/compose";
import { defined } from "@junctor/core/options";
import { estimateTokens } from "../context/index.ts";
import type { ServerFacts } from "../gateway/index.ts";
import { junctor } from "../invocation/index.ts";
import { type ServerStatus, statusOf } from "../servers/index.ts";
import {
  type CallRecord,
  type EndedCall,
  idOf,
  maxRecorded,
  type Metric,
  nameOf,
  readUsage,
  stepsOf,
} from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";
import type {
  Callers,
  CallReport,
  Calls,
  CatalogReport,
  History,
  NameCollision,
  ParkedCalls,
  Problems,
  ServerReport,
  Sessions,
  Settings,
  Status,
  Usage,
  UsageReport,
} from "./answers.ts";
import { causeOf } from "./causes.ts";

const statuses = ["up", "down", "starting", "idle", "stopped", "disabled"] as const;
/** Points of a sparkline. */
const recentPoints = 60;
const maxUnderway = 1000;
const maxListed = 1000;

/** The gateway as a whole, without the number of its problems, which takes longer to find. */
export function reportStatus(source: AdminSource): Status {
  const { gateway, telemetry, version, file, log, worker } = source;
  const servers = gateway.status();
  const http = source.http();
  const load = http?.inspect();
  const uptimeMs = Math.round(process.uptime() * 1000);
  return defined({
    name: "junctor",
    version,
    pid: process.pid,
    worker: worker && { number: worker.number, count: worker.count, primary: worker.primary },
    node: process.version,
    startedAt: Math.round(performance.timeOrigin),
    uptimeMs,
    state: stateOf(source),
    url: http?.url,
    config: file,
    hasKeys: source.hasKeys(),
    servers: Object.fromEntries(
      statuses.map((status) => [status, servers.filter((server) => server.status === status).length]),
    ),
    calls: {
      underway: telemetry.calls.underway.length,
      total: telemetry.totals.ended,
      failed: telemetry.totals.failed,
    },
    sessions: load?.sessions.length ?? 0,
    streams: load?.streams ?? 0,
    parked: gateway.controls.parked().length,
    memoryBytes: process.memoryUsage.rss(),
    eventLoopDelayMs: eventLoopDelayMs(),
    logLevel: log.level,
  });
}

function stateOf({ isReady, isDraining }: AdminSource): Status["state"] {
  if (isDraining()) return "draining";
  return isReady() ? "ready" : "starting";
}

/** The same word as `/ready` of the MCP listener. */
export function readinessOf({ isDraining, isReady, http }: AdminSource): string {
  if (isDraining()) return "draining";
  if (!isReady()) return "starting";
  return http()?.inspect().isOverloaded === true ? "overloaded" : "ok";
}

/** Every server, also those that are disabled. `withRecent` adds the points of a sparkline. */
export function reportServers(source: AdminSource, withRecent: boolean): readonly ServerReport[] {
  const facts = new Map(source.gateway.controls.servers().map((each) => [each.name, each]));
  return source.gateway
    .status()
    .map((status) => reportServer(source, status, facts.get(status.name), withRecent));
}

function reportServer(
  source: AdminSource,
  status: ServerStatus,
  facts: ServerFacts | undefined,
  withRecent: boolean,
): ServerReport {
  const { telemetry, clock, restarts, advise, days } = source;
  const chart = withRecent ? telemetry.charts.ofServer(status.name, recentPoints) : undefined;
  const health = facts?.health;
  const sinceAt = health !== undefined && "since" in health && !facts?.isLocal ? health.since : undefined;
  const nextTryAt = health?.kind === "down" ? health.nextTryAt : undefined;
  return {
    ...status,
    ...defined({
      kind: facts === undefined ? undefined : toKind(facts),
      start: facts?.config.start,
      sharing: facts?.config.sharing,
      inFlight: facts?.inFlight,
      restarts: restarts(status.name),
      canRestart: facts !== undefined && !facts.isLocal,
      sinceAt: sinceAt === undefined ? undefined : toDate(sinceAt, clock),
      nextTryAt: nextTryAt === undefined ? undefined : toDate(nextTryAt, clock),
      advice: status.trouble === undefined ? undefined : advise(status),
      cause: causeOf(source, status),
      day: withRecent ? days.marksOf(status.name, clock.date()) : undefined,
      tokens: withRecent ? tokensOf(source, status.name) : undefined,
      address: facts && addressOf(facts),
      isRecorded: facts?.config.record,
      recent: chart && { rate: chart.rate, p50Ms: chart.p50Ms, stepMs: 10_000 },
    }),
  };
}

function toKind({ isLocal, config: { launch } }: ServerFacts): ServerReport["kind"] {
  return isLocal || (launch.kind !== "command" && launch.kind !== "http") ? "local" : launch.kind;
}

/** About how many tokens the definitions of a server's tools are. Counted once for each list. */
function tokensOf({ gateway }: AdminSource, server: string): number {
  const view = gateway.controls.view(undefined);
  let counts = tokenCounts.get(view.toolClaims);
  if (counts === undefined) {
    counts = new Map<string, number>();
    for (const { server: owner, item } of view.toolClaims.values())
      counts.set(owner, (counts.get(owner) ?? 0) + estimateTokens(JSON.stringify(item)));
    tokenCounts.set(view.toolClaims, counts);
  }
  return counts.get(server) ?? 0;
}

const tokenCounts = new WeakMap<object, Map<string, number>>();

/** Where a server is, without what may be secret: arguments, queries, users. */
function addressOf({ config, isLocal }: ServerFacts): string | undefined {
  const { launch } = config;
  if (isLocal) return undefined;
  if (launch.kind === "command") return launch.command;
  if (launch.kind !== "http") return undefined;
  if (!URL.canParse(launch.url)) return undefined;
  const { host, pathname } = new URL(launch.url);
  return `${host}${pathname}`;
}

/** The date of a reading of the clock. */
function toDate(reading: number, clock: Clock): number {
  return clock.date() - (clock.now() - reading);
}

/** The catalog, for one caller or as a whole. */
export function reportCatalog(
  source: AdminSource,
  as: string | undefined,
  server: string | undefined,
): CatalogReport {
  const { controls } = source.gateway;
  const view = controls.view(as);
  const isWanted = (owner: string | undefined): boolean => server === undefined || owner === server;
  const tools = [...view.toolClaims.values()].filter((claim) => isWanted(claim.server));
  const prompts = [...view.promptClaims.values()].filter((claim) => isWanted(claim.server));
  const resources = view.resources.map((item) => ({
    ...item,
    ...defined({ server: view.resourceOwner(item.uri)?.server }),
  }));
  const templates = view.templates.map((item) => ({
    ...item,
    ...defined({ server: view.templateOwner(item.uriTemplate)?.server }),
  }));
  return {
    ...defined({ as }),
    tools: tools.map(({ item, key, server: owner, ownName }) => ({
      ...item,
      name: key,
      server: owner,
      ownName,
    })),
    prompts: prompts.map(({ item, key, server: owner, ownName }) => ({
      ...item,
      name: key,
      server: owner,
      ownName,
    })),
    resources: resources.filter((each) => isWanted(each.server)),
    templates: templates.filter((each) => isWanted(each.server)),
    collisions: controls
      .collisions()
      .filter(({ owner, others }) => isWanted(owner) || others.some((other) => isWanted(other)))
      .map(reportCollision),
  };
}

export function reportCollision(collision: Collision): NameCollision {
  const { key, owner, others, isReserved } = collision;
  return { name: key, owner, others, isReserved: isReserved === true, advice: describeCollision(collision) };
}

export function reportCallers({ gateway, telemetry, http, hasKeys }: AdminSource): Callers {
  const { controls } = gateway;
  const { underway } = telemetry.calls;
  const sessions = http()?.inspect().sessions ?? [];
  const parked = controls.parked();
  const count = (all: readonly { readonly caller?: string | undefined }[], name: string): number =>
    all.filter(({ caller }) => caller === name).length;
  return {
    callers: controls.callers().map((name) => ({
      name,
      calls: count(underway, name),
      sessions: count(sessions, name),
      parked: count(parked, name),
      tools: controls.view(name).toolClaims.size,
      isRevoked: controls.isRevoked(name),
    })),
    unnamed: !hasKeys(),
  };
}

export function reportCalls({ telemetry, clock }: AdminSource): Calls {
  const underway = telemetry.calls.underway.slice(0, maxUnderway);
  return {
    underway: underway.map((call) => reportCall(call, clock.date())),
    recent: telemetry.calls.recent.map((call) => reportCall(call, clock.date())),
  };
}

/** One call, to be written as JSON. `withPayload` adds what was recorded of its arguments and its result. */
export function reportCall(call: CallRecord, date: number, withPayload = false): CallReport {
  const now = performance.now();
  const { args, result } = call;
  const name = nameOf(call);
  const isCut = [args, result].some((json) => json !== undefined && json.length > maxRecorded);
  return {
    id: idOf(call),
    method: call.method,
    era: call.era,
    state: call.state,
    at: Math.round(date - (now - call.startedAt)),
    ms: toMs((call.endedAt ?? now) - call.startedAt),
    steps: stepsOf(call).map(({ state, atMs }) => ({ state, atMs: toMs(atMs) })),
    bytesIn: call.bytesIn,
    bytesOut: call.bytesOut,
    isFromPage: call.isFromPage,
    ...defined({
      [call.method === "tools/call" ? "tool" : "name"]: name,
      server: call.server,
      caller: call.caller,
      client: call.client,
      upstreamEra: call.upstreamEra,
      outcome: call.outcome,
      code: call.code,
      delivery: call.delivery,
      reason: call.reason,
      traceId: call.traceId,
    }),
    ...(withPayload ? { ...defined({ arguments: toShown(args), result: toShown(result) }), cut: isCut } : {}),
  };
}

/** A call of the history, of which less is known. */
export function reportEnded(call: EndedCall, date: number): CallReport {
  const { startedAt, ms, sentMs } = call;
  const sent = sentMs === undefined ? [] : [{ state: "sent" as const, atMs: toMs(sentMs) }];
  return {
    id: idOf(call),
    method: call.method,
    era: call.era,
    state: "ended",
    at: Math.round(date - (performance.now() - startedAt)),
    ms: toMs(ms),
    steps: [{ state: "queued", atMs: 0 }, ...sent, { state: "ended", atMs: toMs(ms) }],
    bytesIn: call.bytesIn,
    bytesOut: call.bytesOut,
    isFromPage: call.isFromPage,
    ...defined({
      [call.method === "tools/call" ? "tool" : "name"]: call.name,
      server: call.server,
      caller: call.caller,
      client: call.client,
      upstreamEra: call.upstreamEra,
      outcome: call.outcome,
      code: call.code,
      delivery: call.delivery,
      reason: call.reason,
      traceId: call.traceId,
    }),
  };
}

const historyBars = 60;

interface HistoryQuery {
  readonly is: "all" | "failed";
  readonly server?: string;
  readonly caller?: string;
  readonly tool?: string;
  readonly words?: string;
  readonly sinceMs?: number;
  readonly before?: number;
  readonly limit: number;
}

/** A page of the calls that ended. */
export function reportHistory({ telemetry, clock }: AdminSource, query: HistoryQuery): History {
  const { history } = telemetry;
  const now = performance.now();
  const date = clock.date();
  const noBars = Array.from({ length: historyBars }, () => 0);
  if (history === undefined)
    return {
      calls: [],
      all: 0,
      failed: 0,
      kept: 0,
      keptBytes: 0,
      fromAt: date,
      barMs: 1,
      callBars: noBars,
      failedBars: noBars,
    };
  const { is, sinceMs, ...filter } = query;
  const since = sinceMs === undefined ? undefined : now - sinceMs;
  const page = history.query({ ...filter, isFailed: is === "failed", since, now, bars: historyBars });
  const keptSince = history.calls.since;
  return defined({
    calls: page.calls.map((call) => reportEnded(call, date)),
    next: page.next,
    all: page.all,
    failed: page.failed,
    kept: history.calls.next - history.calls.first,
    keptSince: keptSince === undefined ? undefined : Math.round(date - (now - keptSince)),
    keptBytes: history.bytes,
    fromAt: Math.round(date - (now - page.barsFrom)),
    barMs: Math.max(1, (now - page.barsFrom) / historyBars),
    callBars: page.callBars,
    failedBars: page.failedBars,
  });
}

/** Sums of the calls in memory if those reach back far enough, else of the counters by hour. */
export function reportUsage(source: AdminSource, by: Usage["by"], sinceMs: number): Usage {
  const { telemetry, clock, usageFolder } = source;
  const calls = telemetry.history?.calls;
  const now = performance.now();
  const since = now - sinceMs;
  // Up to a day is about this process. The counters have the calls that it no longer keeps, and longer periods.
  const hasAll =
    calls !== undefined && sinceMs <= dayMs && (calls.first === 0 || (calls.since ?? now) <= since);
  const sinceAt = clock.date() - sinceMs;
  if (hasAll || usageFolder === undefined) {
    const groups = calls?.group(0, since, true) ?? [];
    const named = groups.map((each) => ({
      ...each,
      caller: each.caller ?? "unnamed",
      server: each.server ?? "",
      tool: each.tool ?? "",
    }));
    const toDate = (reading: number): number => Math.round(clock.date() - (now - reading));
    return { by, sinceAt, source: "calls", rows: toUsageRows(named, by, toDate) };
  }
  return { by, sinceAt, source: "hours", rows: toUsageRows(readUsage(usageFolder, sinceAt), by) };
}

const dayMs = 86_400_000;

interface Summed {
  readonly caller: string;
  readonly server: string;
  readonly tool: string;
  readonly calls: number;
  readonly failed: number;
  readonly sumMs: number;
  readonly mostMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly lastAt?: number;
  readonly durations?: readonly number[];
}

/** Rows of one kind, those with most calls first. */
export function toUsageRows(
  sums: readonly Summed[],
  by: Usage["by"],
  toDate: (reading: number) => number = (reading) => reading,
): readonly UsageReport[] {
  const groups = new Map<string, Summed[]>();
  for (const each of sums) {
    const key = by === "tool" ? `${each.server}\0${each.tool}` : each[by];
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  const rows = Array.from(groups.values(), (all): UsageReport => {
    const sum = (of: (each: Summed) => number): number => all.reduce((total, each) => total + of(each), 0);
    const calls = sum((each) => each.calls);
    const durations = all.flatMap(({ durations: own = [] }) => own).toSorted((one, another) => one - another);
    const quantile = (share: number): number | undefined => durations[Math.floor(durations.length * share)];
    const lastAt = Math.max(0, ...all.map((each) => each.lastAt ?? 0));
    const [p50Ms, p99Ms] = [quantile(0.5), quantile(0.99)];
    return defined({
      name: all[0]?.[by] ?? "",
      server: by === "tool" ? all[0]?.server : undefined,
      calls,
      failed: sum((each) => each.failed),
      meanMs: toMs(sum((each) => each.sumMs) / Math.max(1, calls)),
      mostMs: toMs(Math.max(...all.map(({ mostMs }) => mostMs))),
      p50Ms: p50Ms === undefined ? undefined : toMs(p50Ms),
      p99Ms: p99Ms === undefined ? undefined : toMs(p99Ms),
      tokensIn: estimateTokens(sum((each) => each.bytesIn)),
      tokensOut: estimateTokens(sum((each) => each.bytesOut)),
      lastAt: lastAt === 0 ? undefined : toDate(lastAt),
    });
  });
  return rows
    .filter(({ name }) => name !== "")
    .toSorted((one, another) => another.calls - one.calls)
    .slice(0, maxListed);
}

/** The config as it is understood. */
export function reportSettings({ file, settings }: AdminSource): Settings {
  if (file === undefined) return { settings: [] };
  try {
    return {
      file,
      settings: settings().map(({ path, value, from, line, variables }) => ({
        path,
        value,
        from,
        ...defined({ line, variables }),
      })),
    };
  } catch (error) {
    return { file, settings: [], fault: error instanceof Error ? error.message : String(error) };
  }
}

/** Recorded JSON, or as much of its text as was kept. */
function toShown(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  return json.length > maxRecorded ? json.slice(0, maxRecorded) : (JSON.parse(json) as unknown);
}

function toMs(ms: number): number {
  return Math.round(ms * 100) / 100;
}

export function reportSessions({ http }: AdminSource): Sessions {
  const sessions = http()?.inspect().sessions ?? [];
  return {
    sessions: sessions.slice(0, maxListed).map(({ client, ...session }, index) => ({
      id: `s${index + 1}`,
      ...defined(session),
      client: `${client.name} ${client.version}`,
      transport: "http",
    })),
    more: Math.max(0, sessions.length - maxListed),
  };
}

export function reportParked({ gateway, telemetry }: AdminSource): ParkedCalls {
  const parked = gateway.controls.parked();
  const toolOf = (id: string | undefined): string | undefined =>
    id === undefined ? undefined : telemetry.calls.find(id)?.name;
  return {
    parked: parked.slice(0, maxListed).map((call) => ({ ...call, ...defined({ tool: toolOf(call.call) }) })),
    more: Math.max(0, parked.length - maxListed),
  };
}

type Problem = Problems["problems"][number];

/** Everything that is wrong or odd: with the config, its servers, and their definitions. */
export function reportProblems(source: AdminSource): Problems {
  const { gateway, edits } = source;
  const problems: Problem[] = [...source.warnings(), ...gateway.unmatchedRules()].map(
    ({ path, message }) => ({
      severity: "warning",
      where: path,
      message,
    }),
  );
  for (const status of gateway.status()) {
    const { name: server, trouble, leftOut = [], unapproved = [] } = status;
    const advice = trouble === undefined ? undefined : source.advise(status);
    const add = (severity: Problem["severity"], where: string, message: string): void =>
      void problems.push({ severity, where, message, server });
    // A server that failed and is being started again is still a problem.
    if (trouble !== undefined && (status.status !== "starting" || status.reason !== undefined))
      add(status.status === "up" ? "warning" : "error", server, [trouble, advice].filter(Boolean).join(". "));
    for (const { part, name, reason } of leftOut) add("warning", `${server}: ${part} ${name}`, reason);
    for (const { part, name, why, isHeldBack } of unapproved)
      add(
        "warning",
        `${server}: ${part} ${name}`,
        `it is ${why} and not approved${isHeldBack ? ", so callers cannot use it" : ""}; ${junctor("trust")} approves it`,
      );
  }
  for (const { key, advice } of gateway.controls.collisions())
    problems.push({ severity: "warning", where: key, message: advice });
  return { problems, ...waitingOf(edits, problems) };
}

function waitingOf(edits: AdminSource["edits"], problems: Problem[]): Pick<Problems, "waiting"> {
  try {
    const { waiting, version } = edits?.inspect() ?? { waiting: [], version: "" };
    return waiting.length === 0 ? {} : { waiting: { edits: waiting, version } };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    problems.push({
      severity: "error",
      where: "config",
      message: `the edited config is not used: ${message}`,
    });
    return {};
  }
}

/** Node measures the delay with a timer of its own, which the first reading starts. */
let delays: IntervalHistogram | undefined;
const resolutionMs = 20;

function histogram(): IntervalHistogram {
  if (delays === undefined) {
    delays = monitorEventLoopDelay({ resolution: resolutionMs });
    delays.enable();
  }
  return delays;
}

/** How late timers are on average, in milliseconds. */
function eventLoopDelayMs(): number {
  const ms = histogram().mean / 1e6 - resolutionMs;
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms * 100) / 100) : 0;
}

/** Seconds that timers were late since the last scrape. */
function takeDelays(): readonly (readonly [string, number])[] {
  const all = histogram();
  const toSeconds = (ns: number): number => Math.max(0, ns / 1e9 - resolutionMs / 1000);
  const read = all.count === 0 ? [0, 0, 0] : [all.percentile(50), all.percentile(99), all.max];
  all.reset();
  return ["p50", "p99", "max"].map((stat, index) => [stat, toSeconds(read[index] ?? 0)] as const);
}

/** The gauges of the gateway and of its process. */
export function gatewayMetrics(source: AdminSource): readonly Metric[] {
  const { gateway, version } = source;
  const load = source.http()?.inspect();
  const servers = gateway.controls.servers();
  const { heapUsed, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const gauge = (name: string, help: string, value: number): Metric => ({
    name,
    help,
    type: "gauge",
    samples: [{ value }],
  });
  const byServer = (each: (server: (typeof servers)[number]) => number): Metric["samples"] =>
    servers.map((server) => ({ labels: { server: server.name }, value: each(server) }));
  return [
    gauge("junctor_sessions", "Legacy sessions in memory.", load?.sessions.length ?? 0),
    gauge("junctor_streams", "Event streams that stay open.", load?.streams ?? 0),
    gauge(
      "junctor_parked_calls",
      "Calls that wait for a caller that is away.",
      gateway.controls.parked().length,
    ),
    {
      name: "junctor_upstream_up",
      help: "Whether a server is up.",
      type: "gauge",
      samples: byServer(({ health }) => (health.kind === "up" ? 1 : 0)),
    },
    {
      name: "junctor_upstream_state",
      help: "The state of a server: 1 for the one it is in.",
      type: "gauge",
      samples: servers.map(({ name, health }) => ({
        labels: { server: name, state: statusOf(health) },
        value: 1,
      })),
    },
    {
      name: "junctor_upstream_calls_in_flight",
      help: "Requests to a server that are underway.",
      type: "gauge",
      samples: byServer(({ inFlight }) => inFlight),
    },
    {
      name: "junctor_upstream_restarts_total",
      help: "How often a server was started again.",
      type: "counter",
      samples: byServer(({ name }) => source.restarts(name)),
    },
    {
      name: "junctor_event_loop_delay_seconds",
      help: "How late timers of the process were since the last scrape.",
      type: "gauge",
      samples: takeDelays().map(([stat, value]) => ({ labels: { stat }, value })),
    },
    gauge("process_resident_memory_bytes", "Memory of the process.", rss),
    gauge("process_heap_bytes", "Memory of the process that JavaScript uses.", heapUsed),
    {
      name: "process_cpu_seconds_total",
      help: "Processor time of the process.",
      type: "counter",
      samples: [{ value: (user + system) / 1e6 }],
    },
    // Computed from the clock and the age, it would differ a little in each scrape, as if the process had restarted.
    gauge("process_start_time_seconds", "When the process started.", performance.timeOrigin / 1000),
    {
      name: "junctor_build_info",
      help: "The version of Junctor; always 1.",
      type: "gauge",
      samples: [{ labels: { version, node: process.version }, value: 1 }],
    },
  ];
}
