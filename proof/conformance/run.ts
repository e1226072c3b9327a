import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { listenHttp } from "junctor";
import { createEverythingServer } from "./everything-server.ts";
import {
  isObjection,
  openSuite,
  type ScenarioResult,
  type Side,
  type Suite,
  type SuiteRevision,
} from "./suite.ts";
import {
  describeServer,
  everyThrough,
  inexpressible,
  isBridged,
  parseThrough,
  startThrough,
  type Through,
} from "./through.ts";

/** Those of tasks (SEP-2663), but for `tasks-status-notifications`, which the suite always skips. */
const taskScenarios = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];

/** Those of skills (SEP-2640), which the suite runs by name alone. */
const skillScenarios: Readonly<Record<Side, readonly string[]>> = {
  server: ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"],
  client: [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
  ],
};

/** Scenarios the suite runs for a revision but does not require, which hold here nevertheless. */
const alsoRequired: Readonly<Record<SuiteRevision, Readonly<Record<Side, readonly string[]>>>> = {
  "2026-07-28": {
    server: ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"],
    client: ["json-schema-2020-12-preservation"],
  },
  "2025-11-25": {
    server: ["server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"],
    client: ["json-schema-2020-12-preservation"],
  },
};

/** Scenarios of extensions to authorization, and of clients that meet servers of 2025-03-26; of no revision in particular. */
const clientExtensions = [
  "auth/2025-03-26-oauth-metadata-backcompat",
  "auth/2025-03-26-oauth-endpoint-fallback",
  "auth/client-credentials-jwt",
  "auth/client-credentials-basic",
  "auth/enterprise-managed-authorization",
];

/** How many gateways the suite is run through at the same time. */
const throughsAtOnce = 4;

const clientModule = fileURLToPath(new URL("client.js", import.meta.url));

