// `npm test`: set-up, format, lint, types, and every test that is not slow. The last line is "N passed, M failed", where a static
// check counts as one and a test as one.
//
//   npm test                    all of it
//   npm run proof -- slow       the slow tests alone; CI runs them too
//   npm run check               the quick loop: static checks and the unit project, with a tenth of the runs of a property
//   npm test -- core/src/json   only the tests whose path contains core/src/json (after all static checks)
//   npm test -- --tests         without the static checks, which are the same for every version of Node

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { root, setup, SetupError } from "./setup.mjs";

const isQuick = process.argv.includes("--quick");
const isSlow = process.argv.includes("--slow");
const isTestsOnly = isSlow || process.argv.includes("--tests");
const chosen = process.argv
  .slice(2)
  .filter((argument) => !["--quick", "--slow", "--tests"].includes(argument));

const typesCache = join(root, "node_modules/.cache/types.json");

const total = { passed: 0, failed: 0, tests: 0, unstable: 0 };
try {
  if (runSetup()) {
    const checks = [
      () => runCheck("format", "oxfmt/bin/oxfmt", ["--check"]),
      () => runCheck("lint", "oxlint/bin/oxlint", []),
      // What did not change since the last check is not checked again.
      () =>
        runCheck("types", "typescript/bin/tsc", [
          "-p",
          "tsconfig.json",
          "--incremental",
          "--tsBuildInfoFile",
          typesCache,
        ]),
      () => runCheck("page", "typescript/bin/tsc", ["-p", "packages/page/tsconfig.json"]),
    ];
    const projects = isSlow ? ["slow"] : ["unit", ...(isQuick && chosen.length === 0 ? [] : ["journeys"])];
    await Promise.all([...(isTestsOnly ? [] : checks.map((check) => check())), runTests(projects)]);
    if (total.tests === 0)
      report("tests", performance.now(), { passed: 0, failed: 1 }, "No test was found.\n");
  }
} finally {
  const unstable = total.unstable === 0 ? "" : `, ${total.unstable} unstable files`;
  console.log(`${total.passed} passed, ${total.failed} failed${unstable}`);
  process.exitCode = total.failed === 0 ? 0 : 1;
}

/** Returns false when there is no point in going on. A failed build does not hide the other checks. */
function runSetup() {
  const started = performance.now();
  try {
    setup();
    report("setup", started, { passed: 0, failed: 0 });
    return true;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    report("setup", started, { passed: 0, failed: 1 }, `${error.output}${error.message}\n`);
    return error.step === "build";
  }
}

async function runCheck(name, bin, args) {
  const started = performance.now();
  const { code, output } = await runNode(bin, args);
  report(name, started, code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }, output);
}

async function runTests(projects) {
  const started = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "junctor-test-"));
  try {
    const file = join(folder, "result.json");
    const run = await runVitest(projects, chosen, file);
    const suspects = await repeatAlone(projects, run, file);
    total.tests += run.passed + run.failed;
    report("tests", started, run, run.output);
    for (const suspect of suspects)
      console.log(`UNSTABLE  ${suspect} failed among the others and passed alone`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runVitest(projects, files, resultFile) {
  const { code, output } = await runNode("vitest/vitest.mjs", [
    "run",
    "--passWithNoTests",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${resultFile}`,
    ...projects.map((project) => `--project=${project}`),
    ...files,
  ]);
  return { ...countTests(code, resultFile), output };
}

/**
 * Runs the files with failures once more, with nothing beside them. A test that passes then depends on the load of the machine:
 * it counts as passed, and its file is named so that somebody mends it. Returns these files. No test may have a bound by the clock, but the product
 * has: a server has 30 s to start, a held question 5 s to find its call. On a starved machine such a time runs out, and a call that a test
 * counts on is refused.
 */
async function repeatAlone(projects, run, resultFile) {
  const { files } = run;
  if (files.length === 0 || files.length > 3) return [];
  const alone = await runVitest(projects, [...files, "--no-file-parallelism"], resultFile);
  if (alone.failed > 0) return [];
  run.passed += run.failed;
  run.failed = 0;
  process.stdout.write(run.output);
  return files;
}

/** A file that does not load, and an exit code no test accounts for (an unhandled rejection), are failures too. */
function countTests(code, file) {
  let result = { numPassedTests: 0, numFailedTests: 0, testResults: [] };
  try {
    result = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  const broken = result.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  );
  const failed = result.numFailedTests + broken.length;
  const files = result.testResults
    .filter(({ status }) => status === "failed")
    .map(({ name }) => relative(root, name));
  return { passed: result.numPassedTests, failed: failed === 0 && code !== 0 ? 1 : failed, files };
}

function report(name, started, { passed, failed }, output = "") {
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) process.stdout.write(output.endsWith("\n") ? output : `${output}\n`);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const counts = name === "tests" ? `  ${passed + failed} run` : "";
  console.log(`${failed === 0 ? "ok    " : "FAILED"}  ${name.padEnd(6)}  ${seconds} s${counts}`);
}

function runNode(bin, args) {
  const child = spawn(process.execPath, [join(root, "node_modules", bin), ...args], {
    cwd: root,
    env: {
      ...process.env,
      ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
      ...(isQuick ? {} : { JUNCTOR_RUNS: "unit" }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => (output += chunk));
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code: code ?? signal, output }));
  });
}
