import { type Clock, systemClock } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import type { Observer, WireContext, Implementation } from "@junctor/core/mcp";
import { packageVersion } from "@junctor/core/options";
import type { Request } from "@junctor/core/rpc";
import type { AccessLog } from "./access-log.ts";
import { Charts, stepMs } from "./charts.ts";
import { CallHistory, reasonOf } from "./history.ts";
import { LiveCalls } from "./live-calls.ts";
import { CallCounts, type Metric } from "./metrics.ts";
import { ObservedCall, placeOf, type TelemetryParts, type Tracer } from "./observed-call.ts";
import { randomId } from "./trace.ts";
import { UsageFiles } from "./usage-files.ts";

interface TelemetryOptions {
  /** How callers reach the gateway. */
  readonly transport: TelemetryParts["transport"];
  readonly accessLog?: AccessLog | undefined;
  readonly tracer?: Tracer | undefined;
  /** Whether durations are counted and calls are shown, for the admin API; without it only traces and the access log are made. */
  readonly isShown: boolean;
  /** Whether the calls that ended are kept in memory; only where they are shown. */
  readonly hasHistory?: boolean;
  /** The folder for counters by hour; none without it. */
  readonly usageFolder?: string | undefined;
  /** The counters cannot be written. */
  readonly onUsageLost?: (error: unknown) => void;
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
  /** Undefined where it is switched off. */
  readonly history: CallHistory | undefined;
  /** How many requests were answered, and how many of them with a failure. */
  readonly totals: { readonly ended: number; readonly failed: number };
  /** A request was refused before it was a call. */
  refused(reason: string, caller?: string): void;
  /** The metrics of calls, and more, as Prometheus text. */
  expose(more: readonly Metric[]): string;
  /** Calls back after each step of the charts, until the returned function is called. */
  onStep(listener: () => void): () => void;
}

/** The client info of the page. Its requests are recognised by this very object, which no request from outside can have. */
export const pageClient: Implementation = Object.freeze({ name: "junctor-page", version: packageVersion });

/** The most characters of arguments or of a result that are kept of a call; one more says that there were more. */
export const maxRecorded: number = 16 * 1024;
/** Arguments and results that are larger are not kept: redaction would have to read all of them. */
const maxRedacted = 256 * 1024;

/** Observes the calls of one server. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { transport, accessLog, tracer, isShown, clock = systemClock } = options;
  const history = isShown && options.hasHistory === true ? new CallHistory() : undefined;
  const { records = () => false, redact = (json: string) => json } = options;
  const counts = new CallCounts();
  const calls = new LiveCalls(history);
  const charts = new Charts(counts.served);
  const listeners = new Set<() => void>();
  const usage = history && options.usageFolder !== undefined ? openUsage(history, options) : undefined;
  const tick = (): void => {
    charts.tick(clock.date());
    usage?.tick(clock.date());
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
      if (call.outcome === "tool_error") call.reason ??= reasonOf(call.result);
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
    history,
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
    [Symbol.dispose]: () => {
      stop();
      usage?.end(clock.date());
    },
  };
}

/** How many steps of the charts pass between two writes of the counters: a minute. */
const stepsBetweenWrites = 6;

/** Moves what the history got since the last step into the counters of the hour. */
function openUsage(
  history: CallHistory,
  { usageFolder = "", onUsageLost = () => {} }: TelemetryOptions,
): { tick(date: number): void; end(date: number): void } {
  const files = new UsageFiles(usageFolder, randomId(8));
  let seen = 0;
  let steps = 0;
  const gather = (date: number, isWritten: boolean): void => {
    try {
      const groups = history.calls.group(seen);
      seen = history.calls.next;
      files.add(groups, date);
      if (isWritten) files.write();
    } catch (error) {
      onUsageLost(error);
    }
  };
  return {
    tick: (date) => gather(date, ++steps % stepsBetweenWrites === 0),
    end: (date) => gather(date, true),
  };
}
