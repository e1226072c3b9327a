import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { folder } from "./install.mjs";

/** Variables of ours that a gateway or client needs to reach a registry through a proxy. */
const passed = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];

/**
 * Where a run takes place.
 *
 * @typedef {object} World
 * @property {string} id marks the processes of this run, in the variable JUNCTOR_FIELD_RUN
 * @property {string} home the home folder of gateways, servers and clients; stays for the next run, with what npm downloaded
 * @property {string} run the folder of this run
 * @property {string} desk the current folder of gateways and servers: some files, and a git repository
 * @property {(cache: string) => Record<string, string>} env the environment; `cache` names the folder of remembered lists
 * @property {() => void} emptyNpx sets aside what npx installed; what npm downloaded stays
 * @property {() => void} removeOld removes what was set aside, which takes a minute
 * @property {() => void} remove
 */

/** @returns {World} */
export function createWorld() {
  const id = randomUUID();
  const home = join(folder, ".cache/home");
  // Outside the repository: npx looks into the node_modules of the folders above. In lower case: mcp-obsidian folds paths.
  const run = join(tmpdir(), `junctor-field-${id}`);
  const desk = join(run, "desk");
  const old = join(folder, ".cache/old-npx");
  mkdirSync(home, { recursive: true });
  mkdirSync(run, { mode: 0o700 });
  linkNpmrc(home);
  layDesk(desk);
  return {
    id,
    home,
    run,
    desk,
    env: (cache) => ({
      ...pick(process.env, passed),
      PATH: pathWithoutBins(),
      HOME: home,
      LANG: "C.UTF-8",
      TMPDIR: run,
      XDG_CACHE_HOME: join(run, cache),
      XDG_STATE_HOME: join(run, `${cache}-state`),
      XDG_CONFIG_HOME: join(run, "config"),
      JUNCTOR_FIELD_RUN: id,
    }),
    emptyNpx: () => setAside(join(home, ".npm/_npx"), old),
    // By a program, because Node needs far longer for so many files.
    removeOld: () => void spawnSync("rm", ["-rf", old]),
    remove: () => rmSync(run, { recursive: true, force: true }),
  };
}

/** @param {string} from @param {string} to */
function setAside(from, to) {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true });
  renameSync(from, join(to, randomUUID()));
}

/** Settings of npm, such as the registry, are the user's. @param {string} home */
function linkNpmrc(home) {
  const link = join(home, ".npmrc");
  const own = join(homedir(), ".npmrc");
  rmSync(link, { force: true });
  if (existsSync(own)) symlinkSync(own, link);
}

/** @param {string} desk */
function layDesk(desk) {
  mkdirSync(join(desk, "notes"), { recursive: true });
  writeFileSync(join(desk, "notes/todo.txt"), "Call the plumber.\n");
  writeFileSync(join(desk, "notes/plan.md"), "# Plan\n");
  writeFileSync(join(desk, "notes/rough.js"), "debugger;\n");
  writeFileSync(join(desk, "eslint.config.mjs"), 'export default [{ rules: { "no-debugger": "error" } }];\n');
  const settings = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
  for (const args of [
    ["init", "--quiet", "--initial-branch=main"],
    ["add", "notes"],
    [...settings, "commit", "--quiet", "--message=Add notes"],
  ]) {
    const { status, stderr } = spawnSync("git", args, { cwd: desk, encoding: "utf8" });
    if (status !== 0) throw new Error(`git ${args.join(" ")} failed: ${stderr}`);
  }
}

/** `npm run` puts the programs of this project first; the servers must come from npx, and run on the Node that runs us. */
function pathWithoutBins() {
  const parts = (process.env.PATH ?? "").split(delimiter).filter((part) => !part.includes("node_modules"));
  return [dirname(process.execPath), ...parts].join(delimiter);
}

/** @param {NodeJS.ProcessEnv} env @param {readonly string[]} names */
function pick(env, names) {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
