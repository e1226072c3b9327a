import { type Clock, systemClock } from "../async/clock.ts";
import { bounded } from "../audit/call-end.ts";
import type { RawJson } from "../json/raw.ts";
import { parseText } from "../json/value.ts";
import type { Request } from "../jsonrpc/message.ts";
import type { Observer, WireContext } from "../mcp/server.ts";
import type { Implementation } from "../mcp/types.ts";
import type { AccessLog } from "./access-log.ts";
import { CallMetrics } from "./call-metrics.ts";
import { Charts, stepMs } from "./charts.ts";
import { type Metric, toExposition, toHistogram } from "./exposition.ts";
import { type CallRecord, LiveCalls } from "./live-calls.ts";
import { ObservedCall } from "./observed-call.ts";
import type { TelemetryParts, Tracer } from "./telemetry-parts.ts";

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

/** What a process observes of its calls. Disposing it stops its timer. */
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

/** The owner of requests that the page makes. */
export const pageOwner: object = Object.freeze({ owner: "page" });

/** Most characters of arguments or of a result that are kept of a call; one more says that there were more. */
export const maxRecorded: number = 16 * 1024;
/** What is larger is not kept at all: it would have to be redacted as a whole. */
const maxRedacted = 256 * 1024;

/** Observes the calls of one server. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { transport, accessLog, tracer, isShown, clock = systemClock } = options;
  const { records = () => false, redact = (json: string) => json } = options;
  const served = new CallMetrics();
  const returned = new CallMetrics();
  const calls = new LiveCalls();
  const charts = new Charts(served);
  const totals = { ended: 0, failed: 0, bytesIn: 0, bytesOut: 0 };
  const questions = new Map<string, number>();
  const refusals = new Map<string, number>();
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
    accessLog,
    tracer,
    onAsked: (server, count) => void questions.set(server, (questions.get(server) ?? 0) + count),
    onEnded: ({ method, server = "", name = "", era, bytesIn, bytesOut }, ms, errorType) => {
      totals.ended++;
      if (errorType !== "") totals.failed++;
      totals.bytesIn += bytesIn;
      totals.bytesOut += bytesOut;
      // A name that no server has was made up by the caller.
      const tool = method === "tools/call" && server !== "" ? name : "";
      served.record({ method, server, tool, era, errorType }, ms / 1000);
    },
    onReturned: ({ method, server = "", ownName = "", upstreamEra: era = "" }, ms, errorType) => {
      const tool = method === "tools/call" ? ownName : "";
      returned.record({ method, server, tool, era, errorType }, ms / 1000);
    },
    keep: (call, args, result) => {
      if (!call.isFromPage && (call.server === undefined || !records(call.server))) return;
      call.args = toKept(args);
      call.result = toKept(result);
    },
  };
  let number = 0;
  const began = (request: Request, wire: WireContext): ObservedCall => {
    number++;
    return new ObservedCall(parts, request, wire, toRecord(`c${number}`, request, wire));
  };
  return {
    observer: { began },
    calls,
    charts,
    totals,
    refused: (reason, caller) => {
      refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
      accessLog?.line({ outcome: "refused", reason, caller });
    },
    expose: (more) =>
      toHistogram("mcp_server_operation_duration_seconds", "Time to answer a request of a client.", served) +
      toHistogram(
        "mcp_client_operation_duration_seconds",
        "Time that a server took for a request of a client.",
        returned,
      ) +
      toExposition([
        {
          name: "junctor_calls_in_flight",
          help: "Requests that are being served.",
          type: "gauge",
          samples: [{ value: calls.underway.size }],
        },
        {
          name: "junctor_questions_total",
          help: "Questions that servers asked their callers.",
          type: "counter",
          samples: Array.from(questions, ([server, value]) => ({ labels: { server }, value })),
        },
        {
          name: "junctor_refused_requests_total",
          help: "HTTP requests that were refused before they were served.",
          type: "counter",
          samples: Array.from(refusals, ([reason, value]) => ({ labels: { reason }, value })),
        },
        {
          name: "junctor_request_bytes_total",
          help: "Bytes of the params of requests.",
          type: "counter",
          samples: [{ value: totals.bytesIn }],
        },
        {
          name: "junctor_response_bytes_total",
          help: "Bytes of results.",
          type: "counter",
          samples: [{ value: totals.bytesOut }],
        },
        ...more,
      ]),
    onStep: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.dispose]: () => stop(),
  };
}

function toRecord(id: string, { method, params }: Request, { era, caller, owner }: WireContext): CallRecord {
  const info = era.kind === "modern" ? era.clientInfo : era.session?.handshake.clientInfo;
  return {
    id,
    method,
    name: nameOf(params),
    caller,
    client: info === undefined ? undefined : clientName(info),
    era: era.kind,
    isFromPage: owner === pageOwner,
    startedAt: performance.now(),
    server: undefined,
    ownName: undefined,
    upstreamEra: undefined,
    state: "queued",
    steps: [{ state: "queued", atMs: 0 }],
    outcome: undefined,
    code: undefined,
    delivery: undefined,
    endedAt: undefined,
    bytesIn: 0,
    bytesOut: 0,
    traceId: undefined,
    args: undefined,
    result: undefined,
  };
}

const names = new WeakMap<Implementation, string>();

/** The same object stands for all requests of a client that describes itself alike. */
function clientName(info: Implementation): string {
  let name = names.get(info);
  if (name === undefined) {
    name = bounded(`${info.name} ${info.version}`);
    names.set(info, name);
  }
  return name;
}

/** The name or URI among the params; undefined when there is none. */
function nameOf(params: RawJson | undefined): string | undefined {
  const text = params?.textOf("name") ?? params?.textOf("uri");
  return text?.charCodeAt(0) === 0x22 ? bounded(parseText(text) as string) : undefined;
}
