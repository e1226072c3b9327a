import { parseArgs } from "node:util";
import { listenHttp } from "junctor";
import { createEverythingServer } from "./everything-server.ts";
import { type Check, openSuite, type ScenarioResult, type Suite, type SuiteRevision } from "./suite.ts";

/** Scenarios the suite runs for a revision but does not require, which hold here nevertheless. */
const alsoRequired: Readonly<Record<SuiteRevision, readonly string[]>> = {
  "2026-07-28": ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"],
  "2025-11-25": ["server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"],
};

const { values } = parseArgs({
  options: { url: { type: "string" }, revision: { type: "string", multiple: true } },
});
const revisions = (Object.keys(alsoRequired) as SuiteRevision[]).filter(
  (revision) => values.revision?.includes(revision) ?? true,
);
const total = { passed: 0, failed: 0 };
try {
  using suite = openSuite();
  if (values.url === undefined) {
    await using listener = await listenHttp(createEverythingServer(), { port: 0 });
    // By name: the suite tests the defence against DNS rebinding only where it knows the host to be this one.
    await runAll(suite, `http://localhost:${listener.port}/mcp`);
  } else {
    await runAll(suite, values.url);
  }
} catch (error) {
  total.failed++;
  console.error(error);
} finally {
  console.log(`${total.passed} passed, ${total.failed} failed`);
  process.exitCode = total.failed === 0 ? 0 : 1;
}

async function runAll(suite: Suite, url: string): Promise<void> {
  if (revisions.length === 0)
    throw new Error(`The suite knows the revisions ${Object.keys(alsoRequired).join(" and ")}`);
  console.log(`Official MCP conformance suite ${suite.version} against ${url}`);
  for (const revision of revisions) {
    const started = performance.now();
    const results = new Map((await suite.run(url, revision)).map((result) => [result.scenario, result]));
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`\n${revision}  (${seconds} s)`);
    report("required", suite.requirements(revision), results);
    report("also", alsoRequired[revision], results);
  }
  console.log();
}

function report(
  title: string,
  scenarios: readonly string[],
  results: ReadonlyMap<string, ScenarioResult>,
): void {
  const failed = scenarios.filter((scenario) => !hasPassed(results.get(scenario)));
  const passed = scenarios.length - failed.length;
  total.passed += passed;
  total.failed += failed.length;
  console.log(`  ${title.padEnd(8)}  ${passed}/${scenarios.length}`);
  for (const scenario of failed) {
    console.log(`    FAILED  ${scenario}`);
    const objections = results.get(scenario)?.checks.filter(isObjection) ?? [];
    for (const { id, status, errorMessage, description } of objections) {
      console.log(`            ${status.toLowerCase()}: ${id}: ${errorMessage ?? description ?? ""}`);
    }
    if (objections.length === 0)
      console.log("            it did not run to its end, or found nothing to check");
  }
}

/** A warning is a failure here, and so is a scenario that was left out or found nothing to check. */
function hasPassed(result: ScenarioResult | undefined): boolean {
  return (
    result !== undefined &&
    !result.checks.some(isObjection) &&
    result.checks.some((check) => check.status === "SUCCESS")
  );
}

function isObjection({ status }: Check): boolean {
  return status === "FAILURE" || status === "WARNING";
}
