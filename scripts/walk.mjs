// `npm run walk`: the files of src that a call passes through, in order of first entry, from a real run of three calls.
// A call passes through a file when a function of the file runs; loading the file does not count.
//
//   npm run walk              the files of each journey, and their counts beside the goals
//   npm run walk -- --json    the same as JSON
//   npm run walk -- --write   writes the journeys to docs/architecture.md and lowers the limits in test/walk.json
//   npm run walk -- --check   exit code 1 when a count is above its limit or docs/architecture.md is out of date

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";
import { isPageTrue, writePage } from "./walk/page.mjs";
import { walk } from "./walk/walk.mjs";

const limitsPath = join(root, "test/walk.json");
const has = (flag) => process.argv.includes(`--${flag}`);

const walked = await walk();
if (has("json")) console.log(JSON.stringify(walked, undefined, 2));
else if (has("check")) check();
else print();
if (has("write")) write();

function print() {
  for (const { title, files } of walked)
    console.log(`${title}\n\n${files.map((file) => `  ${file}`).join("\n")}\n`);
  for (const { title, all, count, goal } of walked)
    console.log(`${String(count).padStart(3)} files (goal ${goal}), ${all} with json and async: ${title}`);
}

function check() {
  const limits = JSON.parse(readFileSync(limitsPath, "utf8"));
  for (const { name, count, files } of walked) {
    if (count > limits[name])
      complain(`the journey "${name}" passes ${count} files, not ${limits[name]}: ${files.join(" ")}`);
  }
  if (!isPageTrue(walked)) complain("docs/architecture.md is out of date: run npm run walk -- --write");
}

function complain(text) {
  console.error(text);
  process.exitCode = 1;
}

function write() {
  writePage(walked);
  const limits = JSON.parse(readFileSync(limitsPath, "utf8"));
  for (const { name, count } of walked) limits[name] = Math.min(limits[name], count);
  writeFileSync(limitsPath, `${JSON.stringify(limits, undefined, 2)}\n`);
}
