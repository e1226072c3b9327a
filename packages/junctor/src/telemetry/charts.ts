import { type CallMetrics, type CallSeries, noCounts, other, quantileOf } from "./metrics.ts";

/** One step of a chart. `rate` and `errors` are calls a second; the quantiles are null when there was no call. */
interface ChartPoint {
  readonly rate: number;
  readonly errors: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** The subject of a chart: everything, a server, or a tool of a server. */
interface ChartName {
  readonly server?: string;
  readonly tool?: string;
}

/** The points of one chart, oldest first. */
interface Chart extends ChartName {
  readonly rate: readonly number[];
  readonly errors: readonly number[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
}

/** How long a step is, and how many are kept: one hour. */
export const stepMs = 10_000;
export const points = 360;
/** The same for the charts of a day. */
const stepsOfDayPoint = 30;
export const dayStepMs: number = stepMs * stepsOfDayPoint;
export const dayPoints = 288;

/** What a chart covers. */
type ChartRange = "hour" | "day";

/** The methods that are charted. */
const charted = new Set(["tools/call", "resources/read", "prompts/get"]);
/** Servers and tools beyond this number share a chart. */
const maxCharts = 1000;

/** Points of one width. */
class Points {
  readonly #values: Float32Array;
  readonly #count: number;
  readonly #ms: number;
  /** The point that is gathered now. */
  #counts: Float64Array | undefined;
  #failed = 0;

  constructor(count: number, ms: number) {
    this.#values = new Float32Array(count * 4).fill(Number.NaN);
    this.#count = count;
    this.#ms = ms;
  }

  add(counts: Float64Array, isFailed: boolean): void {
    this.#counts ??= noCounts();
    for (const [bucket, count] of counts.entries()) {
      this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
      if (isFailed) this.#failed += count;
    }
  }

