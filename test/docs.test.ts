import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findExposed } from "../packages/junctor/src/cli/config/config-file.ts";
import { parseConfig } from "../packages/junctor/src/config/parse-config.ts";
import { invocation } from "../packages/junctor/src/invocation/index.ts";
// @ts-expect-error -- it is JavaScript, for scripts too
import { toHeadingId } from "../scripts/heading-id.mjs";
import { published, root } from "./source-graph.ts";
import { bin } from "./support/junctor-bin.ts";
import { type CodeBlock, parseCodeBlocks, parseHeadings, parseSessions } from "./support/markdown.ts";

// The pages run: every block that names a file is one, every program prints the `text` block below it, and every
// `console` block shows what its commands print.

const folder = mkdtempSync(join(tmpdir(), "junctor-docs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, "package.json"), "{}");
mkdirSync(join(folder, "node_modules"));
symlinkSync(join(root, "packages/junctor"), join(folder, "node_modules/junctor"), "junction");
symlinkSync(join(root, "node_modules/@junctor"), join(folder, "node_modules/@junctor"), "junction");
symlinkSync(join(root, "node_modules/zod"), join(folder, "node_modules/zod"), "junction");

const guides = readdirSync(join(root, "docs/guides")).map((file) => `docs/guides/${file}`);
const toId = toHeadingId as (text: string) => string;
const headings = new Map<string, ReadonlySet<string>>();
const namesOf = (entry: string): readonly string[] =>
  readFileSync(join(root, `test/public-names/${entry}.txt`), "utf8")
    .trim()
    .split("\n");
const publicNames = [...new Set(["junctor", "server", "client"].flatMap(namesOf))];
const testingNames = namesOf("junctor-testing");
// Transcripts of servers from npm or of sign-ins, and files of other programs: none of them are here.
const runnable = guides.filter(
  (page) =>
    !/(?:all-your-servers|command-line|connect-clients|many-machines|see-your-gateway|sign-in)\.md$/.test(
      page,
    ),
);

describe.each(["README.md", ...runnable])("%s", (page) => {
  const blocks = parseCodeBlocks(readFileSync(join(root, page), "utf8")).map(withConfigName);
  const files = blocks.filter((block) => block.file !== undefined);
  // As it is, but on a free port.
  for (const { file = "", code } of files)
    writeFileSync(join(folder, file), code.replace(/port: \d+,/, "port: 0,"));

  const programs = files.flatMap((block) => {
    const next = blocks[blocks.indexOf(block) + 1];
    return next?.language === "text" ? [{ file: block.file ?? "", output: next.code }] : [];
  });
  test.concurrent.each(programs)("$file prints what the page says", async ({ file, output }) => {
    expect(withoutTimes(await run("node", [file]))).toBe(withoutTimes(output));
  });

  const sessions = blocks.flatMap((block) => (isRunnable(block) ? parseSessions(block.code) : []));
  test.concurrent.each(sessions)("$ $command", async ({ command, output }) => {
    if (!command.startsWith(invocation)) {
      const [, ...args] = splitWords(command);
      return expect(await run("node", args)).toBe(output);
    }
    const args = splitWords(command.slice(invocation.length));
    const at = args.findIndex((word) => word.startsWith("http://"));
    if (at === -1) return expect(withoutTimes(await run("junctor", args))).toBe(withoutTimes(output));
    const url = args[at] ?? "";
    await using server = await start(listenerFor(url, files));
    expect(await run("junctor", args.with(at, server.url))).toBe(output.replaceAll(url, server.url));
  });
});

test("the server of the README has ten lines", () => {
  const code = readFileSync(join(folder, "server.mjs"), "utf8");
  const lines = code.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("//"));
  expect(lines.length).toBeLessThanOrEqual(10);
});

const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".md"))
  .map((file) => `docs/${file.replaceAll("\\", "/")}`);
const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "proof/README.md", ...docs];
const packagePages = published.map((name) => `packages/${name}/README.md`);

