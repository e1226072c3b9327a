import { toSafeLine } from "./terminal-text.ts";

/** Rows of cells as lines of text, with the columns aligned. What comes from servers may not steer the terminal. */
export function toRows(rows: readonly (readonly string[])[]): readonly string[] {
  const safe = rows.map((row) => row.map(toSafeLine));
  const columns = Math.max(0, ...safe.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, index) =>
    Math.max(...safe.map((row) => row[index]?.length ?? 0)),
  );
  return safe.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
