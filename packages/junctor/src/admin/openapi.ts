import {
  type ApiSchema,
  count,
  flag,
  listOf,
  number,
  object,
  refTo,
  schemas,
  text,
  toObject,
} from "./api-schemas.ts";

/** The description of one route. */
interface RouteDescription {
  readonly summary: string;
  /** Members of the query, with what they mean. */
  readonly query?: { readonly [name: string]: string };
  /** Members of the body. */
  readonly body?: { readonly [name: string]: ApiSchema };
  /** The schema of the answer: a name of {@link schemas}, or members of an object. */
  readonly answer: string | { readonly [name: string]: ApiSchema };
  readonly status?: number;
  /** The media type of the answer, if it is not JSON. */
  readonly type?: string;
}
const events = "text/event-stream";

/** Every route, by the name it has in the table of routes. A test holds one to the other. */
const described: { readonly [route: string]: RouteDescription } = {
  "GET /metrics": { summary: "Metrics as Prometheus text.", answer: {}, type: "text/plain" },
  "GET /api/openapi.json": { summary: "This description.", answer: {} },
  "GET /api/status": { summary: "How the gateway is.", answer: "Status" },
  "GET /api/servers": { summary: "Every server.", answer: { servers: listOf(refTo("Server")) } },
  "GET /api/servers/:name": { summary: "One server.", answer: "Server" },
  "GET /api/catalog": {
    summary: "Tools, prompts and resources under their public names.",
    query: { as: "only those that this caller may use", server: "only those of this server" },
    answer: "Catalog",
  },
  "GET /api/callers": {
    summary: "The callers that the config knows.",
    answer: { callers: listOf(refTo("Caller")), unnamed: flag },
  },
  "GET /api/calls": {
    summary: "Calls that are underway, and the last that ended.",
    answer: { underway: listOf(refTo("Call")), recent: listOf(refTo("Call")) },
  },
  "GET /api/calls/:id": { summary: "One call, with what was recorded of it.", answer: "Call" },
  "GET /api/sessions": { summary: "Legacy sessions.", answer: { sessions: listOf(object), more: count } },
  "GET /api/parked": {
    summary: "Calls that wait for a caller that is away.",
    answer: { parked: listOf(object), more: count },
  },
  "GET /api/charts": {
    summary: "Rate, errors and quantiles over the last hour.",
    query: { by: "total, server or tool", name: "only this server or tool", top: "how many of the busiest" },
    answer: { stepMs: number, endAt: number, points: count, series: listOf(refTo("Chart")) },
  },
  "GET /api/problems": {
    summary: "Everything that a person should look at.",
    answer: "Problems",
  },
  "GET /api/logs": {
    summary: "The last lines of the log.",
    query: { after: "only lines after this number", level: "the least important level", limit: "how many" },
    answer: { lines: listOf(refTo("LogLine")), next: count },
  },
  "GET /api/events": {
    summary: "What happens, as it happens.",
    query: { only: "kinds of events, separated by commas" },
    answer: {},
    type: events,
  },
  "POST /api/servers/:name/restart": { summary: "Restarts a server.", body: {}, answer: "Server" },
  "POST /api/servers/:name/start": { summary: "Starts a server.", body: {}, answer: "Server" },
  "POST /api/servers/:name/stop": { summary: "Stops a server.", body: {}, answer: "Server" },
  "POST /api/drain": { summary: "Takes no new calls from now on.", body: {}, answer: "Status" },
  "POST /api/stop": { summary: "Ends the gateway.", body: {}, answer: {}, status: 202 },
  "POST /api/reload": {
    summary: "Takes the edited config, also the part that waits.",
    body: { version: text },
    answer: { taken: flag },
  },
  "PUT /api/log-level": {
    summary: "Changes the level of the log.",
    body: { level: text },
    answer: { level: text },
  },
  "POST /api/callers/:name/revoke": {
    summary: "Refuses a caller from now on.",
    body: {},
    answer: { name: text, isRevoked: flag },
  },
  "POST /api/callers/:name/restore": {
    summary: "Lets a caller in again.",
    body: {},
    answer: { name: text, isRevoked: flag },
  },
  "POST /api/try": {
    summary: "Makes a call, and tells how it goes.",
    body: { tool: text, prompt: text, resource: text, arguments: object, as: text },
    answer: {},
    type: events,
  },
  "POST /api/try/:id/answers": {
    summary: "Answers the questions of a call.",
    body: { answers: object },
    answer: {},
    status: 202,
  },
  "DELETE /api/try/:id": { summary: "Cancels a call.", answer: {} },
};

/** The API in the words of OpenAPI 3.1. */
export function describeApi(version: string): object {
  const paths: { [path: string]: { [method: string]: object } } = {};
  for (const [route, description] of Object.entries(described)) {
    const [method = "", pattern = ""] = route.split(" ");
    const path = pattern.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [method.toLowerCase()]: toOperation(path, description) };
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
  { summary, query = {}, body, answer, status = 200, type }: RouteDescription,
): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: text,
  }));
  const inQuery = Object.entries(query).map(([name, description]) => ({
    name,
    in: "query",
    description,
    schema: text,
  }));
  const schema = typeof answer === "string" ? refTo(answer) : toObject(answer);
  const content = type === undefined ? { "application/json": { schema } } : { [type]: { schema: text } };
  const taken = body && { ...toObject(body, []), additionalProperties: false };
  return {
    summary,
    parameters: [...inPath, ...inQuery],
    ...(taken === undefined ? {} : { requestBody: { content: { "application/json": { schema: taken } } } }),
    responses: {
      [status]: { description: summary, content },
      default: {
        description: "It was refused; the message says what to do.",
        content: { "application/json": { schema: refTo("Error") } },
      },
    },
  };
}