test("every config of a page is valid, and lets no server write it", () => {
  // Beside the config, where servers are started as well.
  const file = join(process.cwd(), "package.json");
  const envOf = (code: string): { readonly [name: string]: string } =>
    Object.fromEntries(
      Array.from(code.matchAll(/[A-Z][A-Z0-9_]+/g), ([name]) => [name, `/where/${name}/is`]),
    );
  const configs = pages.flatMap((page) =>
    parseCodeBlocks(readFileSync(join(root, page), "utf8"))
      .filter(
        ({ language, code }) =>
          language === "json" && /^ *(?:\{ *)?"(?:mcpServers|servers|junctor)": \{/m.test(code),
      )
      .map(({ code }) => ({ page, config: parseConfig(withServers(code), { file, env: envOf(code) }) })),
  );
  expect(configs.length).toBeGreaterThan(12);
  for (const { page, config } of configs) expect([page, ...findExposed(file, config)]).toEqual([page]);
});

describe("every link of a page leads to a file that exists, and to a heading of it", () => {
  test.each([...pages, ...packagePages])("%s", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(([, path = "", id]) => ({
      file: path === "" ? page : posix.join(posix.dirname(page), path),
      id,
    }));
    const sources = [...text.matchAll(/`((?:packages|proof|test|scripts)\/[\w./-]+\.(?:ts|mjs|json))`/g)].map(
      ([, file = ""]) => ({ file, id: undefined }),
    );
    const dead = [...links, ...sources].filter(
      ({ file, id }) => !existsSync(join(root, file)) || (id !== undefined && !headingsOf(file).has(id)),
    );
    expect(dead).toEqual([]);
  });
});

describe("every part of a program in a page compiles", () => {
  const program = (code: string): string => {
    if (code.includes("import ")) return code;
    const isUsed = (name: string): boolean => new RegExp(`\\b${name}\\b`).test(code);
    return [
      `import { ${publicNames.filter(isUsed).join(", ")} } from "junctor";`,
      `import { ${testingNames.filter(isUsed).join(", ")} } from "junctor/testing";`,
      `export const part = async () => {\n${code}};`,
    ].join("\n");
  };
  // Parts leave out what the reader has, such as `server`: a name that is not one of ours, by how ours begin.
  const leftOut =
    /error TS(?:2304|2552): Cannot find name '(?!(?:create|define|parse|to|with|serve|listen|connect|spawn|load|open|accept)?[A-Z])/;
  const parts = [...pages, ...packagePages].flatMap((page) =>
    parseCodeBlocks(readFileSync(join(root, page), "utf8"))
      .filter(({ language, file }) => file === undefined && language === "js")
      .map(({ code }, at) => ({ name: `${page.replaceAll(/[/.]/g, "-")}-${at}.mts`, code: program(code) })),
  );

  test(`there are ${parts.length} of them`, () => {
    expect(parts.length).toBeGreaterThan(40);
    for (const { name, code } of parts) writeFileSync(join(folder, name), code);
    const flags = [
      "--noEmit",
      "--strict",
      "false",
      "--skipLibCheck",
      "--module",
      "nodenext",
      "--target",
      "es2023",
    ];
    const types = [
      "--lib",
      "es2023,esnext.disposable,dom",
      "--typeRoots",
      join(root, "node_modules/@types"),
      "--types",
      "node",
    ];
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const names = parts.map(({ name }) => name);
    const { stdout } = spawnSync(process.execPath, [tsc, ...flags, ...types, ...names], {
      cwd: folder,
      encoding: "utf8",
    });
    const wrong = stdout.split("\n").filter((line) => line !== "" && !leftOut.test(line));
    expect(wrong).toEqual([]);
  });
});

test("every picture in docs is shown on a page", () => {
  const pictures = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(?:png|svg)$/.test(file),
  );
  const texts = pages.map((page) => readFileSync(join(root, page), "utf8")).join("\n");
  expect(
    pictures.filter((file) => !new RegExp(`!\\[[^\\]]+\\]\\([^)]*${posix.basename(file)}\\)`).test(texts)),
  ).toEqual([]);
});

