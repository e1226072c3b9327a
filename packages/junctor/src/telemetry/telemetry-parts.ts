import type { RawJson } from "@junctor/core/json";
import type { AccessLog } from "./access-log.ts";
import type { CallCounts } from "./call-counts.ts";
import type { CallRecord } from "./call-record.ts";
import type { LiveCalls } from "./live-calls.ts";
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
