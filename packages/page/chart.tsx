import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { describeTime } from "./words.ts";

/** One line of a chart; `tone` names a colour of the style sheet. */
export interface ChartLine {
  readonly label: string;
  readonly tone: "accent" | "mark-warn" | "mark-danger";
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly describe: (value: number) => string;
  /** Seconds since the epoch, one for each point. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly kind: "area" | "bars" | "log";
  readonly flags: readonly ChartFlag[];
}

/** Something that happened, drawn across all rows. */
export interface ChartFlag {
  readonly at: number;
  readonly text: string;
  readonly tone: "danger" | "warn";
}

export const plotHeight = 88;
/** Room for the axis at the right. */
export const axisWidth = 64;

/** One row of a time axis that several rows share, with one cursor. Hidden from screen readers: the text beside it has its numbers. */
function Plot({ describe, times, lines, kind, flags }: ChartProps): JSX.Element {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shown = useRef(flags);
  shown.current = flags;
  const data = [times, ...lines.map(({ values }) => values)] as uPlot.AlignedData;
  const labels = lines.map(({ label }) => label).join(" ");
  const scheme = useColourScheme();
  useEffect(() => {
    const element = container.current;
    if (element === null) return undefined;
    const chart = new uPlot(
      toOptions(element, lines, kind, describe, () => shown.current),
      data,
      element,
    );
    plot.current = chart;
    const observer = new ResizeObserver(() =>
      chart.setSize({ width: element.clientWidth, height: plotHeight }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = undefined;
    };
    // `setData` below updates the values; only different lines or colours need a new plot.
  }, [labels, scheme]);
  useEffect(() => plot.current?.setData(data), [times, lines]);
  return <div ref={container} class="plot" aria-hidden="true" />;
}

/** Changes when the page turns dark or light: a canvas keeps the colours it was drawn with. */
function useColourScheme(): string {
  const [scheme, setScheme] = useState(readScheme);
  useEffect(() => {
    const update = (): void => setScheme(readScheme());
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", update);
    const chosen = new MutationObserver(update);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      system.removeEventListener("change", update);
      chosen.disconnect();
    };
  }, []);
  return scheme;
}

function readScheme(): string {
  return getComputedStyle(document.body).backgroundColor;
}

/** Points without a neighbour, through which no line leads: most tools are not called every few seconds. */
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

/** The smallest round number that is not below a value. */
function roundUp(most: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(most, 0.01)));
  return ([1, 2, 4, 5, 10].find((step) => step * size >= most * 0.999) ?? 10) * size;
}

function toScale(kind: ChartProps["kind"]): uPlot.Scale {
  if (kind !== "log")
    return { range: (_plot, _least, most) => [0, roundUp(Math.max(most, kind === "bars" ? 4 : 0.2)) * 1.04] };
  return {
    distr: 3,
    range: (_plot, least, most) => [
      10 ** Math.floor(Math.log10(Math.max(0.1, least || 1))),
      10 ** Math.ceil(Math.log10(Math.max(10, (most || 10) * 1.01))),
    ],
  };
}

function toOptions(
  at: HTMLElement,
  lines: readonly ChartLine[],
  kind: ChartProps["kind"],
  describe: ChartProps["describe"],
  flags: () => readonly ChartFlag[],
): uPlot.Options {
  const grid = { stroke: colourOf("line", at), width: 1 };
  const faint = colourOf("faint", at);
  const font = '11px "Geist Variable", system-ui, sans-serif';
  const bars = uPlot.paths.bars?.({ size: [0.8, 10], align: 1 });
  return {
    width: at.clientWidth,
    height: plotHeight,
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { setScale: false }, sync: { key: "traffic" } },
    scales: { y: toScale(kind) },
    axes: [
      { show: false },
      {
        side: 1,
        size: axisWidth,
        stroke: faint,
        font,
        gap: 8,
        grid,
        ticks: { show: false },
        splits: (_plot, _axis, least, most) => {
          if (kind === "log") {
            const first = Math.round(Math.log10(least)) + 1;
            const count = Math.round(Math.log10(most)) - first + 1;
            const steps = Array.from({ length: count }, (_, index) => 10 ** (first + index));
            return count < 4 ? steps : steps.filter((_, index) => index % 2 === 1);
          }
          const top = roundUp(most / 1.04);
          return [top / 2, top];
        },
        values: (_plot, values) => values.map((value) => describe(value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, tone }) => ({
        label,
        stroke: colourOf(tone, at),
        width: kind === "bars" ? 0 : 1.5,
        spanGaps: false,
        points: { show: false, size: 4, filter: lonePoints },
        ...(kind === "bars" && bars !== undefined ? { paths: bars, fill: colourOf(tone, at) } : {}),
        ...(kind === "area" ? { fill: colourOf("accent-area", at) } : {}),
      })),
    ],
    hooks: { draw: [(chart) => drawFlags(chart, flags(), at)] },
  };
}

function drawFlags(plot: uPlot, flags: readonly ChartFlag[], at: HTMLElement): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  for (const flag of flags) {
    const x = plot.valToPos(flag.at / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colourOf(`mark-${flag.tone}`, at);
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, plot.height * devicePixelRatio);
    ctx.stroke();
  }
  ctx.restore();
}

interface RowProps extends Omit<ChartProps, "flags"> {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly flags?: readonly ChartFlag[];
}

/** A chart with its title, its newest value and a note at the left. */
export function ChartRow({ title, value, note, flags = [], ...plot }: RowProps): JSX.Element {
  return (
    <div class="chart-row">
      <div class="label">
        <p class="name">{title}</p>
        <p class="value">{value}</p>
        <p class="note">{note}</p>
      </div>
      <Plot {...plot} flags={flags} />
    </div>
  );
}

/** The times below the rows. */
export function TimeAxis({ from, to }: { readonly from: number; readonly to: number }): JSX.Element {
  const steps = [0, 1, 2, 3, 4];
  return (
    <div class="time-axis">
      {steps.map((step) => (
        <span key={step}>
          {describeTime(from + ((to - from) * step) / 4).slice(0, to - from < 600_000 ? 8 : 5)}
        </span>
      ))}
    </div>
  );
}

/** The labels of flags, above the rows. */
export function FlagLabels(props: {
  readonly flags: readonly ChartFlag[];
  readonly from: number;
  readonly to: number;
}): JSX.Element {
  const { flags, from, to } = props;
  const inside = flags.filter(({ at }) => at > from && at < to).slice(-3);
  return (
    <div class="flags" aria-hidden="true">
      {inside.map(({ at, text, tone }) => (
        <span key={`${at} ${text}`} class={tone} style={{ left: `${((at - from) / (to - from)) * 100}%` }}>
          {describeTime(at).slice(0, 5)} {text}
        </span>
      ))}
    </div>
  );
}
