import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ChartsReport, Series } from "../junctor/src/admin/answers.ts";
import { type ChartFlag, ChartRow, FlagLabels, TimeAxis } from "./chart.tsx";
import { Panel, ranges, Segments } from "./parts.tsx";
import { extendSeries, type Store, useKnown, useLoaded } from "./store.ts";
import { describeMs, describeNumber, describeRate } from "./words.ts";

interface TrafficProps {
  readonly store: Store;
  readonly range: string;
  readonly server?: string;
  readonly flags: readonly ChartFlag[];
  /** Where the range is chosen, if that is not somewhere else on the page. */
  readonly onRange?: (range: string) => void;
}

/** How many points are drawn as one. */
const mergedPoints: { readonly [range: string]: number } = { "5m": 1, "1h": 3, "24h": 1 };

/** Rate, failures and time taken on one time axis. */
export function Traffic({ store, range, server, flags, onRange }: TrafficProps): JSX.Element {
  const drawn = useSeries(store, range, server);
  const { from, to, times } = drawn;
  const last = <T,>(values: readonly (T | null)[]): T | undefined =>
    values.findLast((each) => each !== null) ?? undefined;
  const rateNow = drawn.rate.at(-1) ?? 0;
  const failedNow = drawn.failed.at(-1) ?? 0;
  const allFailed = Math.round(drawn.failed.reduce((sum, each) => sum + each, 0) * drawn.failedScale);
  const mostFailed = Math.max(0, ...drawn.failed);
  const { p50, p99 } = drawn;
  return (
    <Panel
      title="Traffic"
      class="traffic"
      side={onRange && <Segments label="Range" value={range} options={ranges} onChange={onRange} />}
    >
      <FlagLabels flags={flags} from={from} to={to} />
      <ChartRow
        title="Calls a second"
        value={describeRate(rateNow)}
        note={`most ${describeRate(Math.max(0, ...drawn.rate))}`}
        times={times}
        kind="area"
        describe={describeRate}
        flags={flags}
        lines={[{ label: "calls", tone: "accent", values: drawn.rate }]}
      />
      <ChartRow
        title="Failed a minute"
        value={
          <>
            {describeRate(failedNow)}{" "}
            <small>{rateNow > 0 ? `${((failedNow / 60 / rateNow) * 100).toFixed(1)} %` : ""}</small>
          </>
        }
        note={`most ${describeRate(mostFailed)} · ${describeNumber(allFailed)} in all`}
        times={times}
        kind="bars"
        describe={describeRate}
        flags={flags}
        lines={[{ label: "failed", tone: "mark-danger", values: drawn.failed }]}
      />
      <ChartRow
        title={
          <>
            Time taken <span class="faint">(log scale)</span>
          </>
        }
        value={
          <>
            {describeMs(last(p50))} <small class="key accent">median</small>
          </>
        }
        note={<span class="key warn">p99 {describeMs(last(p99))}</span>}
        times={times}
        kind="log"
        describe={describeMs}
        flags={flags}
        lines={[
          { label: "median", tone: "accent", values: p50 },
          { label: "p99", tone: "mark-warn", values: p99 },
        ]}
      />
      <TimeAxis from={from} to={to} />
    </Panel>
  );
}

interface Drawn {
  readonly from: number;
  readonly to: number;
  readonly times: readonly number[];
  readonly rate: readonly number[];
  /** Failures a minute. */
  readonly failed: readonly number[];
  /** A value of `failed` times this is the number of failures in its point. */
  readonly failedScale: number;
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** The series of a server that was never called. */
function emptySeries(length: number): Series {
  const zeros = Array.from({ length }, () => 0);
  const none = Array.from({ length }, () => null);
  return { rate: zeros, errors: zeros, p50Ms: none, p99Ms: none };
}

/** The series of the range, kept up to date; it begins no earlier than the gateway did. */
function useSeries(store: Store, range: string, server: string | undefined): Drawn {
  const { point, status } = useKnown(store);
  const isDay = range === "24h";
  const query = new URLSearchParams({
    by: server === undefined ? "total" : "server",
    ...(server === undefined ? {} : { name: server }),
    range: isDay ? "day" : "hour",
  });
  // A point of a day is five minutes long.
  const loaded = useLoaded<ChartsReport>(
    store.api,
    `/api/charts?${query.toString()}`,
    isDay && point ? Math.floor(point.endAt / 300_000) : 0,
  );
  const [charts, setCharts] = useState<ChartsReport>();
  useEffect(() => {
    if (loaded.kind === "loaded") setCharts(loaded.value);
  }, [loaded.kind === "loaded" ? loaded.value : undefined]);
  useEffect(() => {
    if (point === undefined || isDay) return;
    setCharts((now) => {
      if (now === undefined || point.endAt <= now.endAt) return now;
      const fresh = point.series.find((each) => each.tool === undefined && each.server === server);
      return { ...now, endAt: point.endAt, series: now.series.map((each) => extendSeries(each, fresh)) };
    });
  }, [point]);
  return useMemo(() => toDrawn(charts, range, status?.startedAt ?? 0), [charts, range, status?.startedAt]);
}

function toDrawn(charts: ChartsReport | undefined, range: string, startedAt: number): Drawn {
  const { stepMs = 10_000, endAt = 0, series = [] } = charts ?? {};
  const [all = emptySeries(charts?.points ?? 0)] = series;
  const to = endAt === 0 ? Date.now() : endAt;
  const wanted = range === "5m" ? 30 : all.rate.length;
  // A gateway that started a moment ago gets a short axis, not a long one with a spike at its end.
  const lived = Math.max(12, Math.ceil((to - startedAt) / stepMs));
  const count = Math.min(wanted, lived);
  const size = count < 90 ? 1 : (mergedPoints[range] ?? 1);
  const points = Math.floor(count / size);
  const gather = <T,>(values: readonly T[], join: (part: readonly T[]) => T): readonly T[] => {
    const shown = values.slice(values.length - points * size);
    return Array.from({ length: points }, (_, i) => join(shown.slice(i * size, i * size + size)));
  };
  const mean = (part: readonly number[]): number =>
    part.reduce((sum, each) => sum + each, 0) / Math.max(1, part.length);
  const middle = (part: readonly (number | null)[]): number | null => {
    const known = part.filter((each) => each !== null);
    return known.length === 0 ? null : mean(known);
  };
  const step = stepMs * size;
  const from = to - points * step;
  return {
    from,
    to,
    times: Array.from({ length: points }, (_, i) => (from + (i + 1) * step) / 1000),
    rate: gather(all.rate, mean),
    failed: gather(all.errors, mean).map((each) => each * 60),
    failedScale: step / 60_000,
    p50: gather(all.p50Ms, middle),
    p99: gather(all.p99Ms, middle),
  };
}
