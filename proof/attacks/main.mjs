// `npm run proof -- attacks`: attacks and faults at full scale; writes docs/evidence/reliability.json and docs/evidence/reliability.md.
//
//   --short        at most three minutes, for CI; writes nothing
//   --only A,B     some rows; their figures replace the earlier ones
//   --seed N       the seed of everything that is random; printed by every run
//   --out FOLDER   writes there instead of docs/evidence/
//   --replay N     runs one seed of the simulation and prints its steps
//   --list         names of the rows
//   --page         writes the page from the figures there are, and runs nothing
//   --merge FILE   the same, with the rows of another reliability.json in place of the earlier ones

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../scripts/setup.mjs";
import { bundle, removeBundle, rows as names } from "./lib/bundle.mjs";
import { mergeResults, renderPage } from "./lib/page.mjs";
import { loadRow, runRow } from "./lib/run-row.mjs";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    page: { type: "boolean", default: false },
    merge: { type: "string", multiple: true, default: [] },
    only: { type: "string" },
    replay: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    out: { type: "string", default: join(root, "docs", "evidence") },
  },
});
if (values.replay !== undefined) {
  Object.assign(values, { only: "simulation", short: true, seed: values.replay });
  process.env["SCORECARD_REPLAY"] = "yes";
}
const chosen = values.only?.split(",") ?? names;
const unknown = chosen.find((name) => !names.includes(name));
if (unknown !== undefined) {
  console.error(`There is no row ${unknown}. The rows are ${names.join(", ")}.`);
  process.exit(2);
}
process.exitCode = await main();

async function main() {
  if (values.list) console.log(names.join("\n"));
  const merged = values.merge.map((file) => JSON.parse(readFileSync(file, "utf8")).rows);
  const isWritten = values.page || merged.length > 0;
  if (isWritten) write(Object.assign({}, ...merged));
  if (values.list || isWritten) return 0;
  process.on("exit", removeBundle);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  await bundle();
  const scale = values.short ? "short" : "full";
  console.log(`scorecard: ${scale}, seed ${values.seed}`);
  let red = 0;
  for (const name of chosen) {
    const { title, how, limitMinutes, isInShort } = await loadRow(name);
    if (values.short && !isInShort && values.only === undefined) continue;
    const { lines, seconds } = await runRow(name, { scale, seed: values.seed, limitMinutes });
    for (const line of lines) print(name, line);
    console.log(`     ${name}: ${seconds.toFixed(1)} s`);
    red += lines.filter(({ isMet }) => !isMet).length;
    // After each row: a run that is stopped keeps what it has.
    if (!values.short) write({ [name]: { title, how, lines, seconds, ...environment() } });
  }
  console.log(red === 0 ? "scorecard: every bound is met" : `scorecard: ${red} bounds are not met`);
  return red === 0 ? 0 : 1;
}

function print(name, { what, count, bound, figure, isMet }) {
  console.log(`${isMet ? "ok  " : "RED "} ${name}: ${what} · ${count} · bound ${bound} · ${figure}`);
}

function write(rows) {
  const file = resolve(values.out, "reliability.json");
  const earlier = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { rows: {} };
  const all = mergeResults(earlier, rows, names);
  writeFileSync(file, `${JSON.stringify(all, undefined, 2)}\n`);
  writeFileSync(resolve(values.out, "reliability.md"), renderPage(all, names));
}

function environment() {
  const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" });
  const all = cpus();
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " "),
    commit: commit.status === 0 ? commit.stdout.trim() : "unknown",
    node: process.versions.node,
    machine: `${all.length} cores of ${all[0]?.model.trim() ?? "an unknown kind"}`,
  };
}
