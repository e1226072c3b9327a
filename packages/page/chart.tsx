import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { describeTime } from "./words.ts";

/** One line of a chart; `tone` names a colour of the style sheet. */
export interface ChartLine {
  readonly label: string;
  readonly tone: "first" | "second" | "bad";
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  readonly describe: (value: number) => string;
  /** Seconds since the epoch, one for each point. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}

const height = 180;

/** Lines over the last hour. A caption says the newest values, for those who do not see the lines. */
export function Chart({ title, describe, times, lines }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as uPlot.AlignedData;
  const labels = lines.map(({ label }) => label).join(" ");
  const scheme = useColourScheme();
  useEffect(() => {
    const at = place.current;
    if (at === null) return undefined;
    const made = new uPlot(toOptions(at, lines, describe), data, at);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height }));
    watch.observe(at);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // The lines are drawn again by `setData` below; only other lines and other colours need another plot.
  }, [labels, scheme]);
  useEffect(() => plot.current?.setData(data), [times, lines]);
  const newest = lines.map(({ label, values }) => {
    const value = values.findLast((each) => each !== null);
    const said = value === undefined || value === null ? "none" : describe(value);
    return lines.length === 1 ? said : `${label} ${said}`;
  });
  return (
    <figure class="chart">
      <figcaption>
        {title} <span class="quiet">now {newest.join(", ")}</span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

/** Changes when the page turns dark or light: a canvas keeps the colours it was drawn with. */
function useColourScheme(): string {
  const [scheme, setScheme] = useState(readScheme);
  useEffect(() => {
    const look = (): void => setScheme(readScheme());
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", look);
    const chosen = new MutationObserver(look);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      system.removeEventListener("change", look);
      chosen.disconnect();
    };
  }, []);
  return scheme;
}

function readScheme(): string {
  return getComputedStyle(document.body).backgroundColor;
}

/** Points without a neighbour, which no line shows: most tools are not called every few seconds. */
function lonePoints({ data }: uPlot, line: number): number[] {
  const values = data[line] ?? [];
  const isEmpty = (i: number): boolean => (values[i] ?? null) === null;
  return Array.from(values.keys()).filter((i) => !isEmpty(i) && isEmpty(i - 1) && isEmpty(i + 1));
}

/** The colour behind a name of the style sheet, as a canvas understands it. */
function colourOf(name: string, at: HTMLElement): string {
  at.style.color = `var(--${name})`;
  const { color } = getComputedStyle(at);
  at.style.color = "";
  return color;
}

function toOptions(
  at: HTMLElement,
  lines: readonly ChartLine[],
  describe: ChartProps["describe"],
): uPlot.Options {
  const grid = { stroke: colourOf("line", at), width: 1 };
  const axis = { stroke: colourOf("quiet", at), grid, ticks: { show: false } };
  const toMinutes = (_plot: unknown, times: readonly number[]): string[] =>
    times.map((time) => describeTime(time * 1000).slice(0, 5));
  return {
    width: at.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 0.1) * 1.1] } },
    axes: [
      { ...axis, values: toMinutes },
      { ...axis, size: 70, values: (_plot, values) => values.map(describe) },
    ],
    series: [
      {},
      ...lines.map(({ label, tone }) => ({
        label,
        stroke: colourOf(tone, at),
        width: 1.5,
        spanGaps: false,
        points: { show: false, size: 4, filter: lonePoints },
      })),
    ],
  };
}
