import type { Awaitable } from "@junctor/core/async";
import { points, stepMs, expositionType } from "../telemetry/index.ts";
import { AdminError } from "./admin-error.ts";
import { type AdminRequest, choiceOf, numberOf, optionalText, readBody } from "./admin-request.ts";
import type { AdminSource } from "./admin-source.ts";
import { type EventHub, eventKinds } from "./event-hub.ts";
import { logLevels } from "./kept-log.ts";
import { describeApi } from "./openapi.ts";
import { problemsView } from "./problems.ts";
import { gatewayMetrics } from "./process-metrics.ts";
import type { Tries } from "./try-it.ts";
import { answerTry, cancelTry, startTry } from "./try-routes.ts";
import {
  callersView,
  callsView,
  callView,
  catalogView,
  parkedView,
  serverViews,
  sessionsView,
  statusView,
} from "./views.ts";

/** An answer: JSON unless it is a text. Undefined when the route has answered by itself. */
export type AdminAnswer =
  | { readonly status?: number; readonly json: object }
  | { readonly text: string; readonly type: string }
  | undefined;

/** The parts that routes use. */
export interface AdminParts {
  readonly source: AdminSource;
  readonly hub: EventHub;
  readonly tries: Tries;
  /** Where the API is, as the status tells it. */
  readonly adminUrl: () => string | undefined;
  /** The address of the page, for readers that may know its key. */
  readonly pageUrl?: () => string | undefined;
  /** Headers of every answer. */
  readonly headers: { readonly [name: string]: string };
}

type AdminRoute = (request: AdminRequest, parts: AdminParts) => Awaitable<AdminAnswer>;

/** Every route of the API: `METHOD /path`, with `:name` for a part that varies. */
export const routes: { readonly [route: string]: AdminRoute } = {
  "GET /metrics": (_, { source }) => ({
    text: source.telemetry.expose(gatewayMetrics(source)),
    type: expositionType,
  }),
  "GET /api/openapi.json": (_, { source }) => ({ json: describeApi(source.version) }),
  "GET /api/status": (_, parts) => ({ json: describeStatus(parts) }),
  "GET /api/servers": (_, { source }) => ({ json: { servers: serverViews(source, true) } }),
  "GET /api/servers/:name": ({ at }, { source }) => ({ json: findServer(source, at.name) }),
  "GET /api/catalog": ({ query }, { source }) => {
    const as = query.get("as") ?? undefined;
    if (as !== undefined) assertCaller(source, as);
    return { json: catalogView(source, as, query.get("server") ?? undefined) };
  },
  "GET /api/callers": (_, { source }) => ({ json: callersView(source) }),
  "GET /api/calls": (_, { source }) => ({ json: callsView(source) }),
  "GET /api/calls/:id": ({ at }, { source }) => {
    const call = source.telemetry.calls.find(at.id ?? "");
    if (call === undefined) throw new AdminError("admin.not_found", `Call ${at.id} is not known any more`);
    return { json: callView(call, source.clock.date(), true) };
  },
  "GET /api/sessions": (_, { source }) => ({ json: sessionsView(source) }),
  "GET /api/parked": (_, { source }) => ({ json: parkedView(source) }),
  "GET /api/charts": ({ query }, { source }) => {
    const by = choiceOf(query, "by", ["total", "server", "tool"]);
    const top = numberOf(query, "top", 20, 1000);
    const name = query.get("name");
    const series = source.telemetry.charts
      .read(by, name === null ? top : 1000)
      .filter((chart) => name === null || (by === "tool" ? chart.tool : chart.server) === name);
    return { json: { stepMs, endAt: source.telemetry.charts.endAt, points, series } };
  },
  "GET /api/problems": (_, { source }) => ({ json: problemsView(source) }),
  "GET /api/logs": ({ query }, { source }) => {
    const level = choiceOf(query, "level", ["debug", "info", "warn", "error"]);
    const after = numberOf(query, "after", 0, Number.MAX_SAFE_INTEGER);
    const lines = source.log.read(after, level, numberOf(query, "limit", 200, 1000));
    return { json: { lines, next: lines.at(-1)?.seq ?? after } };
  },
  "GET /api/events": ({ query, response }, { hub, headers }) => {
    const only = query.get("only")?.split(",") ?? [];
    const unknown = only.find((kind) => !eventKinds.some((each) => each === kind));
    if (unknown !== undefined)
      throw new AdminError("admin.bad_request", `only takes kinds of ${eventKinds.join(", ")}`);
    hub.open(response, headers, only);
    return undefined;
  },
  "POST /api/servers/:name/restart": (request, { source }) => restart(request, source),
  "POST /api/servers/:name/start": (request, { source }) => restart(request, source),
  "POST /api/servers/:name/stop": async (request, { source }) => {
    const { name = "" } = request.at;
    await readBody(request, []);
    assertRemote(source, name);
    await source.gateway.controls.stop(name);
    return { json: findServer(source, name) };
  },
  "POST /api/drain": async (request, parts) => {
    await readBody(request, []);
    parts.source.drain();
    return { json: describeStatus(parts) };
  },
  "POST /api/stop": async (request, { source }) => {
    await readBody(request, []);
    source.stop();
    return { status: 202, json: {} };
  },
  "POST /api/reload": async (request, { source }) => {
    const version = optionalText(await readBody(request, ["version"]), "version");
    if (source.edits === undefined)
      throw new AdminError("admin.conflict", "This gateway runs without a config");
    const wrong = await source.edits.agree(version);
    if (wrong !== undefined) throw new AdminError("admin.conflict", `Nothing was taken: ${wrong}`);
    return { json: { taken: true } };
  },
  "PUT /api/log-level": async (request, { source }) => {
    const given = optionalText(await readBody(request, ["level"]), "level");
    const level = logLevels.find((each) => each === given);
    if (level === undefined)
      throw new AdminError("admin.bad_request", `level must be one of ${logLevels.join(", ")}`);
    source.log.level = level;
    return { json: { level } };
  },
  "POST /api/callers/:name/revoke": (request, { source }) => setRevoked(request, source, true),
  "POST /api/callers/:name/restore": (request, { source }) => setRevoked(request, source, false),
  "POST /api/try": startTry,
  "POST /api/try/:id/answers": answerTry,
  "DELETE /api/try/:id": cancelTry,
};

