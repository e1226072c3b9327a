// Runs the tests that docs/evidence/compatibility.md tells of, and writes the page. The exit code is 1 when one of them failed.
//
//   node proof/conformance/compatibility.mjs
//   node proof/conformance/compatibility.mjs --cluster [PART]    clients over HTTP come to three replicas behind a balancer; writes no page.
//                                                      PART is the beginning of the names of cells: "HTTP to stdio 2025-11-25"

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reportSetupError, root, setup } from "../../scripts/setup.mjs";

try {
  setup();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}
if (process.argv.includes("--cluster")) process.exit(runThroughCluster());
const { runnerImport } = await import("vite");

const folder = mkdtempSync(join(tmpdir(), "junctor-compatibility-"));
try {
  const tests = runTests(join(folder, "result.json"));
  const passed = new Set(tests.filter(({ status }) => status === "passed").map(({ name }) => name));
  // The page is made by what the tests are made from, which is TypeScript.
  const { module } = await runnerImport(join(root, "test/compatibility/page.ts"), {
    root,
    configFile: false,
  });
  const { renderPage } = module;
  const page = renderPage((name) => passed.has(name));
  writeFileSync(join(root, "docs/evidence/compatibility.md"), page);

  const failed = tests.filter(({ status }) => status !== "passed");
  for (const { name, status } of failed) console.error(`${status}: ${name}`);
  console.log(`docs/evidence/compatibility.md: ${passed.size} passed, ${failed.length} failed`);
  if (failed.length > 0 || page !== renderPage(() => true)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function runThroughCluster() {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const part = process.argv[process.argv.indexOf("--cluster") + 1] ?? "HTTP to ";
  const args = [vitest, "run", "test/compatibility/compatibility.test.ts", "-t", `^${part}`];
  const env = { ...process.env, JUNCTOR_COMPATIBILITY: "cluster" };
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" }).status ?? 1;
}

function runTests(file) {
  const files = ["test/compatibility/compatibility.test.ts", "test/bridge/official.test.ts"];
  const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${file}`];
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  spawnSync(process.execPath, [vitest, "run", ...reporters, ...files], { cwd: root, stdio: "inherit" });
  const { testResults } = JSON.parse(readFileSync(file, "utf8"));
  return testResults.flatMap(({ assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status }) => ({
      // What vitest fills in has quotes around it.
      name: [...ancestorTitles, title].join(" > ").replaceAll("'", ""),
      status,
    })),
  );
}
