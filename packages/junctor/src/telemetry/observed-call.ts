import { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Observation, SentObservation, WireContext } from "@junctor/core/mcp";
import { describeEnd } from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import type { AccessLog } from "./access-log.ts";
import { type CallRecord, clientName, createRecord, idOf, nameOf, shortened } from "./call-record.ts";
import type { LiveCalls } from "./live-calls.ts";
import type { CallCounts } from "./metrics.ts";
import {
  contextOf,
  parseTraceparent,
  randomId,
  type Sampler,
  spanAttributes,
  spanName,
  type SpanSink,
  startSpan,
  toTraceparent,
  type TraceContext,
} from "./trace.ts";

/** How a server behind the gateway is reached, for the spans of requests to it. */
interface TracePeer {
  readonly transport: "http" | "stdio";
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  readonly revision?: string | undefined;
}

/** The tracing of requests. */
export interface Tracer {
  readonly sampler: Sampler;
  readonly sink: SpanSink;
  /** The date of a reading of `performance.now()`. */
  toDate(reading: number): number;
  peerOf(server: string): TracePeer;
}

/** The parts of telemetry that an observed call reports to. A part that is off is undefined. */
export interface TelemetryParts {
  /** How callers reach the gateway. */
  readonly transport: "http" | "stdio" | "tcp";
  readonly calls: LiveCalls | undefined;
  readonly counts: CallCounts | undefined;
  readonly accessLog: AccessLog | undefined;
  readonly tracer: Tracer | undefined;
  /** How many requests began. */
  begun: number;
  /** A random name of this process: numbers of calls are its own. */
  readonly process: string;
  /** The client of requests that the page makes. */
  readonly pageClient: object;
  /** Keeps the arguments and the result of a call, where that is wanted. */
  keep(call: CallRecord, params: RawJson | undefined, result: RawJson | undefined): void;
}

/** What later rounds of a call need to know of the first: which call it is, and its place in a trace. */
interface Carried {
  readonly c: string;
  /** The process that observed it. */
  readonly p: string;
  readonly t?: string;
}

/** A request of which nothing but its duration is shown: it is a stream that stays open. */
const streamMethod = "subscriptions/listen";

/** Where a request is in a trace. */
interface TracePlace {
  readonly parent: TraceContext | undefined;
  /** Undefined for a request that is not traced. */
  readonly span: TraceContext | undefined;
}

/** The request that is observed, and the parts that it is reported to. */
interface Arrival {
  readonly parts: TelemetryParts;
  /** When this round of the call began. */
  readonly startedAt: number;
  readonly request: Request;
  readonly wire: WireContext;
}

/** Decides whether a request is traced; undefined for one that is not, and whose sender does not trace it either. */
export function placeOf(
  { params }: Request,
  { era }: WireContext,
  { tracer, accessLog }: TelemetryParts,
): TracePlace | undefined {
  if (tracer === undefined && accessLog === undefined) return undefined;
  const parent = era.kind === "modern" && era.isBare ? undefined : contextOf(params);
  const span = tracer && startSpan(parent, tracer.sampler);
  return (parent ?? span) === undefined ? undefined : { parent, span };
}

/** One request as metrics, traces, the access log and the live feed see it. */
export class ObservedCall implements Observation {
  readonly #arrival: Arrival;
  /** The record of the call's first round, once that is known. */
  #record: CallRecord;
  #trace: TracePlace | undefined;
  traceparent: string | undefined = undefined;

