// The README as a new user meets it: every block in order, in a clean copy of the repository and in an empty project with the tarball.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { invocation } from "../packages/junctor/src/invocation/index.ts";
import { root } from "./source-graph.ts";
import { type CodeBlock, parseCodeBlocks } from "./support/markdown.ts";
import { installPacked } from "./support/packed-project.ts";
import { isAlive } from "./support/processes.ts";

const readme = readFileSync(join(root, "README.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "junctor-readme-"));
const [clone, project, home] = ["clone", "project", "home"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  for (const place of [clone, project, home]) mkdirSync(place);
  const listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  for (const file of execFileSync("git", listed, { cwd: root, encoding: "utf8" }).split("\0"))
    if (file !== "" && existsSync(join(root, file))) {
      mkdirSync(dirname(join(clone, file)), { recursive: true });
      cpSync(join(root, file), join(clone, file));
    }
  // What `npm ci` would put there.
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  writeFileSync(join(project, "package.json"), "{}");
  installPacked(project, ["zod"]);
});

const serveHere = `${invocation} serve`;

describe.runIf(process.platform === "linux").each([
  { name: "a clean copy of the repository", place: clone, toServe: (command: string) => command },
  {
    name: "an empty project with the tarball",
    place: project,
    // As the README says.
    toServe: (command: string) => command.replace(/^npm start(?: --)?/, serveHere),
  },
])("in $name", ({ place, toServe }) => {
  test("every file and command of the README works, in its order", async () => {
    const ran: string[] = [];
    let server: Served | undefined;
    const serve = async (command: string): Promise<void> => {
      await server?.stop();
      server = undefined;
      server = await startServer(toServe(command), place);
    };
    try {
      for (const section of readme.split(/^(?=## )/m)) {
        for (const block of parseCodeBlocks(section)) {
          const file = fileOf(block);
          if (file !== undefined) writeFileSync(join(place, file), block.code);
          for (const command of commandsOf(block)) {
            ran.push(command);
            if (command.startsWith("npm install ")) continue; // What `installPacked` does without a registry.
            if (command.startsWith("npm start")) await serve(command);
            else await succeed(atServer(command, server?.url ?? ""), place);
          }
        }
      }
    } finally {
      await server?.stop();
    }
    // None was overlooked.
    expect(ran.map((command) => command.split(/ +/).slice(0, 4).join(" "))).toEqual([
      "npm start",
      "npm start -- --config",
      `${invocation} check`,
      "npm install /path/to/junctor/*.tgz zod",
      "node client.mjs",
    ]);
  });
});

test("the programs of the README compile as TypeScript, in a project with the tarball", () => {
  const programs = parseCodeBlocks(readme).filter(({ language }) => language === "js" || language === "ts");
  expect(programs.length).toBeGreaterThan(1);
  const files = programs.map(({ file = "", code }) => {
    const name = file.replace(".mjs", ".mts");
    writeFileSync(join(project, name), code);
    return name;
  });
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
  const target = ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,esnext.disposable,dom"];
  const types = ["--typeRoots", join(root, "node_modules/@types"), "--types", "node"];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  expect(compile([tsc, ...flags, ...target, ...types, "--skipLibCheck", ...files])).toBe("");
});

function compile(words: readonly string[]): string {
  try {
    return execFileSync(process.execPath, words, { cwd: project, encoding: "utf8" });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

/** The file a block stands for: its first line names it. */
function fileOf({ code, file }: CodeBlock): string | undefined {
  return file ?? /^\/\/ ([\w-]+\.json)\n/.exec(code)?.[1];
}

/** The commands of a block for a shell, without the comments behind them. */
function commandsOf({ language, code }: CodeBlock): readonly string[] {
  if (language !== "sh" && language !== "console") return [];
  const lines = code.replaceAll("\\\n", " ").split("\n");
  return lines
    .filter((line) => (language === "sh" ? line !== "" : line.startsWith("$ ")))
    .map((line) => line.replace(/^\$ /, "").replace(/ +# .*$/, ""));
}

/** The same command for the port that the system picked. */
function atServer(command: string, url: string): string {
  const isDefault = command.startsWith(invocation) && !/ --(?: |config|server)/.test(command);
  return isDefault ? `${command} --server ${url}` : command.replace("http://127.0.0.1:7780/mcp", url);
}

interface Served {
  readonly url: string;
  stop(): Promise<void>;
}

const environment = {
  ...process.env,
  HOME: home,
  XDG_STATE_HOME: "",
  XDG_CACHE_HOME: "",
  XDG_RUNTIME_DIR: "",
};

/** Runs a gateway on a free port, until it is stopped as Ctrl-C stops it. */
async function startServer(command: string, cwd: string): Promise<Served> {
  const separator = command.startsWith("npm start") && !command.includes(" -- ") ? " --" : "";
  const child = spawn("bash", ["-c", `${command}${separator} --port 0`], {
    cwd,
    env: environment,
    detached: true,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  let hasEnded = false;
  child.once("exit", () => (hasEnded = true));
  const isUp = command.includes("--config") ? "1 of 1 server is up" : "See countdown stream";
  try {
    await expect.poll(() => hasEnded || said.includes(isUp)).toBe(true);
  } catch (error) {
    await stopGroup(child);
    throw new Error(`${command} did not come up:\n${said}`, { cause: error });
  }
  if (hasEnded) throw new Error(`${command} ended:\n${said}`);
  return { url: /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0] ?? "", stop: () => stopGroup(child) };
}

async function stopGroup({ pid = 0 }: ChildProcess): Promise<void> {
  process.kill(-pid, "SIGINT");
  await expect.poll(() => isAlive(pid)).toBe(false);
}

async function succeed(command: string, cwd: string): Promise<void> {
  const child = spawn("bash", ["-c", command], { cwd, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with code ${String(code)}:\n${said}`);
}