  /** Ends the point with this number. */
  end(step: number): void {
    const counts = this.#counts;
    const total = counts?.reduce((sum, count) => sum + count, 0) ?? 0;
    const at = (step % this.#count) * 4;
    this.#values[at] = (total * 1000) / this.#ms;
    this.#values[at + 1] = (this.#failed * 1000) / this.#ms;
    this.#values[at + 2] = (counts && quantileOf(counts, 0.5)) ?? Number.NaN;
    this.#values[at + 3] = (counts && quantileOf(counts, 0.99)) ?? Number.NaN;
    this.#counts = undefined;
    this.#failed = 0;
  }

  /** A point before the first falls on the place of a future one, which is empty. */
  point(step: number): ChartPoint {
    const at = ((step + this.#count) % this.#count) * 4;
    const read = (offset: number): number => this.#values[at + offset] ?? Number.NaN;
    return { rate: read(0) || 0, errors: read(1) || 0, p50Ms: toMs(read(2)), p99Ms: toMs(read(3)) };
  }
}

/** A chart of fixed size: 4 numbers a point. Only charts of servers, and the total, have the points of a day. */
class ChartRing {
  readonly name: ChartName;
  readonly #hour = new Points(points, stepMs);
  readonly #day: Points | undefined;

  constructor(name: ChartName) {
    this.name = name;
    this.#day = name.tool === undefined ? new Points(dayPoints, dayStepMs) : undefined;
  }

  add(counts: Float64Array, isFailed: boolean): void {
    this.#hour.add(counts, isFailed);
    this.#day?.add(counts, isFailed);
  }

  /** Ends the step with this number. */
  end(step: number): void {
    this.#hour.end(step);
    if (step % stepsOfDayPoint === 0) this.#day?.end(step / stepsOfDayPoint);
  }

  point(step: number, range: ChartRange = "hour"): ChartPoint {
    return (range === "day" ? (this.#day ?? this.#hour) : this.#hour).point(step);
  }
}

/** Rate, errors and quantiles of calls over the last hour: in all, by server and by tool. Its memory does not grow with time. */
export class Charts {
  readonly #metrics: CallMetrics;
  readonly #total = new ChartRing({});
  readonly #servers = new Map<string, ChartRing>();
  readonly #tools = new Map<string, ChartRing>();
  /** The counts of each series at the end of the last step. */
  readonly #seen = new Map<CallSeries, Float64Array>();
  #step = 0;
  /** When the last step ended, by the wall clock. */
  endAt = 0;

  constructor(metrics: CallMetrics) {
    this.#metrics = metrics;
  }

  /** Ends a step. To be called every {@link stepMs}. */
  tick(date: number): void {
    this.endAt = date;
    for (const series of this.#metrics.series) if (charted.has(series.method)) this.#gather(series);
    this.#step++;
    for (const ring of this.#all()) ring.end(this.#step);
  }

  /** The last `count` points, of the charts of a kind that had most calls. */
  read(kind: "total" | "server" | "tool", top: number, range: ChartRange = "hour"): readonly Chart[] {
    const count = range === "day" ? dayPoints : points;
    const rings =
      kind === "total" ? [this.#total] : [...(kind === "server" ? this.#servers : this.#tools).values()];
    const charts = rings.map((ring) => ({ ...ring.name, ...this.#read(ring, count, range) }));
    const callsOf = ({ rate }: Chart): number => rate.reduce((sum, each) => sum + each, 0);
    return charts.toSorted((one, another) => callsOf(another) - callsOf(one)).slice(0, top);
  }

  /** The last points of one server. */
  ofServer(server: string, count: number): Chart | undefined {
    const ring = this.#servers.get(server);
    return ring && { ...ring.name, ...this.#read(ring, count) };
  }

  /** The newest point of each chart: the total, all servers, the busiest tools. */
  newest(maxTools: number): readonly (ChartName & ChartPoint)[] {
    const toPoint = (ring: ChartRing): ChartName & ChartPoint => ({
      ...ring.name,
      ...ring.point(this.#step),
    });
    const tools = Array.from(this.#tools.values(), toPoint).toSorted(
      (one, another) => another.rate - one.rate,
    );
    return [
      toPoint(this.#total),
      ...Array.from(this.#servers.values(), toPoint),
      ...tools.slice(0, maxTools),
    ];
  }

  #all(): readonly ChartRing[] {
    return [this.#total, ...this.#servers.values(), ...this.#tools.values()];
  }

  #gather(series: CallSeries): void {
    const { counts } = series.durations;
    const before = this.#seen.get(series) ?? noCounts();
    const added = counts.map((count, bucket) => count - (before[bucket] ?? 0));
    if (added.every((count) => count === 0)) return;
    this.#seen.set(series, counts.slice());
    const isFailed = series.errorType !== "";
    const { server, tool } = series;
    this.#total.add(added, isFailed);
    if (server !== "") ringOf(this.#servers, { server }).add(added, isFailed);
    if (tool !== "") ringOf(this.#tools, { server, tool }).add(added, isFailed);
  }

  #read(ring: ChartRing, count: number, range: ChartRange = "hour"): Omit<Chart, keyof ChartName> {
    const last = range === "day" ? Math.floor(this.#step / stepsOfDayPoint) : this.#step;
    const first = last - count + 1;
    const read = Array.from({ length: count }, (_, index) => ring.point(first + index, range));
    return {
      rate: read.map(({ rate }) => rate),
      errors: read.map(({ errors }) => errors),
      p50Ms: read.map(({ p50Ms }) => p50Ms),
      p99Ms: read.map(({ p99Ms }) => p99Ms),
    };
  }
}

function ringOf(rings: Map<string, ChartRing>, name: ChartName): ChartRing {
  const key = name.tool ?? name.server ?? "";
  const found = rings.get(key);
  if (found !== undefined) return found;
  if (rings.size < maxCharts) {
    const ring = new ChartRing(name);
    rings.set(key, ring);
    return ring;
  }
  const rest =
    rings.get(other) ??
    new ChartRing(name.tool === undefined ? { server: other } : { server: other, tool: other });
  rings.set(other, rest);
  return rest;
}

function toMs(seconds: number): number | null {
  return Number.isNaN(seconds) ? null : Math.round(seconds * 100_000) / 100;
}
