import type { CallRecord } from "./call-record.ts";

/** Everything that is counted of requests, for the metrics and the charts. */
export class CallCounts {
  /** How long requests of clients took. */
  readonly served: CallMetrics = new CallMetrics();
  /** How long servers took for them. */
  readonly #returned = new CallMetrics();
  readonly #questions = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #sums = { ended: 0, failed: 0, bytesIn: 0, bytesOut: 0 };

  /** How many requests were answered, and how many of them with a failure. */
  get totals(): { readonly ended: number; readonly failed: number } {
    return this.#sums;
  }

  /** A call, or one round of it, ended after `ms`. */
  ended(call: CallRecord, ms: number): void {
    const { method, server = "", name = "", era } = call;
    const errorType = errorTypeOf(call);
    const sums = this.#sums;
    sums.ended++;
    if (errorType !== "") sums.failed++;
    sums.bytesIn += call.bytesIn;
    sums.bytesOut += call.bytesOut;
    // A name that no server has was made up by the caller.
    const tool = method === "tools/call" && server !== "" ? name : "";
    this.served.record({ method, server, tool, era, errorType }, ms / 1000);
  }

  /** A server behind the gateway answered; `errorType` is empty for a success. */
  returned(call: CallRecord, ms: number, errorType: string): void {
    const { method, server = "", ownName = "", upstreamEra = "" } = call;
    const tool = method === "tools/call" ? ownName : "";
    this.#returned.record({ method, server, tool, era: upstreamEra, errorType }, ms / 1000);
  }

  /** A server asked its caller a number of questions. */
  asked(server: string, questions: number): void {
    this.#questions.set(server, (this.#questions.get(server) ?? 0) + questions);
  }

  /** A request was refused before it was a call. */
  refused(reason: string): void {
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  /** As Prometheus text, with the number of requests that are underway and with more metrics. */
  expose(underway: number, more: readonly Metric[]): string {
    const counter = (name: string, help: string, samples: Metric["samples"]): Metric => ({
      name,
      help,
      type: "counter",
      samples,
    });
    return (
      toHistogram(
        "mcp_server_operation_duration_seconds",
        "Time to answer a request of a client.",
        this.served,
      ) +
      toHistogram(
        "mcp_client_operation_duration_seconds",
        "Time that a server took for a request of a client.",
        this.#returned,
      ) +
      toExposition([
        {
          name: "junctor_calls_in_flight",
          help: "Requests that are being served.",
          type: "gauge",
          samples: [{ value: underway }],
        },
        counter(
          "junctor_questions_total",
          "Questions that servers asked their callers.",
          toSamples("server", this.#questions),
        ),
        counter(
          "junctor_refused_requests_total",
          "HTTP requests that were refused before they were served.",
          toSamples("reason", this.#refusals),
        ),
        counter("junctor_request_bytes_total", "Bytes of the params of requests.", [
          { value: this.#sums.bytesIn },
        ]),
        counter("junctor_response_bytes_total", "Bytes of results.", [{ value: this.#sums.bytesOut }]),
        ...more,
      ])
    );
  }
}

/** The error type that a call is counted under; empty for a success. */
function errorTypeOf({ outcome, code }: CallRecord): string {
  switch (outcome) {
    case "ok":
    case "input_required":
    case "task":
      return "";
    case "cancelled":
      return outcome;
    default:
      return code ?? outcome ?? "";
  }
}

function toSamples(label: string, counts: ReadonlyMap<string, number>): Metric["samples"] {
  return Array.from(counts, ([name, value]) => ({ labels: { [label]: name }, value }));
}

/** The labels that a duration is counted under. An empty text stands for none. */
interface CallLabels {
  readonly method: string;
  readonly server: string;
  readonly tool: string;
  readonly era: string;
  /** Empty for a success. */
  readonly errorType: string;
}

/** One series: its labels and its durations. */
export interface CallSeries extends CallLabels {
  readonly durations: Durations;
}

/** The methods that are counted under their own names. Any client can make up others. */
const methods = new Set([
  "initialize",
  "ping",
  "server/discover",
  "subscriptions/listen",
  "logging/setLevel",
  "completion/complete",
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/subscribe",
  "resources/unsubscribe",
  "tasks/get",
  "tasks/update",
  "tasks/cancel",
  "tasks/result",
  "tasks/list",
]);

/** The name of everything that has no series of its own. */
export const other = "_other";

/** Error types come from a catalogue, but thrown values may have a `code` of their own. */
const maxErrorTypes = 100;

/**
 * Durations of calls by method, server, tool, era and error type. The number of series is limited: a client or a server that
 * makes up names costs no memory.
 */
export class CallMetrics {
  readonly #maxTools: number;
  readonly #maxSeries: number;
  readonly #series: CallSeries[] = [];
  /** The series of each tool, and of each method without one: one look-up finds the few that differ in the rest. */
  readonly #byName = new Map<string, CallSeries[]>();
  readonly #errorTypes = new Set<string>();
  #tools = 0;

  constructor({
    maxTools = 1000,
    maxSeries = 5000,
  }: {
    /** Tools beyond this number are counted as `_other`; 1,000. */
    readonly maxTools?: number;
    /** Beyond this number of series, calls are counted by method and era alone; 5,000. */
    readonly maxSeries?: number;
  } = {}) {
    this.#maxTools = maxTools;
    this.#maxSeries = maxSeries;
  }

  get series(): readonly CallSeries[] {
    return this.#series;
  }

  record(labels: CallLabels, seconds: number): void {
    (this.#find(labels) ?? this.#add(labels)).durations.add(seconds);
  }

  #find(labels: CallLabels): CallSeries | undefined {
    const known = this.#byName.get(keyOf(labels));
    if (known === undefined) return undefined;
    const { method, server, era, errorType } = labels;
    for (const each of known)
      if (
        each.server === server &&
        each.era === era &&
        each.errorType === errorType &&
        each.method === method &&
        each.tool === labels.tool
      )
        return each;
    return undefined;
  }

  /** The series of labels that have none, or that share one with others. */
  #add(given: CallLabels): CallSeries {
    const { era } = given;
    const method = methods.has(given.method) ? given.method : other;
    let { server, tool } = given;
    let errorType = this.#toErrorType(given.errorType);
    if (tool !== "" && !this.#hasTool(given)) {
      if (this.#tools >= this.#maxTools) tool = other;
      else this.#tools++;
    }
    if (this.#series.length >= this.#maxSeries) {
      server = other;
      tool = other;
      errorType = errorType === "" ? "" : other;
    }
    const labels = { method, server, tool, era, errorType };
    const found = this.#find(labels);
    if (found !== undefined) return found;
    const series = { ...labels, durations: new Durations() };
    this.#series.push(series);
    const name = keyOf(labels);
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), series]);
    return series;
  }

  #hasTool({ server, tool }: CallLabels): boolean {
    return this.#byName.get(tool)?.some((each) => each.tool === tool && each.server === server) === true;
  }

  #toErrorType(type: string): string {
    if (type === "" || this.#errorTypes.has(type)) return type;
    if (this.#errorTypes.size >= maxErrorTypes) return other;
    this.#errorTypes.add(type);
    return type;
  }
}

function keyOf({ tool, method }: CallLabels): string {
  return tool === "" ? method : tool;
}

/** Upper bounds of the buckets in seconds: those of the OpenTelemetry conventions for MCP, and 1, 2 and 5 ms. */
const bucketBounds: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
];

/** Finer bounds for quantiles. The first ones are below those of the buckets, which are all in here. */
const fineBounds: readonly number[] = [0.0001, 0.0002, 0.0005, ...bucketBounds];
const fineOnly = fineBounds.length - bucketBounds.length;

/** How many calls took how long. Counts only grow. */
class Durations {
  /** By fine bucket; the last one is for everything above the last bound. */
  readonly counts: Float64Array = new Float64Array(fineBounds.length + 1);
  sumSeconds = 0;
  count = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (seconds > (fineBounds[bucket] ?? Infinity)) bucket++;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumSeconds += seconds;
    this.count++;
  }

  /** For each bound, how many took no longer: the buckets as Prometheus wants them, without the one for all. */
  cumulative(): readonly number[] {
    let sum = 0;
    return Array.from(this.counts.subarray(0, fineBounds.length), (count) => (sum += count)).slice(fineOnly);
  }
}

/** The quantile of counts by fine bucket, in seconds, interpolated inside its bucket; undefined when there are none. */
export function quantileOf(counts: Float64Array, quantile: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = quantile * total;
  let before = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && before + count >= rank) {
      const lower = bucket === 0 ? 0 : (fineBounds[bucket - 1] ?? 0);
      const upper = fineBounds[bucket] ?? lower;
      return lower + ((upper - lower) * (rank - before)) / count;
    }
    before += count;
  }
  return fineBounds.at(-1);
}

