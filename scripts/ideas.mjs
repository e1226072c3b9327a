// `npm run ideas`: how many ideas a reader of the packages has to hold, and what a user installs and loads. It prints each figure beside
// its goal, and never fails.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { root, setup } from "./setup.mjs";

setup();
const packages = ["core", "server", "client", "junctor"];
const read = (file) => readFileSync(join(root, file), "utf8");
const files = packages.flatMap((name) =>
  readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => `packages/${name}/src/${file.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts")),
);

const counts = { types: 0, options: 0, classes: 0, factories: 0, lines: 0 };
const functions = [];
for (const file of files) {
  const code = read(file);
  const lineOf = lineFinder(code);
  visit(parseAst(code, { lang: "ts", sourceType: "module" }), (node) => {
    if (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration") {
      counts.types++;
      if (node.id.name.endsWith("Options")) counts.options++;
    }
    if (node.type === "ClassDeclaration") counts.classes++;
    if (node.type === "FunctionDeclaration" && /^create[A-Z]/.test(node.id?.name ?? "")) counts.factories++;
    if (/^(?:Function(?:Declaration|Expression)|ArrowFunctionExpression)$/.test(node.type) && node.body) {
      functions.push({ file, line: lineOf(node.start), length: lineOf(node.end) - lineOf(node.start) + 1 });
    }
  });
  counts.lines += codeLines(code);
}
const long = functions.filter(({ length }) => length > 80).toSorted((a, b) => b.length - a.length);

const gatewayRooms =
  /^packages\/junctor\/src\/(accounts|bridge|catalog|config|context|credentials|gateway|lock|log|policy|servers|upstream)\//;
const doorsOut = new Set(
  files
    .filter((file) => file.startsWith("packages/junctor/") && !gatewayRooms.test(file))
    .flatMap((file) =>
      [...read(file).matchAll(/from "(\.[^"]+)"/g)].map(([, name]) => join(file, "..", name)),
    )
    .filter((file) => gatewayRooms.test(file)),
);
const namesIn = (list) => read(`test/public-names/${list}.txt`).trim().split("\n").length;
const nouns = [...read("docs/glossary.md").matchAll(/^\| \*\*([^*]+)\*\*/gm)].flatMap(([, row]) =>
  row.split(", "),
).length;
const manifest = JSON.parse(read("package.json"));
const ofServer = Object.keys(JSON.parse(read("packages/server/package.json")).dependencies);
const { bytes, cpuMs, share } = importCost();

const rows = [
  ["declared types", counts.types, "850"],
  ["… named …Options", counts.options, ""],
  ["classes · create… factories", `${counts.classes} · ${counts.factories}`, "90 · 120"],
  ["source files", files.length, "400"],
  ["code lines, without imports, comments and blank lines", counts.lines, "42,000"],
  ["longest function · functions over 80 lines", `${long[0]?.length ?? 0} · ${long.length}`, "80 · 0"],
  ["rooms, each with a door", files.filter((file) => file.endsWith("/index.ts")).length - 3, ""],
  ["doors that lead out of the gateway's rooms", doorsOut.size, "10"],
  ["nouns in the glossary", nouns, "45"],
  [
    "public names: server · client · junctor's own",
    `${namesIn("server")} · ${namesIn("client")} · ${namesIn("junctor")}`,
    "120 · 50",
  ],
  ["packages that @junctor/server depends on", ofServer.length, "2"],
  ["JavaScript loaded by a server on stdio", `${Math.round(bytes / 1024)} KB`, "300 KB"],
  [
    "CPU of that import · beside that of `node -e 0`",
    `${cpuMs.toFixed(0)} ms · ${share.toFixed(2)}`,
    "17 ms · 0.34",
  ],
  ["npm scripts", Object.keys(manifest.scripts).length, "12"],
  ["lines of README.md", read("README.md").trimEnd().split("\n").length, "90"],
];
const width = Math.max(...rows.map(([what]) => what.length));
for (const [what, count, goal] of rows) {
  console.log(`${what.padEnd(width)}  ${String(count).padStart(14)}${goal === "" ? "" : `   goal ${goal}`}`);
}
if (process.argv.includes("--long")) {
  for (const { file, line, length } of long)
    console.log(`${String(length).padStart(5)} lines  ${file}:${line}`);
}

/**
 * What Node loads for a server on stdio, the CPU of an import, and its ratio to what Node itself takes to start: the ratio hardly depends on the
 * machine. Both are measured in turns, and the best of fifteen counts: other work of the machine can only add to it.
 */
function importCost() {
  const hook = `import { writeSync } from "node:fs";
    export function load(url, context, next) {
      if (url.includes("/packages/")) writeSync(1, url + "\\n");
      return next(url, context);
    }`;
  const main = JSON.stringify(join(root, "packages/server/dist/index.js"));
  const run = (code) =>
    execFileSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8", input: "" });
  const loaded = run(`import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));
    const { createRegistry, createServer, serveStdio } = await import(${main});
    serveStdio(createServer(createRegistry(), { name: "idle", version: "1.0.0" }));`);
  const sizes = loaded
    .trim()
    .split("\n")
    .map((url) => statSync(new URL(url)).size);
  const cpuOf = (code) =>
    Number(
      run(`${code}
        const { user, system } = process.cpuUsage(globalThis.before);
        console.log((user + system) / 1000);`),
    );
  const rounds = Array.from({ length: 15 }, () => ({
    start: cpuOf(""),
    load: cpuOf(`globalThis.before = process.cpuUsage(); await import(${main});`),
  }));
  const best = (part) => Math.min(...rounds.map((round) => round[part]));
  const cpuMs = best("load");
  return { bytes: sizes.reduce((sum, size) => sum + size, 0), cpuMs, share: cpuMs / best("start") };
}

function codeLines(code) {
  const bare = code
    .replaceAll(/\/\*[^]*?\*\//g, "")
    .replaceAll(/^import [^;]*;$/gm, "")
    .replaceAll(/^export (?:type )?\{[^}]*\} from [^;]*;$/gm, "");
  return bare.split("\n").filter((line) => line.trim() !== "" && !line.trim().startsWith("//")).length;
}

function lineFinder(code) {
  const starts = [0, ...Array.from(code.matchAll(/\n/g), ({ index }) => index + 1)];
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

function visit(value, onNode) {
  if (Array.isArray(value)) for (const item of value) visit(item, onNode);
  else if (typeof value === "object" && value !== null) {
    if (typeof value.type === "string") onNode(value);
    for (const child of Object.values(value)) visit(child, onNode);
  }
}
