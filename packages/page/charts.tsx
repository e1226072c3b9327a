import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChartsReport, Series } from "../junctor/src/admin/answers.ts";
import { Chart } from "./chart.tsx";
import { Heading, WhenLoaded } from "./parts.tsx";
import { go, type Route } from "./route.ts";
import { extendSeries, type Store, useKnown, useLoaded } from "./store.ts";
import { describeMs, describeRate } from "./words.ts";

const choices = { total: "all calls", server: "by server", tool: "by tool" } as const;

/** Rate, latency and errors over the last hour: of all calls, or of each server or tool. */
export function Charts({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const by = route.query.get("by") ?? "total";
  const loaded = useLoaded<ChartsReport>(store.api, `/api/charts?by=${encodeURIComponent(by)}&top=20`);
  return (
    <>
      <Heading>Charts</Heading>
      <div class="field inline">
        <label for="by">Show</label>
        <select
          id="by"
          value={by}
          onChange={({ currentTarget }) => go("charts", { by: currentTarget.value })}
        >
          {Object.entries(choices).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <WhenLoaded loaded={loaded}>{(data) => <LiveCharts key={by} store={store} first={data} />}</WhenLoaded>
    </>
  );
}

function LiveCharts({ store, first }: { readonly store: Store; readonly first: ChartsReport }): JSX.Element {
  const [data, setData] = useState(first);
  const { point } = useKnown(store);
  useEffect(() => {
    if (point === undefined || point.endAt <= data.endAt) return;
    const series = data.series.map((each) =>
      extendSeries(
        each,
        point.series.find(({ server, tool }) => server === each.server && tool === each.tool),
      ),
    );
    setData({ ...data, endAt: point.endAt, series });
  }, [point]);
  if (data.series.length === 0) return <p class="quiet">No call in the last hour.</p>;
  const times = Array.from(
    { length: data.points },
    (_, i) => (data.endAt - (data.points - 1 - i) * data.stepMs) / 1000,
  );
  return (
    <>
      {data.series.map((series) => (
        <SeriesView key={`${series.server} ${series.tool}`} series={series} times={times} />
      ))}
    </>
  );
}

function SeriesView({
  series,
  times,
}: {
  readonly series: Series;
  readonly times: readonly number[];
}): JSX.Element {
  const { rate, errors, p50Ms, p99Ms } = series;
  return (
    <section class="series">
      <h2>{series.tool ?? series.server ?? "All calls"}</h2>
      <div class="charts">
        <Chart
          title="Calls a second"
          describe={describeRate}
          times={times}
          lines={[{ label: "calls", tone: "first", values: rate }]}
        />
        <Chart
          title="Latency"
          describe={describeMs}
          times={times}
          lines={[
            { label: "p50", tone: "first", values: p50Ms },
            { label: "p99", tone: "second", values: p99Ms },
          ]}
        />
        <Chart
          title="Errors a second"
          describe={describeRate}
          times={times}
          lines={[{ label: "errors", tone: "bad", values: errors }]}
        />
      </div>
    </section>
  );
}
