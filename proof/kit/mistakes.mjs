// `npm run proof -- mistakes`: twenty mistakes that authors make, each in a program of its own. TypeScript must find each of them, in at most three
// lines that name the member; in JavaScript each must throw when the app is made, or fail its first use with a message. Needs a registry.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/setup.mjs";

const versions = ["5.4.5", "7.0.2"];
const maxLines = 3;

const app = 'createApp({ name: "a", version: "1" })';
const city = "input: z.object({ city: z.string() })";

/** What is wrong, the word that an error must name, and the program. `use` is the call that shows it, where registration cannot. */
const mistakes = [
  [
    "an option of another library",
    "authenticate",
    `createApp({ name: "a", version: "1", authenticate: () => undefined });`,
  ],
  ["no version", "version", `createApp({ name: "a" });`],
  ["a key of another library", "inputSchema", `${app}.tool("t", { inputSchema: z.object({}) }, () => "");`],
  ["no handler", "handler|arguments", `${app}.tool("t", {});`],
  ["an argument that is not in the schema", "cty", `${app}.tool("t", { ${city} }, ({ cty }) => cty);`],
  [
    "an argument that is not in the JSON Schema",
    "cty",
    `${app}.tool("t", { input: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }, ({ cty }) => cty);`,
  ],
  ["a member that the context does not have", "usr", `${app}.tool("t", {}, (_, { usr }) => String(usr));`],
  ["an input that is no object", "object", `${app}.tool("t", { input: z.string() }, () => "");`],
  [
    "a plain object of schemas as input",
    "z.object",
    `${app}.tool("t", { input: { city: z.string() } }, () => "");`,
  ],
  [
    "a result that does not fit the output",
    "celsius",
    `${app}.tool("t", { output: z.object({ celsius: z.number() }) }, () => ({ celsius: "warm" }));`,
    "tool",
  ],
  [
    "an image without its type",
    "arguments|mimeType",
    `${app}.tool("t", {}, () => image(new Uint8Array()));`,
    "tool",
  ],
  ["a task that is neither", "sometimes", `${app}.tool("t", { task: "sometimes" }, () => "");`],
  ["an unknown annotation", "readOnly", `${app}.tool("t", { annotations: { readOnly: true } }, () => "");`],
  ["arguments of a prompt as a list", "args", `${app}.prompt("p", { args: [{ name: "id" }] }, () => "");`],
  [
    "a prompt argument that does not exist",
    "idd",
    `${app}.prompt("p", { args: z.object({ id: z.string() }) }, ({ idd }) => idd);`,
  ],
  [
    "completion of an argument that does not exist",
    "idd",
    `${app}.prompt("p", { args: z.object({ id: z.string() }), complete: { idd: () => [] } }, () => "");`,
  ],
  [
    "a template variable that does not exist",
    "key",
    `${app}.resource("issue://{id}", {}, ({ key }) => key);`,
  ],
  [
    "completion of a variable that does not exist",
    "key",
    `${app}.resource("issue://{id}", { complete: { key: () => [] } }, () => "");`,
  ],
  [
    "a form that is not flat",
    "where",
    `${app}.tool("t", {}, async (_, { ask }) => { await ask("Where?", z.object({ where: z.object({ city: z.string() }) })); return ""; });`,
    "tool",
  ],
  [
    "a wrong key of an answer",
    "shure",
    `${app}.tool("t", {}, async (_, { ask }) => { const { shure } = await ask("Sure?", z.object({ sure: z.boolean() })); return String(shure); });`,
    "tool",
  ],
];

const head =
  'import { createApp, image } from "@junctor/server";\nimport { z } from "zod";\n\nexport default ';
const project = mkdtempSync(join(tmpdir(), "junctor-mistakes-"));
let failed = 0;
const report = (isRight, what, text) => {
  if (!isRight) failed++;
  console.log(
    `${isRight ? "ok    " : "FAILED"} ${what}${text === "" ? "" : `\n${text.replaceAll(/^/gm, "         ")}`}`,
  );
};

