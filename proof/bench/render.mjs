// `node proof/bench/render.mjs [bench.json]`: the plot and the tables of docs/ once more, from what a run has written.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { writePage, writeReport } from "./lib/report.mjs";

const docs = fileURLToPath(new URL("../../docs", import.meta.url));
const text = readFileSync(process.argv[2] ?? `${docs}/bench.json`, "utf8");
const report = /** @type {import("./lib/report.mjs").Report} */ (JSON.parse(text));
writeReport(report, docs);
writePage(report, `${docs}/performance.md`);
