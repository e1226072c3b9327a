import type { ServerResponse } from "node:http";
import type { Awaitable } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { defined } from "@junctor/core/options";
import type { Approval } from "../approvals/index.ts";
import { dayPoints, dayStepMs, expositionType, points, stepMs } from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";
import * as answers from "./answers.ts";
import type { AdminLogLine } from "./answers.ts";
import { type EventHub, eventKinds } from "./event-hub.ts";
import {
  gatewayMetrics,
  reportCall,
  reportCallers,
  reportCalls,
  reportCatalog,
  reportEnded,
  reportHistory,
  reportParked,
  reportProblems,
  reportServers,
  reportSessions,
  reportSettings,
  reportStatus,
  reportUsage,
} from "./reports.ts";
import { AdminError } from "./request.ts";
import {
  type AnyShape,
  type ApiSchema,
  anything,
  count,
  flag,
  maybe,
  object,
  record,
  type Shape,
  text,
  word,
} from "./shape.ts";
import { answerBody, startTry, tryBody, type Tries, unknownCaller } from "./try-it.ts";

/** The parts that routes use. */
export interface AdminParts {
  readonly source: AdminSource;
  readonly hub: EventHub;
  readonly tries: Tries;
  /** The address of the API, for the status. */
  readonly adminUrl: () => string | undefined;
  /** The address of the page, for readers that may know its key. */
  readonly pageUrl?: () => string | undefined;
  /** Headers of every answer. */
  readonly headers: { readonly [name: string]: string };
}

/** A request that was let in and has the shape that its route describes. */
interface AdminRequest<Path extends string, Query, Body> {
  /** The parts of the path that begin with a colon. */
  readonly at: { readonly [Name in NamesOf<Path>]: string };
  readonly query: Query;
  readonly body: Body;
  readonly response: ServerResponse;
}

type NamesOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** One row of the API: from it come the checks of a request, OpenAPI and docs/reference/admin-api.md. */
interface RouteRow<Path extends string, Query, Body, Answer> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With `:name` for a part that varies. */
  readonly path: Path;
  readonly summary: string;
  /** Without it, a query is ignored. */
  readonly query?: Shape<Query>;
  readonly body?: Shape<Body>;
  readonly maxBodyBytes?: number;
  /** Undefined for a route that answers with an event stream. */
  readonly answer?: Shape<Answer>;
  /** The events of such a stream. */
  readonly events?: AnyShape;
  /** 200 without it. */
  readonly status?: 200 | 202;
  /** The type of an answer that is a text; without it, the answer is JSON. */
  readonly type?: string;
  handle(request: AdminRequest<Path, Query, Body>, parts: AdminParts): Awaitable<Answer>;
}

/** A row whose types were checked. */
export interface Route extends Pick<
  RouteRow<string, unknown, unknown, unknown>,
  "method" | "path" | "summary" | "status" | "type" | "maxBodyBytes" | "events"
> {
  readonly query?: AnyShape;
  readonly body?: AnyShape;
  readonly answer?: AnyShape;
  handle(request: AdminRequest<string, unknown, unknown>, parts: AdminParts): Awaitable<unknown>;
}

function route<const Path extends string, Query, Body, Answer>(
  row: RouteRow<Path, Query, Body, Answer>,
): Route {
  return row;
}

const noMembers: Shape<object> = object("An empty object.", {});

