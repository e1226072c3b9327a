import type { RawJson } from "../json/raw.ts";
import type { AccessLog } from "./access-log.ts";
import type { CallRecord, LiveCalls } from "./live-calls.ts";
import type { Sampler, SpanSink } from "./span.ts";

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

/** The parts that an observed call tells of itself. Those that are off are missing. */
export interface TelemetryParts {
  /** How callers reach the gateway. */
  readonly transport: "http" | "stdio" | "tcp";
  readonly calls: LiveCalls | undefined;
  readonly accessLog: AccessLog | undefined;
  readonly tracer: Tracer | undefined;
  /** Told that a server asked its caller so many questions. */
  onAsked(server: string, questions: number): void;
  /** Told that a request was answered; `errorType` is empty for a success. */
  onEnded(call: CallRecord, ms: number, errorType: string): void;
  /** Told that a server behind the gateway answered. */
  onReturned(call: CallRecord, ms: number, errorType: string): void;
  /** Keeps the arguments and the result of a call, where that is wanted. */
  keep(call: CallRecord, args: RawJson | undefined, result: RawJson | undefined): void;
}
