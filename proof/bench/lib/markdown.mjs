import { median, ratios } from "./statistics.mjs";
import { toShort } from "./table.mjs";

/** @typedef {import("./report.mjs").Report} Report */
/** @typedef {Report["contests"][number]} Contest */

const begin = "<!-- report:begin -->";
const end = "<!-- report:end -->";

const titles = {
  servers: "Servers over HTTP",
  gateways: "Gateways",
  clients: "Clients over HTTP",
  stdio: "Servers over stdio",
};
const growths = [
  { noun: /^tools?$/, title: "tools of a server" },
  { noun: /^open streams?$/, title: "open streams of a server" },
  { noun: /^stdio upstreams?$/, title: "stdio upstreams of a gateway" },
];

/**
 * A page with another report between its markers.
 *
 * @param {string} page
 * @param {string} report
 */
export function withReport(page, report) {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} … ${end}`);
  return `${page.slice(0, from)}${begin}\n\n${report}\n\n${page.slice(to)}`;
}

/**
 * The tables of a run.
 *
 * @param {Report} report
 * @param {string} machine
 */
export function toMarkdown(report, machine) {
  const { contests, startup, footprints, goals, absences, seconds } = report;
  const parts = [
    `Measured on ${machine}, in one run of ${seconds} s.`,
    ...Object.entries(titles).flatMap(([section, title]) =>
      sectionOf(
        title,
        contests.filter((each) => each.section === section),
      ),
    ),
    ...startupOf(startup, footprints),
    ...growthOf(contests.filter(({ section }) => section === "growth")),
    ...goalsOf(goals),
    `### Who is missing where\n\n${absences.map((each) => `- ${each}`).join("\n")}`,
  ];
  return parts.join("\n\n");
}

/** @param {string} title @param {readonly Contest[]} contests @returns {string[]} */
function sectionOf(title, contests) {
  if (contests.length === 0) return [];
  const head = ["", "", "µs CPU a call", "least–most", "/ bare", "calls/s", "p50 ms", "p99 ms", "peak MiB"];
  const rows = contests.flatMap(({ name, systems }) =>
    systems.map((system, index) => [
      index === 0 ? name : "",
      nameOf(system.name),
      ...figuresOf(
        system,
        systems.find((each) => each.name === "bare"),
      ),
    ]),
  );
  return [`### ${title}`, toTable([head, ...rows])];
}

/** @param {Contest["systems"][number]} system @param {Contest["systems"][number] | undefined} bare */
function figuresOf(
  { cpu, cpuByRound = [], perSecond = NaN, p50 = NaN, p99 = NaN, peak = NaN, problem },
  bare,
) {
  if (cpu === undefined) return [`– ${problem ?? ""}`, "", "", "", "", "", ""];
  return [
    toShort(cpu.median),
    `${toShort(cpu.min)}–${toShort(cpu.max)}`,
    `${toShort(median(ratios(cpuByRound, bare?.cpuByRound ?? [])))}x`,
    perSecond.toFixed(0),
    toShort(p50),
    toShort(p99),
    peak.toFixed(0),
  ];
}

/** @param {Report["startup"]} startup @param {Report["footprints"]} footprints @returns {string[]} */
function startupOf(startup, footprints) {
  const races = startup.map(({ name, systems }) =>
    toTable([
      [name, "median", "least–most"],
      ...systems.map(({ name, ms, problem }) =>
        ms === undefined
          ? [nameOf(name), `– ${problem ?? ""}`, ""]
          : [nameOf(name), ms.median.toFixed(0), `${ms.min.toFixed(0)}–${ms.max.toFixed(0)}`],
      ),
    ]),
  );
  const sizes = footprints.map(({ name, mebibytes, packages }) => [
    nameOf(name),
    mebibytes.toFixed(1),
    String(packages),
  ]);
  const installed = sizes.length === 0 ? [] : [toTable([["installed", "MiB", "packages"], ...sizes])];
  return races.length + installed.length === 0 ? [] : ["### Start-up and size", ...races, ...installed];
}

/** One table for each thing that grows: a row a system, a column a count. @param {readonly Contest[]} contests @returns {string[]} */
function growthOf(contests) {
  const tables = growths.flatMap(({ noun, title }) => {
    const steps = contests.filter(({ name }) => noun.test(name.replace(/^\d+ /, "")));
    const names = [...new Set(steps.flatMap(({ systems }) => systems.map(({ name }) => name)))];
    const rows = names.map((name) => [
      nameOf(name),
      ...steps.map(({ systems }) => {
        const cpu = systems.find((each) => each.name === name)?.cpu;
        return cpu === undefined ? "–" : toShort(cpu.median);
      }),
    ]);
    if (steps.length === 0) return [];
    return [
      toTable([
        [`µs CPU a call, by ${title}`, ...steps.map(({ name }) => name.split(" ")[0] ?? "")],
        ...rows,
      ]),
    ];
  });
  return tables.length === 0 ? [] : ["### How cost grows", ...tables];
}

/** @param {Report["goals"]} goals @returns {string[]} */
function goalsOf(goals) {
  if (goals.length === 0) return [];
  const rows = goals.map(({ what, bound, reached, isMet, remark }) => [
    what,
    bound,
    reached === null ? "–" : toShort(reached),
    isMet ? "met" : `**missed**${remark === "" ? "" : `; ${remark}`}`,
  ]);
  return ["### Goals", toTable([["", "goal", "reached", ""], ...rows])];
}

/** @param {string} name */
function nameOf(name) {
  return name === "junctor" ? "**junctor**" : name;
}

/** The first row is the head. @param {readonly (readonly string[])[]} rows */
function toTable([head = [], ...rows]) {
  const toLine = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [toLine(head), `|${head.map(() => "---|").join("")}`, ...rows.map(toLine)].join("\n");
}
