import { execFileSync, spawnSync } from "node:child_process";
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
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "./source-graph.ts";
import { installPacked } from "./support/packed-project.ts";

// The package as `npm publish` would send it, installed beside its dependencies, as a user has it.
const folder = mkdtempSync(join(tmpdir(), "jp-"));
const installed = join(folder, "node_modules", "junctor");
const main = join(installed, "dist", "cli", "main.js");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => void installPacked(folder));

test("npx runs the command of the package", () => {
  const said = execFileSync(
    "npx",
    [
      "--no-install",
      "junctor",
      "call",
      "add",
      "a=1",
      "b=2",
      "--",
      process.execPath,
      main,
      "serve",
      "--stdio",
    ],
    { cwd: folder, encoding: "utf8", env: { ...process.env, HOME: folder } },
  );
  expect(said).toBe("3\n");
});

const run = (...args: readonly string[]): string => {
  const env = { ...process.env, HOME: folder, XDG_RUNTIME_DIR: "" };
  const { stdout, stderr, status } = spawnSync(process.execPath, [main, ...args], {
    cwd: folder,
    env,
    encoding: "utf8",
    input: "",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
};

test("the package that is published runs, serves, and starts a client's front", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  expect(run("--version")).toBe(`${version}\n`);
  expect(run("call", "add", "a=1", "b=2", "--", process.execPath, main, "serve", "--stdio")).toBe("3\n");
  mkdirSync(join(folder, "config"), { mode: 0o700 });
  const config = join(folder, "config", "servers.json");
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { demo: { command: process.execPath, args: [main, "serve", "--stdio"] } } }),
    { mode: 0o600 },
  );
  const words = [
    "call",
    "demo__add",
    "a=1",
    "b=2",
    "--",
    process.execPath,
    main,
    "attach",
    "--config",
    config,
  ];
  expect(run(...words)).toBe("3\n");
  expect(run("daemon", "stop", "--config", config)).toContain("ends when its calls are done");
});

test("the library of the package can be imported", () => {
  const code = 'import { createRegistry } from "junctor"; console.log(typeof createRegistry);';
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(said).toBe("function\n");
});

test("every link of the README and the pages leads to a file of the package, and no tests are in it", () => {
  const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
  const missing = files
    .filter((file) => file.endsWith(".md"))
    .flatMap((page) =>
      linksOf(readFileSync(join(installed, page), "utf8"))
        .filter((link) => !existsSync(join(installed, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    );
  expect(missing).toEqual([]);
  expect(files.filter((file) => file.endsWith(".test.ts"))).toEqual([]);
});

/** The files that a page links to, without parts of pages and without other sites. */
function linksOf(text: string): readonly string[] {
  const prose = text.replaceAll(/^ *```[^]*?^ *```/gm, "");
  return Array.from(prose.matchAll(/\]\(([^)#\s]+)/g), ([, link = ""]) => link).filter(
    (link) => !/^[a-z]+:/.test(link),
  );
}