/** Counts that are all zero. */
export function noCounts(): Float64Array {
  return new Float64Array(fineBounds.length + 1);
}

/** One value of a metric, with its labels. */
interface Sample {
  readonly labels?: { readonly [name: string]: string };
  readonly value: number;
}

/** A counter or a gauge, as it is at one moment. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly Sample[];
}

/** The media type of the text. */
export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics as Prometheus text, version 0.0.4. Metrics without a sample are left out. */
export function toExposition(metrics: readonly Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) =>
      [
        ...headOf(name, help, type),
        ...samples.map(({ labels, value }) => `${name}${toLabels(labels)} ${toNumber(value)}\n`),
      ].join(""),
    )
    .join("");
}

/** Durations of calls as a histogram. */
export function toHistogram(name: string, help: string, { series }: CallMetrics): string {
  if (series.length === 0) return "";
  const parts = headOf(name, help, "histogram");
  for (const { method, server, tool, era, errorType, durations } of series) {
    const labels = { method, server, tool, era, error_type: errorType };
    const { count, sumSeconds } = durations;
    for (const [index, value] of durations.cumulative().entries())
      parts.push(`${name}_bucket${toLabels({ ...labels, le: String(bucketBounds[index]) })} ${value}\n`);
    parts.push(`${name}_bucket${toLabels({ ...labels, le: "+Inf" })} ${count}\n`);
    parts.push(`${name}_sum${toLabels(labels)} ${toNumber(sumSeconds)}\n`);
    parts.push(`${name}_count${toLabels(labels)} ${count}\n`);
  }
  return parts.join("");
}

function headOf(name: string, help: string, type: string): string[] {
  return [
    `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n`,
    `# TYPE ${name} ${type}\n`,
  ];
}

/** Labels without a value are left out, which means the same to Prometheus. */
function toLabels(labels: Sample["labels"] = {}): string {
  const given = Object.entries(labels).filter(([, value]) => value !== "");
  if (given.length === 0) return "";
  return `{${given.map(([name, value]) => `${name}="${toLabelValue(value)}"`).join(",")}}`;
}

/** Names come from servers: they are cut, and everything that would end the value is escaped. */
function toLabelValue(value: string): string {
  const cut = value.length <= maxLabelLength ? value : value.slice(0, maxLabelLength);
  return cut.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

const maxLabelLength = 256;

function toNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}