export const routes: readonly Route[] = [
  route({
    method: "GET",
    path: "/metrics",
    summary: "Metrics, as Prometheus text 0.0.4.",
    type: expositionType,
    answer: text("The metrics."),
    handle: (_, { source }) => source.telemetry.expose(gatewayMetrics(source)),
  }),
  route({
    method: "GET",
    path: "/api/openapi.json",
    summary: "This API, as OpenAPI 3.1.",
    answer: record("An OpenAPI document.", anything("")),
    handle: (_, { source }) => describeApi(routes, source.version),
  }),
  route({
    method: "GET",
    path: "/api/status",
    summary: "How the gateway is.",
    answer: answers.status,
    handle: (_, parts) => answerStatus(parts),
  }),
  route({
    method: "GET",
    path: "/api/servers",
    summary: "How every server is.",
    answer: answers.servers,
    handle: (_, { source }) => ({ servers: reportServers(source, true) }),
  }),
  route({
    method: "GET",
    path: "/api/servers/:name",
    summary: "How one server is.",
    answer: answers.server,
    handle: ({ at }, { source }) => ({
      ...findServer(source, at.name),
      changes: source.days.changesOf(at.name),
    }),
  }),
  route({
    method: "GET",
    path: "/api/catalog",
    summary: "The tools, prompts and resources of all servers, under their public names.",
    query: object<{ readonly as?: string; readonly server?: string }>("", {
      as: maybe(
        text(
          "Only what this caller may use; 404 for one that is not in `GET /api/callers`. For a caller with a token it depends on what its last token proved: groups, scopes, issuer.",
        ),
      ),
      server: maybe(text("Only what this server has.")),
    }),
    answer: answers.catalog,
    handle: ({ query }, { source }) => {
      if (query.as !== undefined) assertCaller(source, query.as);
      return reportCatalog(source, query.as, query.server);
    },
  }),
  route({
    method: "GET",
    path: "/api/callers",
    summary: "The callers that are known, and what each has open.",
    answer: answers.callers,
    handle: (_, { source }) => reportCallers(source),
  }),
  route({
    method: "GET",
    path: "/api/calls",
    summary: "Calls that are underway, and the last that ended.",
    answer: answers.calls,
    handle: (_, { source }) => reportCalls(source),
  }),
  route({
    method: "GET",
    path: "/api/calls/:id",
    summary:
      'One call, with its arguments and its result (at most 16 KiB of text each, redacted as the config says) if it was made from the page or its server has `"record": true`. Nothing is kept on disk.',
    answer: answers.call,
    handle: ({ at }, { source }) => {
      const call = source.telemetry.calls.find(at.id);
      if (call !== undefined) return reportCall(call, source.clock.date(), true);
      const ended = /^c\d+$/.test(at.id) ? source.telemetry.history?.find(Number(at.id.slice(1))) : undefined;
      if (ended !== undefined) return reportEnded(ended, source.clock.date());
      throw new AdminError("admin.not_found", `Call ${at.id} is not known any more`);
    },
  }),
  route({
    method: "GET",
    path: "/api/history",
    summary:
      "Calls that ended: the last 100,000, and the last 5,000 that failed, in at most 30 MB. Nothing of it is kept on disk.",
    query: object<{
      readonly is: "all" | "failed";
      readonly server?: string;
      readonly caller?: string;
      readonly tool?: string;
      readonly words?: string;
      readonly sinceMs?: number;
      readonly before?: number;
      readonly limit: number;
    }>("", {
      is: word("Only those that failed.", ["all", "failed"], "all"),
      server: maybe(text("Only of this server.")),
      caller: maybe(text("Only of this caller, or of the client of callers without a name.")),
      tool: maybe(text("Only of this tool, by its public name.")),
      words: maybe(
        text("Each of these words must be in the tool, server, caller, client, code, reason or trace."),
      ),
      sinceMs: maybe(count("Only the last milliseconds.")),
      before: maybe(count("`next` of the page before.")),
      limit: count("How many, at most.", { maximum: 500, default: 100 }),
    }),
    answer: answers.history,
    handle: ({ query }, { source }) => reportHistory(source, query),
  }),
  route({
    method: "GET",
    path: "/api/usage",
    summary:
      "Who used how much: `tools/call`, `resources/read` and `prompts/get`. For more than a day, and further back than the calls in memory, it is the sum of all gateways of this user, a minute old.",
    query: object<{ readonly by: answers.Usage["by"]; readonly sinceMs: number }>("", {
      by: word("What the sums are by.", ["caller", "tool", "server"], "tool"),
      sinceMs: count("Of the last milliseconds, at most 7 days.", {
        maximum: 7 * 86_400_000,
        default: 3_600_000,
      }),
    }),
    answer: answers.usage,
    handle: ({ query: { by, sinceMs } }, { source }) => reportUsage(source, by, sinceMs),
  }),
  route({
    method: "GET",
    path: "/api/settings",
    summary: "The config as it is understood, with secrets hidden, and where each value comes from.",
    answer: answers.settings,
    handle: (_, { source }) => reportSettings(source),
  }),
  route({
    method: "GET",
    path: "/api/sessions",
    summary: "Legacy sessions.",
    answer: answers.sessions,
    handle: (_, { source }) => reportSessions(source),
  }),
  route({
    method: "GET",
    path: "/api/parked",
    summary:
      "Calls that a legacy server waits with. Where a modern server asked, the caller has all of the state, and `GET /api/calls` shows the call as `parked`.",
    answer: answers.parked,
    handle: (_, { source }) => reportParked(source),
  }),
  route({
    method: "GET",
    path: "/api/charts",
    summary:
      "Rate, errors and quantiles over the last hour in steps of 10 s, or over the last day in steps of 5 min; the last step is complete.",
    query: object<{
      readonly by: "total" | "server" | "tool";
      readonly name?: string;
      readonly top: number;
      readonly range: "hour" | "day";
    }>("", {
      by: word(
        "One chart for all calls, for each server, or for each tool.",
        ["total", "server", "tool"],
        "total",
      ),
      name: maybe(text("Only this server or tool.")),
      top: count("How many of the busiest.", { maximum: 1000, default: 20 }),
      range: word("The last hour or the last day; tools have the last hour only.", ["hour", "day"], "hour"),
    }),
    answer: answers.charts,
    handle: ({ query: { by, name, top, range } }, { source }) => {
      const span = by === "tool" ? "hour" : range;
      const series = source.telemetry.charts
        .read(by, name === undefined ? top : 1000, span)
        .filter((chart) => name === undefined || (by === "tool" ? chart.tool : chart.server) === name);
      const { endAt } = source.telemetry.charts;
      return span === "day"
        ? { stepMs: dayStepMs, endAt, points: dayPoints, series }
        : { stepMs, endAt, points, series };
    },
  }),
  route({
    method: "GET",
    path: "/api/problems",
    summary: "Everything that a person should look at.",
    answer: answers.problems,
    handle: (_, { source }) => reportProblems(source),
  }),
  route({
    method: "GET",
    path: "/api/logs",
    summary:
      "The last lines of the log of the gateway and of the standard error streams of servers; 1,000 are kept.",
    query: object<{ readonly after: number; readonly level: AdminLogLine["level"]; readonly limit: number }>(
      "",
      {
        after: count("Only lines after this number: `next` of the last answer.", { default: 0 }),
        level: word("The least important lines.", ["debug", "info", "warn", "error"], "debug"),
        limit: count("How many, at most.", { maximum: 1000, default: 200 }),
      },
    ),
    answer: answers.log,
    handle: ({ query: { after, level, limit } }, { source }) => {
      const lines = source.log.read(after, level, limit);
      return { lines, next: lines.at(-1)?.seq ?? after };
    },
  }),
  route({
    method: "GET",
    path: "/api/events",
    summary:
      "What happens, as it happens. At most 16 streams are open at once. Events have no ids: after a break, read the lists again.",
    query: object<{ readonly only?: string }>("", {
      only: maybe(text("Kinds of events, with commas between them; all without it.")),
    }),
    events: answers.adminEvents,
    handle: ({ query, response }, { hub, headers }) => {
      const only = query.only?.split(",") ?? [];
      if (only.some((kind) => !eventKinds.some((each) => each === kind)))
        throw new AdminError("admin.bad_request", `only takes kinds of ${eventKinds.join(", ")}`);
      hub.open(response, headers, only);
    },
  }),
  route({
    method: "POST",
    path: "/api/servers/:name/restart",
    summary:
      "Ends the processes of a server and starts it, also before its next try is due. Answers when it is up or has failed once. A local server (the demo) cannot be restarted: 409.",
    body: noMembers,
    answer: answers.server,
    handle: ({ at }, { source }) => restart(source, at.name),
  }),
  route({
    method: "POST",
    path: "/api/servers/:name/start",
    summary: "The same for a server that was stopped, is idle or down.",
    body: noMembers,
    answer: answers.server,
    handle: ({ at }, { source }) => restart(source, at.name),
  }),
  route({
    method: "POST",
    path: "/api/servers/:name/stop",
    summary:
      "Lets the calls of a server finish for 10 s, ends it, and keeps it ended; callers get an error that says that a person stopped it.",
    body: noMembers,
    answer: answers.server,
    handle: async ({ at }, { source }) => {
      assertRemote(source, at.name);
      await source.gateway.controls.stop(at.name);
      return findServer(source, at.name);
    },
  }),
  route({
    method: "POST",
    path: "/api/drain",
    summary: "Begins no call from now on; `/ready` says 503. Calls that run, and parked calls, go on.",
    body: noMembers,
    answer: answers.status,
    handle: (_, parts) => {
      parts.source.drain();
      return answerStatus(parts);
    },
  }),
  route({
    method: "POST",
    path: "/api/stop",
    summary: "Ends the gateway as SIGTERM does.",
    body: noMembers,
    answer: noMembers,
    status: 202,
    handle: (_, { source }) => {
      source.stop();
      return {};
    },
  }),
  route({
    method: "POST",
    path: "/api/reload",
    summary: "Takes the edited config, also the part that waits; 409 with the fault of a wrong one.",
    body: object<{ readonly version?: string }>("", {
      version: maybe(
        text("That of `GET /api/problems`; 409 if the file was edited since. Without it, the file as it is."),
      ),
    }),
    answer: object<{ readonly taken: boolean }>("The edit was taken.", { taken: flag("True.") }),
    handle: async ({ body }, { source }) => {
      if (source.edits === undefined)
        throw new AdminError("admin.conflict", "This gateway runs without a config");
      const fault = await source.edits.agree(body.version);
      if (fault !== undefined) throw new AdminError("admin.conflict", `Nothing was taken: ${fault}`);
      return { taken: true };
    },
  }),
  route({
    method: "PUT",
    path: "/api/log-level",
    summary: "Changes the level of the log until the next start.",
    body: answers.logLevel,
    answer: answers.logLevel,
    handle: ({ body }, { source }) => {
      source.log.level = body.level;
      return body;
    },
  }),
  route({
    method: "POST",
    path: "/api/callers/:name/revoke",
    summary: "Refuses a caller and ends all it has open, until it is restored or the gateway ends.",
    body: noMembers,
    answer: answers.revocation,
    handle: ({ at }, { source }) => setRevoked(source, at.name, true),
  }),
  route({
    method: "POST",
    path: "/api/callers/:name/restore",
    summary: "Lets a caller in again.",
    body: noMembers,
    answer: answers.revocation,
    handle: ({ at }, { source }) => setRevoked(source, at.name, false),
  }),
  route({
    method: "GET",
    path: "/api/approvals",
    summary: "The calls that wait for the person who runs the gateway, because a rule asks.",
    answer: answers.approvals,
    handle: (_, { source }) => ({ approvals: source.gateway.controls.approvals().map(reportApproval) }),
  }),
  route({
    method: "POST",
    path: "/api/approvals/:id",
    summary: "Answers one of them, once.",
    body: answers.approvalAnswer,
    answer: answers.approval,
    handle: ({ at, body }, { source }) => {
      try {
        const { controls } = source.gateway;
        return reportApproval(controls.answerApproval(at.id, body.answer === "approve", body.calls));
      } catch (error) {
        if (!(error instanceof ToolError)) throw error;
        throw new AdminError("admin.conflict", error.message);
      }
    },
  }),
  route({
    method: "POST",
    path: "/api/try",
    summary:
      "Makes a call with the rights and limits of `as`; the audit log has it under this caller, with the client `junctor-page`. At most 16 calls are open at once. Hanging up cancels the call.",
    body: tryBody,
    maxBodyBytes: 4 * 1024 * 1024,
    events: answers.tryEvents,
    handle: ({ body, response }, parts) => startTry(body, response, parts),
  }),
  route({
    method: "POST",
    path: "/api/try/:id/answers",
    summary: "Answers the questions of a call.",
    body: answerBody,
    answer: noMembers,
    status: 202,
    handle: ({ at, body }, { tries }) => {
      tries.answer(at.id, body.answers);
      return {};
    },
  }),
  route({
    method: "DELETE",
    path: "/api/try/:id",
    summary: "Cancels a call.",
    answer: noMembers,
    handle: ({ at }, { tries }) => {
      tries.cancel(at.id);
      return {};
    },
  }),
];

