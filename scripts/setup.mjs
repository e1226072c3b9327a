// Brings a checkout to the state "installed and built", and does nothing when it already is.
// Uses only Node itself, because it runs before anything is installed.
//
//   node scripts/setup.mjs           install if stale, build if stale
//   node scripts/setup.mjs --build   install if stale, build always, with a type check

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const installStamp = join(root, "node_modules/.junctor-stamp");
const packages = join(root, "packages");
const built = ["core", "server", "client", "junctor"];
const buildStamp = join(packages, "junctor/dist/.junctor-stamp");
const installFlags = [
  "--include=dev",
  "--ignore-scripts",
  "--prefer-offline",
  "--omit-lockfile-registry-resolved",
  "--no-audit",
  "--no-fund",
];
const lockPath = join(root, ".setup-lock");
const lockTimeoutMs = 10 * 60_000;

/** A step of the set-up failed: `step` is "node", "install" or "build", `output` what the tool printed. */
export class SetupError extends Error {
  constructor(step, message, output = "") {
    super(message);
    this.step = step;
    this.output = output;
  }
}

/** Installs and builds as needed; throws SetupError. Safe to run from several processes at once. */
export function setup({ alwaysBuild = false } = {}) {
  requireNode();
  if (!alwaysBuild && isInstalled() && isBuilt()) return;
  withLock(() => {
    if (!isInstalled()) install();
    if (alwaysBuild || !isBuilt()) build({ checkTypes: alwaysBuild });
  });
}

/** The same, and compiles proof/conformance if that is stale. Types are checked with everything else, by `npm run check`. */
export function setupConformance() {
  setup();
  const folder = join(root, "proof/conformance");
  const stamp = join(folder, "dist/.junctor-stamp");
  const sources = readdirSync(folder).filter((name) => /\.ts$|^tsconfig\.json$/.test(name));
  const key = hashFiles(installKey(), [
    "tsconfig.json",
    ...sources.map((name) => join("proof/conformance", name)),
  ]);
  if (readStamp(stamp) === key) return;
  withLock(() => {
    if (readStamp(stamp) === key) return;
    run("build", process.execPath, [
      "node_modules/typescript/bin/tsc",
      "-p",
      "proof/conformance",
      "--noCheck",
    ]);
    writeFileSync(stamp, key);
  });
}

/** Installs what a folder with a lock file of its own needs, if that is missing or stale. */
export function installIn(folder) {
  const stamp = join(root, folder, "node_modules/.junctor-stamp");
  const key = hashFiles(`${process.platform} ${process.arch}\n`, [join(folder, "package-lock.json")]);
  if (readStamp(stamp) === key) return;
  withLock(() => {
    console.error(`setup: installing what ${folder}/ needs (npm ci)`);
    run("install", "npm", ["ci", ...installFlags], join(root, folder));
    writeFileSync(stamp, key);
  });
}

/** Prints a SetupError the way every script does. */
export function reportSetupError(error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`${error.output}setup: ${error.message}`);
}

function requireNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new SetupError("node", `Node ${process.versions.node} is too old: install Node 20.19 or newer.`);
}

function isInstalled() {
  return readStamp(installStamp) === installKey();
}

function isBuilt() {
  return readStamp(buildStamp) === buildKey();
}

function install() {
  const key = installKey();
  console.error("setup: installing dependencies (npm ci)");
  run("install", "npm", ["ci", ...installFlags]);
  writeFileSync(installStamp, key);
}

