import { describeEnd } from "../audit/call-end.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import { editMembers } from "../json/splice.ts";
import type { Request } from "../jsonrpc/message.ts";
import { metaOf } from "../mcp/era.ts";
import type { SentObservation } from "../mcp/observation.ts";
import type { CallRecord } from "./call-record.ts";
import { spanAttributes, spanName } from "./span.ts";
import type { TelemetryParts } from "./telemetry-parts.ts";
import { randomId, toTraceparent, type TraceContext } from "./trace-context.ts";

/** Where a request that is sent on is in a trace. */
interface SentTrace {
  readonly parent: TraceContext;
  readonly request: Request;
}

/** A request that is neither counted nor traced. */
export const unseen: SentObservation = { meta: undefined, ended: () => {} };

/** One request to a server behind the gateway. It may outlive the request it is made for: a parked call has several. */
export class SentCall implements SentObservation {
  readonly meta: RawJson | undefined;
  readonly #parts: TelemetryParts;
  readonly #record: CallRecord;
  readonly #startedAt: number;
  readonly #parent: TraceContext | undefined;
  readonly #span: TraceContext | undefined;

  constructor(parts: TelemetryParts, record: CallRecord, startedAt: number, trace: SentTrace | undefined) {
    this.#parts = parts;
    this.#record = record;
    this.#startedAt = startedAt;
    this.#parent = trace?.parent;
    if (trace === undefined) return;
    this.#span = { traceId: trace.parent.traceId, spanId: randomId(8), isSampled: true };
    const given = metaOf(trace.request.params) ?? RawJson.fromText("{}");
    this.meta = editMembers(given, { traceparent: RawJson.fromValue(toTraceparent(this.#span)) });
  }

  ended(result: RawJson | undefined, error?: unknown): void {
    const { tracer, counts } = this.#parts;
    if (counts === undefined && this.#span === undefined) return;
    const { method, server = "", ownName } = this.#record;
    const now = performance.now();
    const hasFailed = result !== undefined && isFailedResult(method, result);
    const code = error === undefined ? undefined : describeEnd({ kind: "failed", error }).code;
    counts?.returned(this.#record, now - this.#startedAt, hasFailed ? "tool_error" : (code ?? ""));
    if (tracer === undefined || this.#span === undefined) return;
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
      context: this.#span,
      parentSpanId: this.#parent?.spanId,
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
export function isFailedResult(method: string, result: RawJson): boolean {
  if (method !== "tools/call") return false;
  const { written } = result;
  if (typeof written === "string" && !written.includes("isError")) return false;
  return result.textOf("isError") === "true";
}
