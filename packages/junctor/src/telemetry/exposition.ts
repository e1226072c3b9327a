import type { CallMetrics } from "./call-metrics.ts";
import { bucketBounds } from "./durations.ts";

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
