import { randomFillSync } from "node:crypto";
import type { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { metaOf } from "@junctor/core/mcp";

/** Where a span is in its trace: the part of a `traceparent` (W3C Trace Context) that counts. */
export interface TraceContext {
  /** 32 and 16 digits, in lower-case hex. */
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Reads a `traceparent`; undefined for text that is not one. Versions to come may add parts at the end. */
export function parseTraceparent(text: unknown): TraceContext | undefined {
  if (typeof text !== "string" || text.length < 55 || text.length > maxLength) return undefined;
  const parts = traceparent.exec(text);
  const [, version, traceId = "", spanId = "", flags = "0"] = parts ?? [];
  if (parts === null || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

const maxLength = 256;
const traceparent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The context that a request carries in its `_meta`, as OpenTelemetry's conventions for MCP have it. */
export function contextOf(params: RawJson | undefined): TraceContext | undefined {
  // Most requests carry none, so the text is searched before any member is read. A key may be spelled with escapes.
  const text = params?.textOf("_meta");
  if (text === undefined || !(text.includes("traceparent") || text.includes("\\"))) return undefined;
  return parseTraceparent(metaOf(params)?.at("traceparent")?.value);
}

/** Random bytes for ids, drawn many at a time: one draw for each id would cost more than all else of a span. */
const pool = new Uint8Array(4096);
let used = pool.length;

export function randomId(bytes: 8 | 16): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = Buffer.from(pool.buffer, used, bytes).toString("hex");
  used += bytes;
  // An id of zeros is not valid (W3C Trace Context).
  return /^0+$/.test(id) ? randomId(bytes) : id;
}

export type AttributeValue = string | number | boolean;

/** Names and values of attributes, in turn: V8 takes ten times as long to make an object of so many members. */
export type Attributes = readonly (AttributeValue | undefined)[];

/** A span that has ended. Times are milliseconds since the epoch, with fractions. */
export interface EndedSpan {
  readonly context: TraceContext;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly links: readonly TraceContext[];
  readonly isError: boolean;
}

/** Takes spans that have ended. */
export interface SpanSink {
  add(span: EndedSpan): void;
}

/** Decides which requests are traced, before anything else is done for them. */
export interface Sampler {
  /** Follows the parent; without one, takes this share of the requests. 1 takes all. */
  readonly ratio: number;
  /** Whether a parent decides; true unless a variable of OpenTelemetry says otherwise. */
  readonly isParentBased: boolean;
}

/** The context of a new span; undefined when its request is not traced. */
export function startSpan(parent: TraceContext | undefined, sampler: Sampler): TraceContext | undefined {
  const isSampled =
    parent !== undefined && sampler.isParentBased
      ? parent.isSampled
      : sampler.ratio >= 1 || (sampler.ratio > 0 && Math.random() < sampler.ratio);
  if (!isSampled) return undefined;
  return { traceId: parent?.traceId ?? randomId(16), spanId: randomId(8), isSampled: true };
}

/** The facts about a request that the spans of both its sides have. */
interface SpanFacts {
  readonly method: string;
  readonly name: string | undefined;
  readonly transport: "http" | "stdio" | "tcp";
  readonly isToolError: boolean;
  readonly error: RpcError | undefined;
  /** For a failure that has no JSON-RPC error. */
  readonly code: string | undefined;
}

/** The name of a span: a URI would be a name of its own for each resource, so it is left out. */
export function spanName({ method, name }: Pick<SpanFacts, "method" | "name">): string {
  return name === undefined || method === "resources/read" ? method : `${method} ${name}`;
}

/** The attributes by OpenTelemetry's conventions for MCP, and more. Arguments and results are never among them. */
export function spanAttributes(facts: SpanFacts, more: Attributes): Attributes {
  const { method, name, transport, error } = facts;
  const isTool = method === "tools/call";
  return [
    "mcp.method.name",
    method,
    "gen_ai.tool.name",
    isTool ? name : undefined,
    "gen_ai.operation.name",
    isTool ? "execute_tool" : undefined,
    "gen_ai.prompt.name",
    method === "prompts/get" ? name : undefined,
    "mcp.resource.uri",
    method === "resources/read" ? name : undefined,
    "network.transport",
    transport === "stdio" ? "pipe" : "tcp",
    "network.protocol.name",
    transport === "http" ? "http" : undefined,
    "error.type",
    errorType(facts),
    "rpc.response.status_code",
    error === undefined ? undefined : String(error.rpcCode),
    ...more,
  ];
}

/** The number of a JSON-RPC error, `tool_error` for a result that says so, or the code of a failure without an answer. */
function errorType({ error, isToolError, code }: SpanFacts): string | undefined {
  if (error !== undefined) return String(error.rpcCode);
  return isToolError ? "tool_error" : code;
}