/** `problems` is counted here, so that a page that shows a number need not read them all. */
function describeStatus({ source, adminUrl, pageUrl }: AdminParts): object {
  const { problems } = problemsView(source) as { readonly problems: readonly object[] };
  return { ...statusView(source), adminUrl: adminUrl(), pageUrl: pageUrl?.(), problems: problems.length };
}

async function restart(request: AdminRequest, source: AdminSource): Promise<AdminAnswer> {
  const { name = "" } = request.at;
  await readBody(request, []);
  assertRemote(source, name);
  await source.gateway.controls.restart(name);
  return { json: findServer(source, name) };
}

async function setRevoked(
  request: AdminRequest,
  source: AdminSource,
  isRevoked: boolean,
): Promise<AdminAnswer> {
  const { name = "" } = request.at;
  const { controls } = source.gateway;
  await readBody(request, []);
  assertCaller(source, name);
  if (isRevoked) controls.revoke(name);
  else controls.restore(name);
  return { json: { name, isRevoked } };
}

function findServer(source: AdminSource, name: string | undefined): object {
  const found = serverViews(source, true).find((server) => server.name === name);
  if (found === undefined) throw unknownServer(source, name);
  return found;
}

function assertRemote(source: AdminSource, name: string): void {
  const facts = source.gateway.controls.servers().find((server) => server.name === name);
  if (facts?.isLocal === true)
    throw new AdminError(
      "admin.conflict",
      `${name} is part of this process; it cannot be stopped or restarted`,
    );
  if (facts !== undefined) return;
  const disabled = source.gateway.status().find((server) => server.name === name);
  if (disabled === undefined) throw unknownServer(source, name);
  throw new AdminError("admin.conflict", `${name} is disabled: ${disabled.trouble ?? "the config says so"}`);
}

function unknownServer({ gateway }: AdminSource, name: string | undefined): AdminError {
  const names = gateway.status().map((server) => server.name);
  return new AdminError(
    "admin.not_found",
    `There is no server ${JSON.stringify(name)}; there are ${names.join(", ")}`,
  );
}

function assertCaller({ gateway }: AdminSource, name: string): void {
  if (gateway.controls.callers().includes(name)) return;
  throw new AdminError(
    "admin.not_found",
    `There is no caller ${JSON.stringify(name)} in the config, and none came in lately`,
  );
}