try {
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  const compilers = versions.map((version) => `ts-${version}@npm:typescript@${version}`);
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...compilers], {
    cwd: project,
    stdio: "ignore",
  });
  symlinkSync(join(root, "node_modules/zod"), join(project, "node_modules/zod"), "junction");
  symlinkSync(join(root, "node_modules/@junctor"), join(project, "node_modules/@junctor"), "junction");
  symlinkSync(join(root, "packages/junctor"), join(project, "node_modules/junctor"), "junction");
  mkdirSync(join(project, "js"));
  for (const [index, [, , code]] of mistakes.entries()) {
    writeFileSync(join(project, `m${index}.ts`), head + code);
    writeFileSync(join(project, `js/m${index}.mjs`), head + code);
  }
  writeFileSync(join(project, "right.ts"), `${head}${app}.tool("t", { ${city} }, ({ city }) => city);`);
  for (const version of versions) await compile(version);
  for (const [index, mistake] of mistakes.entries()) await runAsJavaScript(index, mistake);
} finally {
  rmSync(project, { recursive: true, force: true });
}
console.log(`${mistakes.length * (versions.length + 1) + versions.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function compile(version) {
  const words = [
    `node_modules/ts-${version}/bin/tsc`,
    ..."--noEmit --strict --skipLibCheck --pretty false --module nodenext".split(" "),
    ..."--target es2022 --lib es2022,esnext.disposable,dom right.ts".split(" "),
    ...mistakes.map((_, index) => `m${index}.ts`),
  ];
  const { stdout } = spawnSync(process.execPath, words, { cwd: project, encoding: "utf8" });
  /** The lines about each file: those that follow are indented. */
  const errors = new Map();
  let file = "";
  for (const line of stdout.split("\n").filter((one) => one !== "")) {
    file = /^(\w+)\.ts\(/.exec(line)?.[1] ?? file;
    errors.set(file, [...(errors.get(file) ?? []), line]);
  }
  report(
    !errors.has("right"),
    `TypeScript ${version}: a program without a mistake`,
    (errors.get("right") ?? []).join("\n"),
  );
  for (const [index, [what, word]] of mistakes.entries()) {
    const lines = errors.get(`m${index}`) ?? ["It compiles."];
    const text = lines.join("\n");
    const isRight = lines.length <= maxLines && namesIt(index, word, text) && !text.includes("No overload");
    report(isRight && errors.has(`m${index}`), `TypeScript ${version}: ${what}`, isRight ? "" : text);
  }
}

/** Whether an error has the word in it, or points at it. */
function namesIt(index, word, text) {
  const [, row = "1", column = "1"] = /\((\d+),(\d+)\)/.exec(text) ?? [];
  const pointed = (head + mistakes[index][2]).split("\n")[Number(row) - 1].slice(Number(column) - 1);
  return new RegExp(word).test(text) || new RegExp(`^(?:${word})`).test(pointed);
}

/** Makes the app, and uses it once if that is needed to see the mistake. */
async function runAsJavaScript(index, [what, word, , use]) {
  const program = `
    import { connectForTest } from "junctor/testing";
    const logged = [];
    console.error = (...given) => logged.push(given.map((each) => each?.stack ?? String(each)).join(" "));
    try {
      const { default: app } = await import("./js/m${index}.mjs");
      if (${use === undefined}) throw new Error("Nothing happened");
      const client = await connectForTest(app, { answers: { elicit: { action: "accept", content: { sure: true } } } });
      const { isError, content } = await client.callTool("t", {});
      console.log(JSON.stringify({ when: "at first use", text: isError ? [content[0].text, ...logged].join(" ") : "Nothing happened" }));
    } catch (error) {
      console.log(JSON.stringify({ when: "when made", text: String(error.message) }));
    }
    process.exit(0);`;
  writeFileSync(join(project, `run${index}.mjs`), program);
  const { stdout, stderr } = spawnSync(process.execPath, [`run${index}.mjs`], {
    cwd: project,
    encoding: "utf8",
  });
  const { when, text } = stdout === "" ? { when: "crashed", text: stderr } : JSON.parse(stdout);
  const isRight = new RegExp(word).test(text) && !text.startsWith("Nothing happened");
  report(isRight, `JavaScript ${when}: ${what}`, isRight ? "" : text);
}