// Emits beside the packages' dist folders and swaps, so that a failed build leaves the old ones and no program runs a half-written one.
function build({ checkTypes }) {
  const key = buildKey();
  const next = join(root, `.dist-next-${process.pid}`);
  console.error(`setup: building the packages${checkTypes ? "" : " (without type check)"}`);
  try {
    const flags = [
      "-p",
      "tsconfig.build.json",
      "--outDir",
      join(next, "types"),
      ...(checkTypes ? [] : ["--noCheck"]),
    ];
    run("build", process.execPath, ["node_modules/typescript/bin/tsc", ...flags]);
    run("build", process.execPath, ["scripts/bundle.mjs", next]);
    run("build", process.execPath, ["scripts/bundle-page.mjs", join(next, "junctor/page")]);
    for (const name of built) addDeclarations(join(next, "types", name, "src"), join(next, name));
    chmodSync(join(next, "junctor/cli/main.js"), 0o755);
    writeFileSync(join(next, "junctor/.junctor-stamp"), key);
    for (const name of built) {
      rmSync(join(packages, name, "dist"), { recursive: true, force: true });
      renameSync(join(next, name), join(packages, name, "dist"));
    }
    linkProgram();
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
}

/** Has npx find `junctor` in this checkout. npm links no program that is not built yet when it installs. */
function linkProgram() {
  if (existsSync(join(root, "node_modules/.bin/junctor"))) return;
  run("build", "npm", ["rebuild", "--ignore-scripts", "--no-audit", "--no-fund"]);
}

/** Copies what tsc emitted. It leaves the names of files as they are in the source, so `./raw.ts` becomes `./raw.js` here. */
function addDeclarations(from, to) {
  for (const file of readdirSync(from, { recursive: true }).filter((name) => name.endsWith(".d.ts"))) {
    const text = readFileSync(join(from, file), "utf8");
    mkdirSync(dirname(join(to, file)), { recursive: true });
    writeFileSync(join(to, file), text.replaceAll(/((?:from|import\()\s*"\.[^"]*)\.ts"/g, '$1.js"'));
  }
}

function run(step, command, args, cwd = root) {
  const shell = command === "npm" && process.platform === "win32";
  const result = spawnSync(command, args, { cwd, encoding: "utf8", shell, maxBuffer: 64 * 2 ** 20 });
  if (result.error) throw new SetupError(step, `cannot run ${command}: ${result.error.message}`);
  if (result.status === 0) return;
  throw new SetupError(
    step,
    `${step} failed (${result.signal ?? result.status})`,
    result.stdout + result.stderr,
  );
}

// Without the version of Node: no dependency is compiled for one, so the same folder serves all of them.
function installKey() {
  const hash = createHash("sha256");
  hash.update(`${process.platform} ${process.arch}\n`);
  return hash.update(readFileSync(join(root, "package-lock.json"))).digest("hex");
}

function buildKey() {
  const sources = readdirSync(packages, { recursive: true, encoding: "utf8" })
    .filter((name) => /^[^/\\]+[/\\](src[/\\].*\.ts|package\.json)$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => join("packages", name));
  const page = readdirSync(join(packages, "page")).map((name) => join("packages/page", name));
  const tools = ["tsconfig.json", "tsconfig.build.json", "scripts/bundle.mjs", "scripts/bundle-page.mjs"];
  const names = new Set([...tools, ...sources, ...page]);
  return hashFiles(installKey(), [...names].filter((name) => statSync(join(root, name)).isFile()).toSorted());
}

function hashFiles(start, names) {
  const hash = createHash("sha256").update(start);
  for (const name of names) hash.update(`\n${name}\n`).update(readFileSync(join(root, name)));
  return hash.digest("hex");
}

function readStamp(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

// The lock is a directory holding its owner's pid. It is renamed into place complete, so it is never seen
// without a pid; renaming onto a directory that is not empty fails, which is what makes it a lock.
function withLock(work) {
  const mine = `${lockPath}-${process.pid}`;
  rmSync(mine, { recursive: true, force: true });
  mkdirSync(mine);
  writeFileSync(join(mine, "pid"), String(process.pid));
  try {
    acquire(mine);
    try {
      work();
    } finally {
      rmSync(lockPath, { recursive: true, force: true });
    }
  } finally {
    rmSync(mine, { recursive: true, force: true });
  }
}

function acquire(mine) {
  const deadline = Date.now() + lockTimeoutMs;
  let isAnnounced = false;
  for (;;) {
    try {
      return renameSync(mine, lockPath);
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST", "EPERM"].includes(error.code)) throw error;
    }
    const owner = lockOwner();
    if (owner !== undefined && !isRunning(owner)) {
      rmSync(lockPath, { recursive: true, force: true });
      continue;
    }
    if (Date.now() > deadline) {
      throw new SetupError("lock", `process ${owner} has held ${lockPath} for too long: remove it by hand.`);
    }
    if (!isAnnounced) console.error(`setup: waiting for process ${owner}, which is setting up too`);
    isAnnounced = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
}

/** The pid in the lock, or undefined when the lock has just been released. */
function lockOwner() {
  try {
    return Number(readFileSync(join(lockPath, "pid"), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    setup({ alwaysBuild: process.argv.includes("--build") });
  } catch (error) {
    reportSetupError(error);
    process.exitCode = 1;
  }
}
