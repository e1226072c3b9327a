/** A schema of the description of the admin API. */
export type ApiSchema = { readonly [keyword: string]: unknown };

export const text: ApiSchema = { type: "string" };
export const count: ApiSchema = { type: "integer", minimum: 0 };
export const number: ApiSchema = { type: "number" };
export const flag: ApiSchema = { type: "boolean" };
export const object: ApiSchema = { type: "object" };
export const listOf = (items: ApiSchema): ApiSchema => ({ type: "array", items });
export const refTo = (name: string): ApiSchema => ({ $ref: `#/components/schemas/${name}` });
const oneOf = (...words: readonly string[]): ApiSchema => ({ type: "string", enum: words });
/** An object with these members, which it always has unless `required` says otherwise. */
export const toObject = (
  properties: { readonly [name: string]: ApiSchema },
  required: readonly string[] = Object.keys(properties),
): ApiSchema => ({
  type: "object",
  properties,
  required,
});

const numbersOrNull: ApiSchema = listOf({ type: ["number", "null"] });

/** The schemas of answers that have a name. */
export const schemas: { readonly [name: string]: ApiSchema } = {
  Error: toObject({ error: toObject({ code: text, message: text }) }),
  Status: toObject(
    {
      name: text,
      version: text,
      pid: count,
      worker: toObject({ number: count, count, primary: count }),
      node: text,
      startedAt: number,
      uptimeMs: number,
      state: oneOf("starting", "ready", "draining"),
      servers: object,
      calls: toObject({ underway: count, total: count, failed: count }),
      sessions: count,
      streams: count,
      parked: count,
      memoryBytes: count,
      eventLoopDelayMs: number,
      logLevel: text,
      hasKeys: flag,
      problems: count,
      url: text,
      adminUrl: text,
      pageUrl: text,
      config: text,
    },
    ["version", "pid", "state", "servers", "calls", "problems"],
  ),
  Server: toObject(
    {
      name: text,
      status: oneOf("idle", "starting", "up", "down", "stopped", "disabled"),
      kind: oneOf("command", "http", "local"),
      start: oneOf("eager", "lazy"),
      sharing: oneOf("shared", "perSession", "exclusive"),
      era: oneOf("modern", "legacy"),
      revision: text,
      says: text,
      tools: count,
      resources: count,
      prompts: count,
      inFlight: count,
      restarts: count,
      canRestart: flag,
      connectMs: number,
      sinceAt: number,
      nextTryAt: number,
      trouble: text,
      reason: text,
      code: text,
      advice: text,
      said: text,
      stray: text,
      connections: listOf(object),
      leftOut: listOf(object),
      mended: listOf(object),
      unapproved: listOf(object),
      recent: toObject({ rate: listOf(number), p50Ms: numbersOrNull, stepMs: number }),
    },
    ["name", "status", "tools", "resources", "prompts"],
  ),
  Call: toObject(
    {
      id: text,
      method: text,
      tool: text,
      name: text,
      server: text,
      caller: text,
      client: text,
      era: oneOf("modern", "legacy"),
      upstreamEra: oneOf("modern", "legacy"),
      state: oneOf("queued", "sent", "asked", "parked", "answered", "ended"),
      at: number,
      ms: number,
      steps: listOf(toObject({ state: text, atMs: number })),
      outcome: oneOf("ok", "tool_error", "input_required", "task", "cancelled", "refused", "failed"),
      code: text,
      delivery: text,
      bytesIn: count,
      bytesOut: count,
      traceId: text,
      isFromPage: flag,
      arguments: {},
      result: {},
      cut: flag,
    },
    ["id", "method", "era", "state", "at", "ms", "steps"],
  ),
  LogLine: toObject({ seq: count, at: number, level: text, text, facts: object }),
  Caller: toObject({
    name: text,
    calls: count,
    sessions: count,
    parked: count,
    tools: count,
    isRevoked: flag,
  }),
  Chart: toObject(
    {
      server: text,
      tool: text,
      rate: listOf(number),
      errors: listOf(number),
      p50Ms: numbersOrNull,
      p99Ms: numbersOrNull,
    },
    ["rate", "errors", "p50Ms", "p99Ms"],
  ),
  Problem: toObject({ severity: oneOf("error", "warning"), where: text, message: text, server: text }, [
    "severity",
    "where",
    "message",
  ]),
  Problems: toObject(
    {
      problems: listOf(refTo("Problem")),
      waiting: toObject({ edits: listOf(text), version: text }),
    },
    ["problems"],
  ),
  Catalog: toObject(
    {
      as: text,
      tools: listOf(object),
      prompts: listOf(object),
      resources: listOf(object),
      templates: listOf(object),
      collisions: listOf(object),
    },
    ["tools", "prompts", "resources", "templates", "collisions"],
  ),
};