function answerStatus({ source, adminUrl, pageUrl }: AdminParts): answers.Status {
  const problems = reportProblems(source).problems.length;
  return { ...reportStatus(source), ...defined({ adminUrl: adminUrl(), pageUrl: pageUrl?.() }), problems };
}

function reportApproval({ digest: _digest, ...shown }: Approval): answers.ApprovalReport {
  return defined(shown);
}

async function restart(source: AdminSource, name: string): Promise<answers.ServerReport> {
  assertRemote(source, name);
  await source.gateway.controls.restart(name);
  return findServer(source, name);
}

function setRevoked(source: AdminSource, name: string, isRevoked: boolean): answers.Revocation {
  const { controls } = source.gateway;
  assertCaller(source, name);
  if (isRevoked) controls.revoke(name);
  else controls.restore(name);
  return { name, isRevoked };
}

function findServer(source: AdminSource, name: string): answers.ServerReport {
  const found = reportServers(source, true).find((server) => server.name === name);
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

function unknownServer({ gateway }: AdminSource, name: string): AdminError {
  const names = gateway.status().map((server) => server.name);
  return new AdminError(
    "admin.not_found",
    `There is no server ${JSON.stringify(name)}; there are ${names.join(", ")}`,
  );
}

function assertCaller({ gateway }: AdminSource, name: string): void {
  if (!gateway.controls.callers().includes(name)) throw unknownCaller(name);
}

const textSchema: ApiSchema = { type: "string" };

const errorSchema: ApiSchema = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: { code: textSchema, message: textSchema },
      required: ["code", "message"],
    },
  },
  required: ["error"],
};

