import { toShort } from "./table.mjs";

/** @typedef {import("./report.mjs").Report} Report */
/** @typedef {{ name: string, kind: "ours" | "limit" | "bar", value: number, min: number, max: number, times?: number | undefined }} Bar times: of Junctor's */
/** @typedef {{ title: string, unit: string, bars: Bar[] }} Panel */

const width = 980;
const columns = 2;
const gutter = 28;
const panelWidth = (width - gutter * (columns + 1)) / columns;
const labelWidth = 116;
const valueWidth = 96;
const barHeight = 15;
const barGap = 5;
const titleHeight = 40;
const headHeight = 64;

/** The contests worth a picture, in its order. */
const pictured = [
  { section: "servers", name: "small call, legacy", title: "Server over HTTP, 2025-11-25" },
  { section: "servers", name: "small call, modern", title: "Server over HTTP, 2026-07-28" },
  { section: "servers", name: "20 progress frames, legacy", title: "20 progress frames, 2025-11-25" },
  { section: "servers", name: "500 tools, legacy", title: "tools/list of 500 tools, 2025-11-25" },
  { section: "gateways", name: "small call, 1 stdio upstream, legacy", title: "Gateway, stdio upstream" },
  { section: "gateways", name: "small call, 1 http upstream, legacy", title: "Gateway, HTTP upstream" },
  { section: "gateways", name: "1 MB result, 1 stdio upstream, legacy", title: "Gateway, 1 MB result" },
  { section: "clients", name: "16 in flight", title: "Client, 16 calls in flight" },
  { section: "stdio", name: "32 in flight, legacy", title: "Server over stdio, 32 calls in flight" },
];
/** How cost grows, of Junctor and the limit: contests that are named by a count and this. */
const grown = [
  { noun: /^tools?$/, title: "Growth: tools of a server" },
  { noun: /^open streams?$/, title: "Growth: open streams of a server" },
  { noun: /^stdio upstreams?$/, title: "Growth: stdio upstreams of a gateway" },
];

// One picture for light and dark pages: an image cannot see the page, but it can see what the reader prefers.
const style = `
  .page { fill: #ffffff } text { font: 12px system-ui, sans-serif; fill: #24292f }
  .head { font-size: 18px; font-weight: 600 } .title { font-weight: 600; font-size: 13px } .soft { fill: #656d76; font-size: 11px }
  .bar { fill: #a8b1bb } .ours { fill: #1a7f64 } .limit { fill: #d7dce1 } .span { stroke: #24292f; stroke-opacity: .55 }
  .axis { stroke: #8c959f; stroke-opacity: .5 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .soft { fill: #9198a1 } .bar { fill: #5b6570 } .ours { fill: #3fb68b }
    .limit { fill: #454c55 } .span { stroke: #e6edf3 }
  }`;

/**
 * One bar a system, by contest: CPU a call, or ms to the first answer, with the least and the most of the rounds.
 *
 * @param {Report} report
 * @param {string} machine
 */
export function toSvg(report, machine) {
  const bottoms = Array.from({ length: columns }, () => headHeight);
  const drawn = panelsOf(report).map((panel) => {
    const top = Math.min(...bottoms);
    const column = bottoms.indexOf(top);
    bottoms[column] = top + heightOf(panel) + gutter / 2;
    return drawPanel(panel, gutter + column * (panelWidth + gutter), top);
  });
  const height = Math.max(...bottoms);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="CPU time a call, Junctor and its peers">`,
    `<style>${style}\n</style><rect class="page" width="${width}" height="${height}" rx="8"/>`,
    `<text class="head" x="${gutter}" y="32">CPU time a call, and time to the first answer: shorter is better</text>`,
    `<text class="soft" x="${gutter}" y="50">${escape(`median, with the least and the most of the rounds; “bare” is the limit: no protocol, no checks · ${machine}`)}</text>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

/** @param {Report} report @returns {Panel[]} */
function panelsOf({ contests, startup }) {
  const chosen = pictured.map(({ section, name, title }) => {
    const contest = contests.find((each) => each.section === section && each.name === name);
    const figures = (contest?.systems ?? []).map((system) => ({ name: system.name, figure: system.cpu }));
    return { title, unit: "µs", bars: toBars(figures) };
  });
  const races = startup.map(({ name, systems }) => ({
    title: `Start: ${name.replace(", ms to", " to")}`,
    unit: "ms",
    bars: toBars(systems.map(({ name, ms }) => ({ name, figure: ms }))),
  }));
  const growth = grown.map(({ noun, title }) => ({ title, unit: "µs", bars: growthBars(contests, noun) }));
  return [...chosen, ...races, ...growth].filter(({ bars }) => bars.length > 0);
}

/** @param {readonly { name: string, figure?: import("./report.mjs").Spread | undefined }[]} figures @returns {Bar[]} */
function toBars(figures) {
  const ours = figures.find(({ name }) => name === "junctor")?.figure?.median;
  return figures.flatMap(({ name, figure }) => {
    if (figure === undefined) return [];
    const kind = name.startsWith("junctor") ? "ours" : name === "bare" ? "limit" : "bar";
    const times = ours === undefined || name === "junctor" ? undefined : figure.median / ours;
    return [{ name, kind, value: figure.median, min: figure.min, max: figure.max, times }];
  });
}

/** @param {Report["contests"]} contests @param {RegExp} noun */
function growthBars(contests, noun) {
  return contests.flatMap(({ section, name, systems }) => {
    const [count = "", ...rest] = name.split(" ");
    if (section !== "growth" || !noun.test(rest.join(" "))) return [];
    const pair = systems.filter((system) => system.name === "junctor" || system.name === "bare");
    const bars = toBars(pair.map((system) => ({ name: system.name, figure: system.cpu })));
    return bars.map((bar) => (bar.name === "junctor" ? { ...bar, name: `junctor, ${count}` } : bar));
  });
}

/** @param {Panel} panel */
function heightOf({ bars }) {
  return titleHeight + bars.length * (barHeight + barGap);
}

/** @param {Panel} panel @param {number} left @param {number} top */
function drawPanel({ title, unit, bars }, left, top) {
  const longest = Math.max(...bars.map(({ max }) => max));
  const x = left + labelWidth;
  const scale = (panelWidth - labelWidth - valueWidth) / longest;
  const drawn = bars.map((bar, index) => {
    const y = top + titleHeight - 12 + index * (barHeight + barGap);
    const middle = y + barHeight / 2;
    const times = bar.times === undefined ? "" : ` · ${toShort(bar.times)}x`;
    return [
      `<text x="${x - 8}" y="${middle + 4}" text-anchor="end">${escape(bar.name)}</text>`,
      `<rect class="${bar.kind}" x="${x}" y="${y}" width="${round(bar.value * scale)}" height="${barHeight}" rx="2"/>`,
      `<line class="span" x1="${round(x + bar.min * scale)}" x2="${round(x + bar.max * scale)}" y1="${middle}" y2="${middle}"/>`,
      `<text class="soft" x="${round(x + bar.max * scale + 6)}" y="${middle + 4}">${toShort(bar.value)} ${unit}${times}</text>`,
    ].join("");
  });
  const bottom = top + heightOf({ title, unit, bars }) - 14;
  return [
    `<g><text class="title" x="${left}" y="${top + 14}">${escape(title)}</text>`,
    `<line class="axis" x1="${x}" x2="${x}" y1="${top + titleHeight - 16}" y2="${bottom}"/>`,
    ...drawn,
    "</g>",
  ].join("\n");
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}

/** @param {string} text */
function escape(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
