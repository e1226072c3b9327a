import { median, ratios, spread } from "./statistics.mjs";

/** @typedef {import("./contest.mjs").Contest} Contest */

/**
 * One contest as lines of text.
 *
 * @param {Contest} contest
 * @returns {string}
 */
export function toTable({ section, name, standings }) {
  const bare = standings.find((each) => each.name.startsWith("bare"))?.figures ?? [];
  const rows = standings.map(({ name, figures, peakBytes, problem }) => {
    if (figures.length === 0) return [name, `– ${problem ?? "no figures"}`];
    const cpu = spread(figures.map((figure) => figure.cpu));
    const over = ratios(
      figures.map((figure) => figure.cpu),
      bare.map((figure) => figure.cpu),
    );
    return [
      name,
      toShort(cpu.median),
      `${toShort(cpu.min)}–${toShort(cpu.max)}`,
      over.length === 0 ? "" : `${toShort(median(over))}x`,
      median(figures.map((figure) => figure.perSecond)).toFixed(0),
      toShort(median(figures.map((figure) => figure.p50))),
      toShort(median(figures.map((figure) => figure.p99))),
      (peakBytes / 2 ** 20).toFixed(0),
    ];
  });
  const head = [
    `${section}: ${name}`,
    "µs CPU",
    "min–max",
    "/ bare",
    "calls/s",
    "p50 ms",
    "p99 ms",
    "peak MiB",
  ];
  return toColumns([head, ...rows]);
}

/** @param {string} section @param {string} name @param {readonly import("./run.mjs").Times[]} times */
export function toTimesTable(section, name, times) {
  const rows = times.map(({ name, ms, problem }) => {
    if (ms.length === 0) return [name, `– ${problem ?? "no figures"}`];
    const { median, min, max } = spread(ms);
    return [name, median.toFixed(0), `${min.toFixed(0)}–${max.toFixed(0)}`];
  });
  return toColumns([[`${section}: ${name}`, "ms", "min–max"], ...rows]);
}

/** @param {readonly import("./footprint.mjs").Footprint[]} footprints */
export function toFootprintTable(footprints) {
  const rows = footprints.map(({ name, bytes, packages }) => [
    name,
    (bytes / 2 ** 20).toFixed(1),
    String(packages),
  ]);
  return toColumns([["installed, with what it depends on", "MiB", "packages"], ...rows]);
}

/** @param {readonly import("../goals.mjs").Verdict[]} verdicts */
export function toGoalTable(verdicts) {
  const rows = verdicts.map(({ what, bound, reached, isMet, remark }) => [
    what,
    reached === undefined ? "–" : toShort(reached),
    bound,
    isMet ? "met" : "MISSED",
    remark,
  ]);
  return toColumns([["goals", "reached", "bound", "", ""], ...rows]);
}

/**
 * The first column to the left, the others to the right; a row may be one long remark.
 *
 * @param {readonly (readonly string[])[]} rows
 */
export function toColumns(rows) {
  const full = rows.filter((row) => row.length === rows[0]?.length);
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...full.map((row) => (row[column] ?? "").length)),
  );
  const first = Math.max(...rows.map((row) => (row[0] ?? "").length));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(first) : row.length === 2 ? cell : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/**
 * Three digits that matter.
 *
 * @param {number} value
 */
export function toShort(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