  constructor(parts: TelemetryParts, request: Request, wire: WireContext, place: TracePlace | undefined) {
    const { era, caller } = wire;
    const { params } = request;
    const method = shortened(request.method);
    const info = era.kind === "modern" ? era.clientInfo : era.session?.handshake.clientInfo;
    const startedAt = performance.now();
    this.#arrival = { parts, startedAt, request, wire };
    this.#trace = place;
    this.#record = createRecord({
      number: ++parts.begun,
      method,
      params,
      caller,
      client: info && clientName(info),
      era: era.kind,
      isFromPage: info === parts.pageClient,
      startedAt,
    });
    if (place !== undefined) this.#record.traceId = place.span?.traceId ?? place.parent?.traceId;
    if (method !== streamMethod) parts.calls?.begin(this.#record);
  }

  get id(): string {
    return idOf(this.#record);
  }

  found(server: string, ownName: string, name: string): void {
    const record = this.#record;
    // Work may go on after the request was answered. Its record waits to be counted, and no longer changes.
    if (record.endedAt !== undefined) return;
    record.server = server;
    record.ownName = shortened(ownName);
    record.name = shortened(name);
    this.traceparent = undefined;
  }

  sent(era: "modern" | "legacy" | undefined): SentObservation {
    const { parts } = this.#arrival;
    const record = this.#record;
    record.upstreamEra = era;
    const parent = this.#trace?.span;
    if (parent === undefined && parts.counts === undefined) return unseen;
    const now = performance.now();
    if (record.endedAt === undefined) parts.calls?.step(record, "sent", now);
    if (parent === undefined) return new SentCall(parts, record, now);
    const trace = startSentSpan(parent);
    this.traceparent = toTraceparent(trace.span);
    return new SentCall(parts, record, now, trace);
  }

  asked(questions: number): void {
    const { counts, calls } = this.#arrival.parts;
    counts?.asked(this.#record.server ?? "", questions);
    calls?.step(this.#record, "asked", performance.now());
  }

  answered(): void {
    this.#arrival.parts.calls?.step(this.#record, "answered", performance.now());
  }

  carried(): Carried | undefined {
    const span = this.#trace?.span;
    if (this.#arrival.parts.calls === undefined && span === undefined) return undefined;
    const { process } = this.#arrival.parts;
    return { c: this.id, p: process, ...(span === undefined ? {} : { t: toTraceparent(span) }) };
  }

  resumed(carried: unknown): void {
    const { calls, tracer, process } = this.#arrival.parts;
    const { c = "", p, t } = (carried ?? {}) as Partial<Carried>;
    // The first round may have been at another replica, which has a call of the same number.
    const first = p === process ? calls?.resume(c, this.#record.method) : undefined;
    if (first !== undefined) {
      calls?.drop(this.#record);
      this.#record = first;
      this.answered();
    }
    if (tracer === undefined) return;
    this.#trace = toLaterRound(this.#trace, parseTraceparent(t));
    this.#record.traceId = this.#trace.span?.traceId ?? this.#record.traceId;
  }

  outcome(kind: "complete" | "input_required" | "task", result: RawJson): void {
    const record = this.#record;
    if (kind !== "complete") record.outcome = kind;
    else if (result !== record.sound && isFailedResult(record.method, result)) record.outcome = "tool_error";
  }

  failed(error: unknown): void {
    const record = this.#record;
    if (record.code !== undefined) return;
    const { outcome, code, delivery } = describeEnd({ kind: "failed", error });
    const isCancelled = this.#arrival.wire.cancellation.isAborted;
    record.outcome = isCancelled ? "cancelled" : outcome === "refused" ? "refused" : "failed";
    record.code = code ?? "unknown";
    record.delivery = typeof delivery === "string" ? delivery : undefined;
    if (error instanceof Error) record.reason = shortened(error.message);
  }

  ended(result: RawJson | undefined, error?: RpcError): void {
    const record = this.#record;
    const { parts, request, startedAt } = this.#arrival;
    const { method, params } = request;
    const now = performance.now();
    record.name ??= nameOf(record);
    record.params = undefined;
    record.sound = undefined;
    // A failure without an error was reported to the model, in a result.
    if (error === undefined && record.outcome === "failed") record.outcome = "tool_error";
    record.outcome ??= "ok";
    record.bytesIn = params?.byteLength ?? 0;
    record.bytesOut = result?.byteLength ?? 0;
    if (this.#trace?.span !== undefined) endSpan(this.#arrival, record, this.#trace, { now, error });
    // A call whose caller left with a question has not ended.
    const isAway = record.outcome === "input_required";
    const isOnlyRound = !isAway && startedAt === record.startedAt;
    if (isOnlyRound) record.endedAt = now;
    // Each round of several is counted and logged.
    parts.counts?.ended(record, now - startedAt);
    parts.accessLog?.ended(record, now - startedAt);
    if (method === streamMethod || parts.calls === undefined) return;
    if (isAway) record.outcome = undefined;
    else parts.keep(record, params, result);
    parts.calls.end(record, now, isAway);
  }
}

/**
 * The place of a later round. All rounds are one trace: that of the first, or none if that was not traced and the caller does
 * not trace this one. A parent in another trace becomes a link.
 */
function toLaterRound(own: TracePlace | undefined, first: TraceContext | undefined): TracePlace {
  const parent = own?.parent;
  if (first === undefined) return { parent, span: parent === undefined ? undefined : own?.span };
  const span = { traceId: first.traceId, spanId: randomId(8), isSampled: true };
  return { parent: parent?.traceId === first.traceId ? parent : first, span };
}

function endSpan(
  { parts, request, wire, startedAt }: Arrival,
  record: CallRecord,
  { parent, span }: TracePlace,
  {
    now,
    error,
  }: {
    readonly now: number;
    readonly error: RpcError | undefined;
  },
): void {
  const { tracer, transport } = parts;
  if (tracer === undefined || span === undefined) return;
  const { method } = request;
  const { era } = wire;
  const known = [parseTraceparent(wire.headers?.("traceparent")), contextOf(request.params)];
  const links = known.filter((link) => link !== undefined && link.spanId !== parent?.spanId);
  const isToolError = record.outcome === "tool_error";
  const { name, code } = record;
  const facts = { method, name, transport, isToolError, error, code };
  tracer.sink.add({
    context: span,
    parentSpanId: parent?.spanId,
    name: spanName(facts),
    kind: "server",
    startMs: tracer.toDate(startedAt),
    endMs: tracer.toDate(now),
    attributes: spanAttributes(facts, [
      "mcp.protocol.version",
      era.kind === "modern" ? era.revision : era.session?.handshake.revision,
      "jsonrpc.request.id",
      shortened(request.id.replaceAll('"', "")),
      "junctor.server",
      record.server,
      "enduser.id",
      record.caller,
      "junctor.outcome",
      record.outcome,
      "junctor.error.code",
      record.code,
      "junctor.delivery",
      record.delivery,
    ]),
    links: links as readonly TraceContext[],
    isError: error !== undefined || isToolError,
  });
}

/** Where a request to a server is in a trace. */
interface SentTrace {
  readonly span: TraceContext;
  readonly parentSpanId: string;
}

/** The span of a request to a server, below the span of the caller's request. */
function startSentSpan({ traceId, spanId }: TraceContext): SentTrace {
  return { span: { traceId, spanId: randomId(8), isSampled: true }, parentSpanId: spanId };
}

/** A request that is neither counted nor traced. */
const unseen: SentObservation = { ended: () => {} };

/** One request to a server behind the gateway. It may outlive the request it is made for: a parked call has several. */
class SentCall implements SentObservation {
  readonly #parts: TelemetryParts;
  readonly #record: CallRecord;
  readonly #startedAt: number;
  readonly #trace: SentTrace | undefined;

  constructor(parts: TelemetryParts, record: CallRecord, startedAt: number, trace?: SentTrace) {
    this.#parts = parts;
    this.#record = record;
    this.#startedAt = startedAt;
    this.#trace = trace;
  }

  ended(result: RawJson | undefined, error?: unknown): void {
    const { tracer, counts } = this.#parts;
    if (counts === undefined && this.#trace === undefined) return;
    const { method, server = "", ownName } = this.#record;
    const now = performance.now();
    const hasFailed = result !== undefined && isFailedResult(method, result);
    const code = error === undefined ? undefined : describeEnd({ kind: "failed", error }).code;
    const errorType = hasFailed ? "tool_error" : (code ?? "");
    if (errorType === "" && this.#record.endedAt === undefined) this.#record.sound = result;
    counts?.returned(this.#record, now - this.#startedAt, errorType);
    if (tracer === undefined || this.#trace === undefined) return;
    const peer = tracer.peerOf(server);
    const rpcError = error instanceof RpcError ? error : undefined;
    const facts = {
      method,
      name: ownName,
      transport: peer.transport,
      isToolError: hasFailed,
      error: rpcError,
      code,
    };
    tracer.sink.add({
      context: this.#trace.span,
      parentSpanId: this.#trace.parentSpanId,
      name: spanName(facts),
      kind: "client",
      startMs: tracer.toDate(this.#startedAt),
      endMs: tracer.toDate(now),
      attributes: spanAttributes(facts, [
        "mcp.protocol.version",
        peer.revision,
        "server.address",
        peer.address,
        "server.port",
        peer.port,
        "junctor.server",
        server,
        "junctor.error.code",
        code,
      ]),
      links: [],
      isError: error !== undefined || hasFailed,
    });
  }
}

/** Whether a tool says in its result that it failed. Most results do not have the word, and are not looked at any further. */
function isFailedResult(method: string, result: RawJson): boolean {
  if (method !== "tools/call") return false;
  const { written } = result;
  if (typeof written === "string" && !written.includes("isError")) return false;
  return result.textOf("isError") === "true";
}
