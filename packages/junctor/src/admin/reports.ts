import type { Clock } from "@junctor/core/async";
import { type Collision, describeCollision } from "@junctor/core/compose";
import { defined } from "@junctor/core/options";
import type { ServerFacts } from "../gateway/index.ts";
import { junctor } from "../invocation/index.ts";
import type { ServerStatus } from "../servers/index.ts";
import { type CallRecord, idOf, nameOf, stepsOf, maxRecorded } from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";
import type {
  Callers,
  CallReport,
  Calls,
  CatalogReport,
  NameCollision,
  ParkedCalls,
  Problems,
  ServerReport,
  Sessions,
  Status,
} from "./answers.ts";
import { eventLoopDelayMs } from "./process-metrics.ts";

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
  { telemetry, clock, restarts, advise }: AdminSource,
  status: ServerStatus,
  facts: ServerFacts | undefined,
  withRecent: boolean,
): ServerReport {
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
      recent: chart && { rate: chart.rate, p50Ms: chart.p50Ms, stepMs: 10_000 },
    }),
  };
}

function toKind({ isLocal, config: { launch } }: ServerFacts): ServerReport["kind"] {
  return isLocal || (launch.kind !== "command" && launch.kind !== "http") ? "local" : launch.kind;
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
      traceId: call.traceId,
    }),
    ...(withPayload ? { ...defined({ arguments: toShown(args), result: toShown(result) }), cut: isCut } : {}),
  };
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
    // One that failed and is being started again is still a problem.
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