const { values } = parseArgs({
  options: {
    url: { type: "string" },
    revision: { type: "string", multiple: true },
    side: { type: "string", multiple: true },
    scenario: { type: "string", multiple: true },
    through: { type: "string" },
    serves: { type: "string" },
    "sdk-v2": { type: "boolean", default: false },
    gateway: { type: "boolean", default: false },
  },
});
const throughs = values.gateway ? everyThrough : parseThrough(values);
const revisions = (Object.keys(alsoRequired) as SuiteRevision[]).filter(
  (revision) => values.revision?.includes(revision) ?? true,
);
// Somebody else's server says nothing about our client.
const sides = (["server", "client"] as const).filter(
  (side) =>
    values.side?.includes(side) ?? (side === "server" || (values.url === undefined && throughs.length === 0)),
);
const total = { passed: 0, failed: 0 };
try {
  if (revisions.length === 0)
    throw new Error(`The suite knows the revisions ${Object.keys(alsoRequired).join(" and ")}`);
  if (sides.length === 0) throw new Error("The suite knows the sides server and client");
  using suite = openSuite();
  console.log(`Official MCP conformance suite ${suite.version}`);
  await runThroughs(suite, [...throughs]);
  if (throughs.length > 0) {
    // Nothing else was asked for.
  } else if (values.url === undefined) {
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

/** Several gateways at a time: the scenarios of servers mostly wait. Each report is printed as a whole. */
async function runThroughs(suite: Suite, queue: Through[]): Promise<void> {
  const runNext = async (): Promise<void> => {
    for (let through = queue.shift(); through !== undefined; through = queue.shift()) {
      const lines = [`\nThrough a gateway, ${through.transport}, ${describeServer(through)}`];
      // A gateway that is up already, such as several replicas behind a balancer.
      await using gateway = values.url === undefined ? await startThrough(through) : undefined;
      await runAll(suite, values.url ?? gateway!.url, { through, print: (line) => lines.push(line) });
      console.log(lines.join("\n"));
    }
  };
  await Promise.all(Array.from({ length: throughsAtOnce }, runNext));
}

interface RunOptions {
  readonly through?: Through;
  readonly print?: (line: string) => void;
}

async function runAll(
  suite: Suite,
  url: string,
  { through, print = (line) => console.log(line) }: RunOptions = {},
): Promise<void> {
  for (const revision of revisions.filter((candidate) => isBridged(candidate, through))) {
    for (const side of sides) {
      const reasons = through === undefined ? {} : inexpressible(through, revision);
      const isExpressible = (scenario: string): boolean => !Object.hasOwn(reasons, scenario);
      const required = suite
        .requirements(revision, side)
        .filter((scenario) => isExpressible(scenario) && isWanted(scenario));
      // The server of the official SDK has no tasks, and a legacy one of ours has none either.
      const hasTasks = through === undefined || (through.kit === "junctor" && through.serves !== "legacy");
      const tasks = revision === "2026-07-28" && side === "server" && hasTasks ? taskScenarios : [];
      // The official SDK has no skills.
      const skills = through?.kit === "sdk-v2" ? [] : skillScenarios[side];
      const also = [...alsoRequired[revision][side].filter(isExpressible), ...tasks, ...skills].filter(
        isWanted,
      );
      const started = performance.now();
      const found =
        side === "server"
          ? [
              ...(await suite.runServer(url, revision)),
              ...(await runExtensions(suite, url, skills, revision)),
            ]
          : await runClients(suite, [...required, ...also], revision);
      const results = new Map(found.map((result) => [result.scenario, result]));
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      print(`\n${revision}  ${side}  (${seconds} s)`);
      report("required", required, { results, print });
      report("also", also, { results, print });
      for (const [scenario, reason] of Object.entries(reasons)) print(`  left out  ${scenario}: ${reason}`);
    }
  }
  if (sides.includes("client") && revisions.length === Object.keys(alsoRequired).length) {
    const also = clientExtensions.filter(isWanted);
    const found = await runClients(suite, also, undefined);
    print("\nany revision  client");
    report("also", also, { results: new Map(found.map((result) => [result.scenario, result])), print });
  }
  print("");
}

async function runExtensions(
  suite: Suite,
  url: string,
  scenarios: readonly string[],
  revision: SuiteRevision,
): Promise<readonly ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const scenario of scenarios) results.push(await suite.runExtension(url, scenario, revision));
  return results;
}

/** Three at a time, but for the scenario that measures how long a client waits: it does not share the machine with the rest. */
async function runClients(
  suite: Suite,
  scenarios: readonly string[],
  revision: SuiteRevision | undefined,
): Promise<readonly ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  const run = async (queue: string[]): Promise<void> => {
    for (let scenario = queue.shift(); scenario !== undefined; scenario = queue.shift())
      results.push(await suite.runClient(clientModule, scenario, revision));
  };
  await run(scenarios.filter((scenario) => scenario === "sse-retry"));
  const others = scenarios.filter((scenario) => scenario !== "sse-retry");
  await Promise.all(Array.from({ length: 3 }, () => run(others)));
  return results;
}

/** Whether a scenario was asked for; all are when none was named. */
function isWanted(scenario: string): boolean {
  return values.scenario?.includes(scenario) ?? true;
}

interface Findings {
  readonly results: ReadonlyMap<string, ScenarioResult>;
  readonly print: (line: string) => void;
}

function report(title: string, scenarios: readonly string[], { results, print }: Findings): void {
  const failed = scenarios.filter((scenario) => !hasPassed(results.get(scenario)));
  const passed = scenarios.length - failed.length;
  total.passed += passed;
  total.failed += failed.length;
  print(`  ${title.padEnd(8)}  ${passed}/${scenarios.length}`);
  for (const scenario of failed) {
    print(`    FAILED  ${scenario}`);
    const objections = results.get(scenario)?.checks.filter(isObjection) ?? [];
    for (const { id, status, errorMessage, description } of objections) {
      print(`            ${status.toLowerCase()}: ${id}: ${errorMessage ?? description ?? ""}`);
    }
    if (objections.length === 0) print("            it did not run to its end, or found nothing to check");
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
