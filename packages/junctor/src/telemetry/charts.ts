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

type ChartKind = "total" | "server" | "tool";

/** How long a step is, and how many are kept: one hour. */
export const stepMs = 10_000;
export const points = 360;

/** The methods that are charted. */
const charted = new Set(["tools/call", "resources/read", "prompts/get"]);
/** Servers and tools beyond this number share a chart. */
const maxCharts = 1000;

/** A chart of fixed size: 4 numbers a step. */
class ChartRing {
  readonly name: ChartName;
  readonly #values = new Float32Array(points * 4).fill(Number.NaN);
  /** The step that is gathered now. */
  #counts: Float64Array | undefined;
  #failed = 0;

  constructor(name: ChartName) {
    this.name = name;
  }

  add(counts: Float64Array, isFailed: boolean): void {
    this.#counts ??= noCounts();
    for (const [bucket, count] of counts.entries()) {
      this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
      if (isFailed) this.#failed += count;
    }
  }

  /** Ends the step with this number. */
  end(step: number): void {
    const counts = this.#counts;
    const total = counts?.reduce((sum, count) => sum + count, 0) ?? 0;
    const at = (step % points) * 4;
    this.#values[at] = (total * 1000) / stepMs;
    this.#values[at + 1] = (this.#failed * 1000) / stepMs;
    this.#values[at + 2] = (counts && quantileOf(counts, 0.5)) ?? Number.NaN;
    this.#values[at + 3] = (counts && quantileOf(counts, 0.99)) ?? Number.NaN;
    this.#counts = undefined;
    this.#failed = 0;
  }

  /** A step before the first falls on the place of a future step, which is empty. */
  point(step: number): ChartPoint {
    const at = ((step + points) % points) * 4;
    const read = (offset: number): number => this.#values[at + offset] ?? Number.NaN;
    return { rate: read(0) || 0, errors: read(1) || 0, p50Ms: toMs(read(2)), p99Ms: toMs(read(3)) };
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
  read(kind: ChartKind, top: number, count: number = points): readonly Chart[] {
    const rings =
      kind === "total" ? [this.#total] : [...(kind === "server" ? this.#servers : this.#tools).values()];
    const charts = rings.map((ring) => ({ ...ring.name, ...this.#read(ring, count) }));
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

  #read(ring: ChartRing, count: number): Omit<Chart, keyof ChartName> {
    const first = this.#step - count + 1;
    const read = Array.from({ length: count }, (_, index) => ring.point(first + index));
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