/** Routes as an OpenAPI 3.1 document. The schema of an event stream has a member for each kind of event. */
function describeApi(routes: readonly Route[], version: string): { readonly [member: string]: unknown } {
  const paths: { [path: string]: { [method: string]: object } } = {};
  const schemas: { [name: string]: ApiSchema } = { Error: errorSchema };
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(path, route) };
    for (const shape of [route.answer, route.events, route.body])
      if (shape !== undefined) Object.assign(schemas, shape.definitions);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Junctor admin API", version, license: { name: "Apache-2.0" } },
    security: [{ key: [] }],
    paths,
    components: { schemas, securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
}

function toOperation(
  path: string,
  { summary, query, body, answer, events, status = 200, type }: Route,
): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: textSchema,
  }));
  const content =
    events === undefined
      ? { [type ?? "application/json"]: { schema: answer?.schema } }
      : { "text/event-stream": { schema: events.schema } };
  const requestBody = body && { ...body.schema, additionalProperties: false };
  return {
    summary,
    parameters: [...inPath, ...(query === undefined ? [] : toParameters(query))],
    ...(requestBody && { requestBody: { content: { "application/json": { schema: requestBody } } } }),
    responses: {
      [status]: { description: summary, content },
      default: {
        description: "The request was refused; the message says what to do.",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

function toParameters({ schema }: AnyShape): readonly object[] {
  const required = schema["required"] as readonly string[];
  const properties = Object.entries(schema["properties"] as { readonly [name: string]: ApiSchema });
  return properties.map(([name, { description, ...member }]) => ({
    name,
    in: "query",
    description,
    required: required.includes(name) && member["default"] === undefined,
    schema: member,
  }));
}
