import { medianOf } from "./second-start.mjs";
import { findFaults } from "./verdict.mjs";

/** @typedef {import("./verdict.mjs").Report} Report */
/** @typedef {import("./cells.mjs").Cell} Cell */

/**
 * docs/evidence/field.md: what a run found.
 *
 * @param {Report} report
 */
export function renderPage(report) {
  const faults = findFaults(report);
  return `${[
    "<!-- Made by `npm run proof -- field`. Change proof/field/lib/page.mjs, then run it. -->",
    "# In the field",
    intro(report),
    "## Result",
    summary(report, faults),
    "## Servers",
    serversText(report),
    serverTable(report),
    ...leftOutOf(report),
    ...troubleOf(report),
    "## Clients",
    clientsText(report),
    cellTable(report),
    "### The clients",
    clientTable(report),
    "### The calls",
    `Each client makes these ${report.calls.length} calls, one after another, and the result of each is checked. They are made at
the servers by themselves, too. A server that is not among them has no tool that works without its service.`,
    report.calls.map((name) => `\`${name}\``).join(", ") + ".",
  ].join("\n\n")}\n`;
}

/** @param {Report} report */
function intro({ servers, clients, calls }) {
  return `\`npm run proof -- field\` puts ${servers.length} servers from npm behind one gateway, as people do: one config, each server started by
\`npx -y\`, with keys that are not real. Then ${clients.length} clients list all tools and call ${calls.length} of them, over HTTP and over
\`serve --stdio\`. The run writes this page. It needs Linux and an npm registry, and is no part of \`npm test\`;
[proof/field/README.md](../../proof/field/README.md) tells how it works and how to run parts of it.

What the words mean here:

- **Cold, of a server:** the folder where npx installs is empty, so each server is unpacked and installed when the gateway starts it. What
  npm downloaded in an earlier run is kept.
- **Warm, of a server:** npx has installed it before.
- **Cold, of a client:** the gateway remembers nothing, because its cache folder is new. The servers are installed.
- **Warm, of a client:** the gateway was started and stopped once with the same cache folder, and remembers what its servers listed.
- **The config** is [proof/field/servers.json](../../proof/field/servers.json). Its last 28 servers, from \`shrimp\` on, were chosen after the gateway worked with the others, to see
  whether it works with what it was not tried with. It sets \`firstListMs\` to 55 s: so many servers need longer than the default of
  20 s on two cores, and most clients wait 60 s for an answer.
- **Over HTTP** two clients come at once, as soon as the port of a gateway that has just been started is open; the next two have a gateway
  of their own. **Over stdio** each client starts a gateway.`;
}

/** @param {Report} report @param {readonly string[]} faults */
function summary(report, faults) {
  const { date, node, npm, clientNode, machine, seconds, servers, wanted, left } = report;
  const where = `${date}, ${machine}, in ${toMinutes(seconds)}. Gateway and servers on Node ${node} with npm ${npm}, clients on Node ${clientNode}.`;
  const up = servers.filter(({ listed }) => listed > 0).length;
  const cells = report.cells.filter((cell) => isFine(cell, report)).length;
  const lines = [
    `- ${up} of ${servers.length} servers came up, with ${wanted.length} tools.`,
    `- ${cells} of ${report.cells.length} combinations of client, transport and cache listed all of them and made all calls.`,
    ...report.secondStarts.map(toSecondStart),
    `- Processes after the run: **${left}**.`,
  ];
  const verdict =
    faults.length === 0
      ? []
      : ["What is not as it should be:", faults.map((each) => `- ${toLine(each)}`).join("\n")];
  return [where, lines.join("\n"), ...verdict].join("\n\n");
}

/** @param {import("./second-start.mjs").SecondStart} start */
function toSecondStart({ transport, listedMs, cpuMs, idle }) {
  const slowest = toSeconds(Math.max(...listedMs), 2);
  const used = toSeconds(medianOf(cpuMs), 2);
  return `- Second start, over ${transport}: a bare client has all tools **${toSeconds(medianOf(listedMs), 2)}** after the start of the gateway's
  process, which used ${used} of processor time for that (medians of ${listedMs.length} starts, ${idle} of them on an idle machine; slowest ${slowest}).`;
}

/** @param {Report} report */
function serversText({ isNpxCold, bringUpSeconds }) {
  const first = isNpxCold
    ? `A gateway that had every server to install had all of them up after ${toMinutes(bringUpSeconds)}.`
    : `A gateway that remembered nothing had all servers up after ${toMinutes(bringUpSeconds)}; npx had them installed.`;
  return `${first} *Up after* is counted from the start of that gateway, which starts a few servers at a time. *Starts again* is how
often a server went down before it came up. *Warm* is how long it took to connect once it was installed, by \`junctor check\`, with the
others starting beside it. *Own* is what a server lists without a gateway and without any validation, to a client that declares what the gateway does;
tools for views alone are not counted. A tool of it is *listed*, perhaps *mended* so that clients accept it, or *left out*.`;
}

