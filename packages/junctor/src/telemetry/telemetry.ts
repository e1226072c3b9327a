import { type Clock, systemClock } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import type { Observer, WireContext, Implementation } from "@junctor/core/mcp";
import { packageVersion } from "@junctor/core/options";
import type { Request } from "@junctor/core/rpc";
import type { AccessLog } from "./access-log.ts";
import { Charts, stepMs } from "./charts.ts";
import { LiveCalls } from "./live-calls.ts";
import { CallCounts, type Metric } from "./metrics.ts";
import { ObservedCall, placeOf, type TelemetryParts, type Tracer } from "./observed-call.ts";
import { randomId } from "./trace.ts";

interface TelemetryOptions {
  /** How callers reach the gateway. */
  readonly transport: TelemetryParts["transport"];
  readonly accessLog?: AccessLog | undefined;
  readonly tracer?: Tracer | undefined;
  /** Whether durations are counted and calls are shown, for the admin API; without it only traces and the access log are made. */
  readonly isShown: boolean;
  /** Whether arguments and results of a server are kept for the admin API, redacted by `redact`. */
  readonly records?: (server: string) => boolean;
  readonly redact?: (json: string) => string;
  readonly clock?: Clock;
}

/** Observes the calls of a process. Disposing it stops its timer. */
export interface Telemetry extends Disposable {
  readonly observer: Observer;
  readonly calls: LiveCalls;
  readonly charts: Charts;
  /** How many requests were answered, and how many of them with a failure. */
  readonly totals: { readonly ended: number; readonly failed: number };
  /** A request was refused before it was a call. */
  refused(reason: string, caller?: string): void;
  /** The metrics of calls, and more, as Prometheus text. */
  expose(more: readonly Metric[]): string;
  /** Calls back after each step of the charts, until the returned function is called. */
  onStep(listener: () => void): () => void;
}

/** What the page says of itself in the requests that it makes. They are known by this object, which no request from outside can have. */
export const pageClient: Implementation = Object.freeze({ name: "junctor-page", version: packageVersion });

/** Most characters of arguments or of a result that are kept of a call; one more says that there were more. */
export const maxRecorded: number = 16 * 1024;
/** Arguments and results that are larger are not kept: redaction would have to read all of them. */
const maxRedacted = 256 * 1024;

/** Observes the calls of one server. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { transport, accessLog, tracer, isShown, clock = systemClock } = options;
  const { records = () => false, redact = (json: string) => json } = options;
  const counts = new CallCounts();
  const calls = new LiveCalls();
  const charts = new Charts(counts.served);
  const listeners = new Set<() => void>();
  const tick = (): void => {
    charts.tick(clock.date());
    for (const listener of listeners) listener();
    stop = clock.timer(stepMs, tick);
  };
  let stop = isShown ? clock.timer(stepMs, tick) : () => {};
  const toKept = (json: RawJson | undefined): string | undefined =>
    json === undefined || json.byteLength > maxRedacted
      ? undefined
      : redact(json.text).slice(0, maxRecorded + 1);

  const parts: TelemetryParts = {
    transport,
    calls: isShown ? calls : undefined,
    counts: isShown ? counts : undefined,
    accessLog,
    tracer,
    begun: 0,
    process: randomId(8),
    pageClient,
    keep: (call, params, result) => {
      if (!call.isFromPage && (call.server === undefined || !records(call.server))) return;
      call.args = toKept(params?.at("arguments"));
      call.result = toKept(result);
    },
  };
  const began = (request: Request, wire: WireContext): ObservedCall | undefined => {
    const place = placeOf(request, wire, parts);
    // Where there is nothing but traces, a request that is not traced costs no more than this decision. A later round of a
    // call may belong to a trace that it does not know itself.
    if (place?.span === undefined && isTracedOnly && request.params?.has("requestState") !== true)
      return undefined;
    return new ObservedCall(parts, request, wire, place);
  };
  const isTracedOnly = !isShown && accessLog === undefined;
  return {
    observer: { began },
    calls,
    charts,
    get totals() {
      return counts.totals;
    },
    refused: (reason, caller) => {
      counts.refused(reason);
      accessLog?.refused(reason, caller);
    },
    expose: (more) => counts.expose(calls.underway.length, more),
    onStep: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.dispose]: () => stop(),
  };
}
