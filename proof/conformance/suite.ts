import { spawn } from "node:child_process";
import * as fs from "node:fs";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The revisions the suite has requirement sets for. */
export type SuiteRevision = "2026-07-28" | "2025-11-25";

/** The two sides the suite tests. */
export type Side = "server" | "client";

/** What the suite found out about one scenario. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly checks: readonly Check[];
}

export interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly description?: string;
  readonly errorMessage?: string;
}

/** The official suite, ready to run on this version of Node. Disposing it removes its working files. */
export interface Suite extends Disposable {
  readonly version: string;
  /** The scenarios a revision requires of a side, in the suite's own order. */
  requirements(revision: SuiteRevision, side: Side): readonly string[];
  /** Runs everything the suite has for a revision against a server that is up. */
  runServer(url: string, revision: SuiteRevision): Promise<readonly ScenarioResult[]>;
  /**
   * Runs one scenario of an extension against a server that is up. No requirement set has these; the suite runs them by name, and for
   * a legacy revision only if it must.
   */
  runExtension(url: string, scenario: string, revision: SuiteRevision): Promise<ScenarioResult>;
  /**
   * Runs one scenario with a client: a module that is started with the URL of the suite's server. The suite skips scenarios of
   * extensions and of older revisions where it is told a revision.
   */
  runClient(module: string, scenario: string, revision: SuiteRevision | undefined): Promise<ScenarioResult>;
}

/** How long one scenario may take: the slowest needs a few seconds, most of them to see that nothing comes. */
const scenarioTimeoutMs = 15_000;

/** How much is shown of what a client wrote that failed. */
const maxLastWords = 1000;

/**
 * Finds the installed suite. Its working files are kept among the installed packages, because the copy for Node 20
 * imports some of them by name.
 */
export function openSuite(): Suite {
  const manifest = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json");
  const home = dirname(manifest);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  const patched = "globSync" in fs ? undefined : patchForNode20(home, version);
  const cache = join(home, "../../.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "junctor-conformance-"));
  const cli = join(patched === undefined ? home : copySuite(home, patched, folder), "dist/index.js");
  return {
    version,
    requirements: (revision, side) =>
      parseRequired(readFileSync(join(home, `requirements/${revision}.yaml`), "utf8"), side),
    runServer: async (url, revision) => {
      const results = mkdtempSync(join(folder, `${revision}-`));
      const { output } = await runCli(cli, "server", { url, requirements: revision, "output-dir": results });
      const found = readResults(results);
      if (found.length === 0) throw new Error(`The suite wrote no results. It printed:\n${output}`);
      return found;
    },
    runExtension: async (url, scenario, revision) => {
      const results = mkdtempSync(join(folder, `${revision}-`));
      const flags = { url, scenario, "output-dir": results, ...forced(revision) };
      await runCli(cli, "server", flags);
      return { scenario, checks: readResults(results).flatMap((result) => result.checks) };
    },
    runClient: async (module, scenario, revision) => {
      const results = mkdtempSync(join(folder, `${revision ?? "any"}-`));
      const command = toShellCommand(module);
      const version =
        revision === undefined
          ? {}
          : isOfExtension(scenario)
            ? forced(revision)
            : { "spec-version": revision };
      const flags = { command, scenario, "output-dir": results, ...version };
      const { code } = await runCli(cli, "client", flags);
      const checks = readResults(results).flatMap((result) => result.checks);
      return { scenario, checks: code === 0 ? checks : [...checks, ...findLastWords(results)] };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Whether a scenario is of an extension that no requirement set names. */
function isOfExtension(scenario: string): boolean {
  return scenario.startsWith("sep-2640-");
}

/** With a revision named, the suite skips scenarios of extensions unless it is forced. */
function forced(revision: SuiteRevision): { readonly [flag: string]: string | true } {
  return revision === "2026-07-28" ? {} : { "spec-version": revision, force: true };
}

/** The suite imports `fs.globSync`, which Node 20 lacks, and uses it in a command we do not run: it gets a stand-in. */
function patchForNode20(home: string, version: string): string {
  const code = readFileSync(join(home, "dist/index.js"), "utf8");
  const found = /import\{([^}]*\bglobSync as ([\w$]+)\b[^}]*)\}from"fs";/.exec(code);
  if (found === null) {
    throw new Error(
      `Version ${version} of the suite cannot be adapted to Node ${process.versions.node}: ` +
        `its import of globSync is not written as it was. Run this on Node 22 or newer.`,
    );
  }
  const [statement, names = "", alias = ""] = found;
  const kept = names.split(",").filter((name) => !name.startsWith("globSync as "));
  return code.replace(statement, () => `import{${kept.join(",")}}from"fs";const ${alias}=()=>[];`);
}

/** The suite reads its own version and its requirements from beside its code. */
function copySuite(home: string, code: string, folder: string): string {
  const copy = join(folder, "suite");
  cpSync(join(home, "requirements"), join(copy, "requirements"), { recursive: true });
  cpSync(join(home, "package.json"), join(copy, "package.json"));
  mkdirSync(join(copy, "dist"));
  writeFileSync(join(copy, "dist/index.js"), code);
  return copy;
}

/** The scenarios under `server:` or `client:` of a requirement file. */
function parseRequired(yaml: string, side: Side): readonly string[] {
  const section = new RegExp(`^${side}:\\n((?: {2}- .*\\n)+)`, "m").exec(yaml)?.[1];
  if (section === undefined) throw new Error(`The suite's requirements have no list of ${side} scenarios`);
  return section
    .trim()
    .split("\n")
    .map((line) => line.replace(/^\s*- /, "").trim());
}

/**
 * Folders are called `server-SCENARIO-TIMESTAMP`, those of clients without the side; a scenario may have a slash in its name. One without
 * checks is of a scenario that broke down.
 */
function readResults(folder: string): readonly ScenarioResult[] {
  const finished = foldersIn(folder).filter((name) => existsSync(join(folder, name, "checks.json")));
  return finished.map((name) => ({
    scenario: name.replace(/^(?:server-)?(.*)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, "$1"),
    checks: JSON.parse(readFileSync(join(folder, name, "checks.json"), "utf8")) as readonly Check[],
  }));
}

function foldersIn(folder: string): readonly string[] {
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return found.map((name) => name.replaceAll("\\", "/"));
}

/** A check that makes its scenario fail. A warning does. */
export function isObjection({ status }: Check): boolean {
  return status === "FAILURE" || status === "WARNING";
}

/** The suite has a shell start the client, and ends only the shell when time is up, so that must have become the client. */
function toShellCommand(module: string): string {
  return `${process.platform === "win32" ? "" : "exec "}"${process.execPath}" "${module}"`;
}

/** What a client that failed wrote to its standard error: often the reason for what its scenario objects to. */
function findLastWords(folder: string): readonly Check[] {
  const files = foldersIn(folder).map((name) => join(folder, name, "stderr.txt"));
  const said = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8").trim());
  const errorMessage = said.join("\n").slice(-maxLastWords) || "The client ended badly, or not in time.";
  return [{ id: "client-failed", status: "FAILURE", errorMessage }];
}

/**
 * For servers its exit code is of no use: it is that of the scored scenarios alone, and takes warnings for passes. For
 * clients it tells whether the client failed.
 */
function runCli(
  cli: string,
  side: Side,
  flags: { readonly [name: string]: string | true },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const timed: typeof flags = { ...flags, timeout: String(scenarioTimeoutMs) };
  const args = Object.entries(timed).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, value],
  );
  const child = spawn(process.execPath, [cli, side, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