/** @param {Report} report */
function serverTable({ servers, isNpxCold }) {
  const head = ["server", "package", "speaks", "own", "listed", "mended", "left out"];
  const times = [isNpxCold ? "cold: up after" : "up after", "starts again", "warm"];
  const rows = servers.map((server) => [
    server.name,
    `\`${server.package}\``,
    server.revision ?? "–",
    String(server.own),
    String(server.listed),
    toCount(server.mended),
    toCount(server.leftOut.length),
    toSeconds(server.coldMs),
    toCount(server.downs),
    toSeconds(server.warmMs),
  ]);
  return toTable([[...head, ...times], ...rows]);
}

/** @param {Report} report @returns {string[]} */
function leftOutOf({ servers }) {
  const lines = servers
    .filter(({ leftOut }) => leftOut.length > 0)
    .map(({ name, leftOut }) => `- ${name}: ${leftOut.map(toLine).join("; ")}`);
  return lines.length === 0 ? [] : ["Left out:", lines.join("\n")];
}

/** @param {Report} report @returns {string[]} */
function troubleOf({ servers }) {
  const lines = servers.flatMap(({ name, trouble }) =>
    trouble === undefined ? [] : [`- ${name}: ${toLine(trouble)}`],
  );
  return lines.length === 0 ? [] : ["What else `junctor check` says is wrong with them:", lines.join("\n")];
}

/** @param {Report} report */
function clientsText({ wanted }) {
  return `*First list* is how many of the ${wanted.length} tools the first list had, and how long after the client's start it came. *Listed* is
how many there were in the end: a client lists again until it has all, for at most three minutes, but with a warm cache the first list has
to be complete. Seconds are those of the whole visit, with connecting, calls and hanging up. Clients share the cores with the
starting servers. *Left* counts processes after the gateway's end. A tool that is named has been listed beside the others: a server may
have tools for clients that can do more.`;
}

/** @param {Report} report */
function cellTable(report) {
  const { wanted, clients } = report;
  const head = ["client", "transport", "cache", "first list", "listed", "calls", "seconds", "left", ""];
  const rows = clients.flatMap(({ name, title, transports }) => [
    ...report.cells
      .filter(({ client }) => client === name)
      .map((cell) => [
        title,
        cell.transport,
        cell.cache,
        `${cell.report.firstListed ?? 0} (${toSeconds(cell.report.firstListMs)})`,
        `${wanted.length - cell.missing.length} of ${wanted.length}${toExtra(cell.extra)}`,
        `${cell.report.calls.filter(({ ok }) => ok).length} of ${cell.calls}`,
        toSeconds(cell.report.totalMs),
        String(cell.left),
        isFine(cell, report) ? "ok" : "**not ok**",
      ]),
    ...(transports.includes("stdio")
      ? []
      : [[title, "stdio", "", "reaches servers by URL only", "", "", "", "", ""]]),
  ]);
  return toTable([head, ...rows]);
}

/** @param {Report} report */
function clientTable({ clients }) {
  const rows = clients.map((client) => [
    client.title,
    `\`${client.package}\` ${client.version}`,
    client.remark ?? "",
  ]);
  return toTable([["client", "package", ""], ...rows]);
}

/** @param {Cell} cell @param {Report} report */
function isFine(cell, report) {
  return (
    findFaults({ ...report, problems: [], servers: [], secondStarts: [], cells: [cell], left: 0 }).length ===
    0
  );
}

/** @param {readonly string[]} extra */
function toExtra(extra) {
  return extra.length === 0 ? "" : `, and ${extra.map((name) => `\`${name}\``).join(", ")}`;
}

/** @param {number | undefined} ms */
function toSeconds(ms, digits = 1) {
  return ms === undefined ? "–" : `${(ms / 1000).toFixed(digits)} s`;
}

/** @param {number} seconds */
function toMinutes(seconds) {
  return seconds < 100 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Nothing is shown as nothing, so that the rest is seen. @param {number} count */
function toCount(count) {
  return count === 0 ? "" : String(count);
}

/** @param {string} text */
function toLine(text) {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("<", "&lt;");
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

/** The first row is the head. @param {readonly (readonly string[])[]} rows */
function toTable([head = [], ...rows]) {
  const toRow = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [toRow(head), `|${head.map(() => "---|").join("")}`, ...rows.map(toRow)].join("\n");
}
