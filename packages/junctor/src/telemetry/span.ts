import type { RpcError } from "@junctor/core/errors";
import { randomId, type TraceContext } from "./trace-context.ts";

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