describe("nothing tells a person or a client to run what has our name on the registry", () => {
  const sources = readdirSync(join(root, "packages/junctor/src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => `packages/junctor/src/${file}`);
  const examples = readdirSync(join(root, "examples")).map((file) => `examples/${file}`);
  test.each([...pages, ...examples, ...sources])("%s", (file) => {
    const text = readFileSync(join(root, file), "utf8");
    const typed = [...text.matchAll(/\bnpx(?: -\S+)* junctor\b/g)].map(([command]) => command);
    const inConfigs = [...text.matchAll(/"npx",\s*"args":\s*\[\s*((?:"-[^"]*",\s*)*)"junctor"/g)].map(
      ([, flags = ""]) => `npx ${flags.replaceAll(/[",]/g, "").replaceAll(/\s+/g, " ")}junctor`,
    );
    expect([...typed, ...inConfigs].filter((command) => command !== invocation)).toEqual([]);
    expect(text).not.toMatch(/\bnpm (?:i|install|add|exec)\b(?: -\S+)* junctor(?![-/\w])/);
  });
});

describe("every guide says how its commands are typed where junctor is not in the PATH", () => {
  test.each(guides)("%s", (guide) => {
    const text = readFileSync(join(root, guide), "utf8").replaceAll(/\s+/g, " ");
    expect(text).toContain(`write \`${invocation}\` for \`junctor\``);
  });
});

test("the index of the docs links every page, and the README links the index", () => {
  const index = readFileSync(join(root, "docs/README.md"), "utf8");
  const linked = pages.filter((page) => page.startsWith("docs/") && !/README/.test(page));
  expect(linked.filter((page) => !index.includes(`](${page.slice("docs/".length)})`))).toEqual([]);
  expect(readFileSync(join(root, "README.md"), "utf8")).toContain("](docs/README.md");
});

/** Blocks about servers from npm are a transcript; the others are run. */
function isRunnable({ language, code }: CodeBlock): boolean {
  return language === "console" && (code.includes(invocation) || /^\$ node /m.test(code));
}

/** A config has comments, so it can say its name like a program does. */
function withConfigName(block: CodeBlock): CodeBlock {
  return { ...block, file: block.file ?? /^\/\/ ([\w-]+\.json)\n/.exec(block.code)?.[1] };
}

/** How long something took is another time each time, and so is the room it takes in a table. */
function withoutTimes(text: string): string {
  return (
    text
      .replaceAll(/ {2,}/g, "  ")
      .replaceAll(/\b\d+(?:\.\d+)? ms\b/g, "1 ms")
      // A table of servers: each stands there when it is known, after whatever time it takes.
      .replaceAll(/\b\d+\.\d s {2}(?=1 ms)/g, "1 ms  ")
      .replaceAll(/(?:^[✓✗!] .*(?:\n|$))+/gm, (rows) => rows.split("\n").toSorted().join("\n"))
      .replaceAll(/Try again in \d+ s/g, "Try again in 1 s")
  );
}

/** The page's program that listens on the port of a URL. */
function listenerFor(url: string, files: readonly CodeBlock[]): string {
  const { port } = new URL(url);
  return files.find(({ code }) => code.includes(`port: ${port},`))?.file ?? `(nothing listens on ${port})`;
}

/** Starts a program and resolves when it says where it listens. */
function start(file: string): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, [file], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await closed;
  };
  return new Promise((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", (text: string) => {
      resolve({ url: /http:\S+/.exec(text)?.[0] ?? "", [Symbol.asyncDispose]: stop });
    });
    child.once("exit", (code) => reject(new Error(`${file} ended with code ${code}`)));
  });
}

/** Runs a program in the folder and resolves with all it wrote, its standard error stream first. */
function run(program: "node" | "junctor", args: readonly string[]): Promise<string> {
  const words = program === "node" ? args : [bin, ...args];
  const child = spawn(process.execPath, [...words], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve(stderr + stdout));
  });
}

function splitWords(command: string): readonly string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? "",
  );
}

/** The ids of a page's headings. */
function headingsOf(file: string): ReadonlySet<string> {
  const known = headings.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(join(root, file), "utf8");
  const ids = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id));
  for (const heading of parseHeadings(text)) {
    const id = toId(heading);
    let free = id;
    for (let n = 1; ids.has(free); n++) free = `${id}-${n}`;
    ids.add(free);
  }
  headings.set(file, ids);
  return ids;
}

/** A config with the servers that its section `junctor` has settings for. */
function withServers(code: string): string {
  const { junctor } = JSON.parse(code.replace(/^\/\/.*\n/, "")) as {
    readonly junctor?: { readonly servers?: object };
  };
  if (/"(?:mcpServers|servers)": \{/.test(code.replace(/"junctor"[^]*/, ""))) return code;
  const names = Object.keys(junctor?.servers ?? {});
  return JSON.stringify({
    mcpServers: Object.fromEntries(names.map((name) => [name, { url: "https://a.example" }])),
    junctor,
  });
}
