import { toSafeLine } from "../terminal/index.ts";

const narrowest = 12;

/** Formats rows as a table. The first column is cut to fit the terminal; the others are numbers, right-aligned. */
export function toTable(rows: readonly (readonly string[])[], columns: number | undefined): string {
  const safe = rows.map((row) => row.map(toSafeLine));
  const count = Math.max(0, ...safe.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, index) =>
    Math.max(...safe.map((row) => row[index]?.length ?? 0)),
  );
  const others = widths.slice(1).reduce((sum, width) => sum + width + 2, 0);
  const room = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(narrowest, columns - 1 - others);
  const first = Math.min(widths[0] ?? 0, room);
  return safe
    .map(([name = "", ...numbers]) => {
      const cut = name.length > first ? `${name.slice(0, first - 1)}…` : name.padEnd(first);
      const rest = numbers.map((cell, index) => cell.padStart(widths[index + 1] ?? 0));
      return `${[cut, ...rest].join("  ").trimEnd()}\n`;
    })
    .join("");
}

/** A duration in a few letters. */
export function describeTook(ms: number | undefined): string {
  if (ms === undefined) return "-";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A count in a few letters. */
export function describeShort(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)} k` : `${(count / 1_000_000).toFixed(1)} M`;
}
