import { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { SentObservation } from "@junctor/core/mcp";
import { describeEnd } from "@junctor/core/provider";
import type { CallRecord } from "./call-record.ts";
import { spanAttributes, spanName } from "./span.ts";
import type { TelemetryParts } from "./telemetry-parts.ts";
import { randomId, type TraceContext } from "./trace-context.ts";

/** Where a request to a server is in a trace. */
interface SentTrace {
  readonly span: TraceContext;
  readonly parentSpanId: string;
}

/** The span of a request to a server, below the span of the caller's request. */
export function startSentSpan({ traceId, spanId }: TraceContext): SentTrace {
  return { span: { traceId, spanId: randomId(8), isSampled: true }, parentSpanId: spanId };
}

/** A request that is neither counted nor traced. */
export const unseen: SentObservation = { ended: () => {} };

/** One request to a server behind the gateway. It may outlive the request it is made for: a parked call has several. */
export class SentCall implements SentObservation {
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
    if (errorType === "" && this.#isOnly) {
      this.#record.returnedAt = now;
      this.#record.sound = result;
    } else counts?.returned(this.#record, now - this.#startedAt, errorType);
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

  /** Whether this is the only request so far of a call that is underway: it is then counted with the round of the call. */
  get #isOnly(): boolean {
    const { sentAt, steps, endedAt } = this.#record;
    return sentAt === this.#startedAt && steps === undefined && endedAt === undefined;
  }
}

/** Whether a tool says in its result that it failed. Most results do not have the word, and are not looked at any further. */
export function isFailedResult(method: string, result: RawJson): boolean {
  if (method !== "tools/call") return false;
  const { written } = result;
  if (typeof written === "string" && !written.includes("isError")) return false;
  return result.textOf("isError") === "true";
}
