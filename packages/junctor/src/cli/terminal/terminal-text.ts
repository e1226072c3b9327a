// C0 but tab and newline, DEL, C1, and the marks that make text run the other way (CVE-2021-42574).
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Text of a server as it may be shown on a terminal: without the control characters by which it could move the cursor,
 * rewrite what was shown, or set the clipboard.
 */
export function toSafeText(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(unsafe, "");
}

/** The same on one line. */
export function toSafeLine(text: string): string {
  return toSafeText(text).replaceAll(/\s+/g, " ").trim();
}

/** As much of a line as fits, with an ellipsis for the rest. */
export function clipLine(line: string, width: number): string {
  const letters = Array.from(line);
  return letters.length <= width ? line : `${letters.slice(0, Math.max(0, width - 1)).join("")}…`;
}

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
