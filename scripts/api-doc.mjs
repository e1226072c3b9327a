// Writes docs/reference/api/*.md from the declarations in packages/*/dist: every public name with its sentence, its signature, its example.
//
//   node scripts/api-doc.mjs           builds the packages if they are stale, and writes the pages
//   node scripts/api-doc.mjs --check   exit code 1 when a page is not what it would write, or when a name has no sentence

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { reportSetupError, root, setup } from "./setup.mjs";

/** The entry points, in the order in which a name that two of them export is looked for, and where each is imported from. */
const entries = [
  {
    page: "server",
    from: "@junctor/server",
    file: "server/dist/index.d.ts",
    about: "Write tools and serve them.",
  },
  {
    page: "server",
    from: "@junctor/server/fetch",
    file: "server/dist/fetch.d.ts",
  },
  {
    page: "client",
    from: "@junctor/client",
    file: "client/dist/index.d.ts",
    about: "Connect to any MCP server, list and call its tools.",
  },
  ...["ai-sdk", "anthropic", "openai"].map((sdk) => ({
    page: "client",
    from: `@junctor/client/${sdk}`,
    file: `client/dist/${sdk}.d.ts`,
  })),
  {
    page: "junctor",
    from: "junctor",
    file: "junctor/dist/index.d.ts",
    about:
      "The gateway. It also exports every name of [`@junctor/server`](server.md) and [`@junctor/client`](client.md).",
  },
  {
    page: "testing",
    from: "junctor/testing",
    file: "junctor/dist/testing/index.d.ts",
    about: "Test tools without a process or a port.",
  },
];

/** What is declared in `@junctor/core` has a page of its own: several packages export it. */
const corePage = "core";
const coreAbout =
  "What servers, clients and gateways share. Import each name from a package that exports it.";

const kinds = [
  ["Functions", "TSDeclareFunction", "VariableDeclaration"],
  ["Classes", "ClassDeclaration"],
  ["Types", "TSInterfaceDeclaration", "TSTypeAliasDeclaration"],
];

try {
  setup();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}
// Not before set-up: it may install them.
const { parseSync } = await import("rolldown/utils");
const { format } = await import("oxfmt");

const packages = join(root, "packages");
const folder = join(root, "docs/reference/api");
const parsed = new Map();
const names = collectNames();
const undocumented = [...names.values()].flatMap(({ name, sentence, declarations }) => [
  ...(sentence === "" ? [name] : []),
  ...(name.endsWith("Options")
    ? declarations.flatMap(({ undocumented: members }) => members.map((member) => `${name}.${member}`))
    : []),
]);
if (undocumented.length > 0)
  fail(`these public names have no sentence of documentation: ${undocumented.join(", ")}`);

mkdirSync(folder, { recursive: true });
for (const page of [corePage, ...new Set(entries.map((entry) => entry.page))]) {
  const file = join(folder, `${page}.md`);
  const text = await writePage(page);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text)
    fail(`docs/reference/api/${page}.md is not up to date: run node scripts/api-doc.mjs`);
}

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

/** Every public name, with its declarations and the packages that export it. */
function collectNames() {
  const found = new Map();
  for (const { page, from, file } of entries) {
    for (const [name, place] of exportsOf(join(packages, file))) {
      const declarations = declarationsOf(place.file, place.name);
      const known = found.get(name);
      if (known !== undefined) known.from.push(from);
      else {
        const isCore = place.file.startsWith(join(packages, "core"));
        const comments = declarations.map(({ comment }) => parseComment(comment));
        const sentence = comments.map(({ text }) => text).find((text) => text !== "") ?? "";
        found.set(name, {
          name,
          page: isCore ? corePage : page,
          from: [from],
          declarations,
          comments,
          sentence,
        });
      }
    }
  }
  const key = (name) => name.toLowerCase();
  return new Map([...found].toSorted(([one], [other]) => (key(one) < key(other) ? -1 : 1)));
}

/** Public name → the file that declares it and the name it has there. Names that `export *` takes from another package are left out. */
function exportsOf(file) {
  const exports = [];
  for (const node of parse(file).body) {
    if (node.type !== "ExportNamedDeclaration" || node.source === null) continue;
    const target = resolveModule(file, node.source.value);
    for (const { local, exported } of node.specifiers)
      exports.push([exported.name, follow(target, local.name)]);
  }
  return exports;
}

/** Where a name that a file exports is declared. */
function follow(file, name) {
  const imported = new Map();
  for (const node of parse(file).body) {
    if (node.type === "ImportDeclaration")
      for (const { local, imported: of } of node.specifiers)
        imported.set(local.name, [node.source.value, of?.name]);
    if (node.type !== "ExportNamedDeclaration") continue;
    for (const { local, exported } of node.specifiers) {
      if (exported.name !== name) continue;
      const [source, of] =
        node.source === null ? (imported.get(local.name) ?? []) : [node.source.value, local.name];
      return source === undefined ? { file, name: local.name } : follow(resolveModule(file, source), of);
    }
  }
  const [source, of] = imported.get(name) ?? [];
  return source === undefined ? { file, name } : follow(resolveModule(file, source), of);
}

function resolveModule(from, source) {
  if (source.startsWith(".")) return join(dirname(from), source.replace(/\.js$/, ".d.ts"));
  const [, name, room] = /^@junctor\/(\w+)\/([\w-]+)$/.exec(source) ?? [];
  if (name === undefined) throw new Error(`${relative(root, from)} exports names of ${source}`);
  return join(packages, name, "dist", name === "core" ? `${room}/index.d.ts` : `${room}.d.ts`);
}

/** The statements of a file that declare a name, each with the comment before it. */
function declarationsOf(file, name) {
  const { text, comments, body } = parse(file);
  const found = body.flatMap((node) => {
    const declaration = node.declaration ?? node;
    const own = declaration.declarations?.[0] ?? declaration;
    if (own.id?.name !== name) return [];
    const commentOf = ({ start }) =>
      comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === "")?.value ?? "";
    const members = declaration.type === "TSInterfaceDeclaration" ? declaration.body.body : [];
    return [
      {
        file,
        kind: declaration.type,
        code: text.slice(declaration.start, node.end),
        comment: commentOf(node),
        undocumented: members
          .filter((member) => commentOf(member) === "")
          .map(({ key }) => key?.name ?? "()"),
      },
    ];
  });
  if (found.length === 0) throw new Error(`${name} is not declared in ${relative(root, file)}`);
  return found;
}

function parse(file) {
  const known = parsed.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(file, "utf8");
  const { program, comments } = parseSync(file, text);
  const result = {
    text,
    comments: comments.filter(({ value }) => value.startsWith("*")),
    body: program.body,
  };
  parsed.set(file, result);
  return result;
}

/** The text of a comment, and its examples. */
function parseComment(comment) {
  const lines = comment
    .replace(/^\*/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  const [text = "", ...tags] = lines.join("\n").trim().split(/^@/m);
  const examples = tags.flatMap((tag) =>
    tag.startsWith("example") ? [tag.slice("example".length).trim()] : [],
  );
  const rest = tags.filter((tag) => !tag.startsWith("example")).map(toSentence);
  return { text: [text.trim(), ...rest].filter((part) => part !== "").join("\n\n"), examples };
}

function toSentence(tag) {
  const [, name = "", text = ""] = /^(\w+)\s*([^]*)$/.exec(tag.trim()) ?? [];
  if (name === "throws")
    return `Throws ${text.replace(/^\{@link (\w+)\}|^\{(\w+)\}/, "$1$2").replace(/\.?$/, ".")}`;
  if (name === "param") return text.replace(/^(\w+)\s+(?:- )?/, "`$1`: ");
  return `${name}: ${text}`;
}

async function writePage(page) {
  const own = [...names.values()].filter((each) => each.page === page);
  const here = entries.filter((entry) => entry.page === page);
  const title =
    page === corePage
      ? "Shared by servers, clients and gateways"
      : here.map(({ from }) => `\`${from}\``).join(" and ");
  const lines = [
    "<!-- Made by scripts/api-doc.mjs from the declarations of the packages. Change their comments, then run the script. -->",
    "",
    `# ${title}`,
    "",
    page === corePage ? coreAbout : here[0].about,
    "",
  ];
  const groups = kinds.map(([heading, ...types]) => ({
    heading,
    members: own.filter(({ declarations }) => types.includes(declarations[0].kind)),
  }));
  for (const { heading, members } of groups) {
    if (members.length === 0) continue;
    lines.push(`**${heading}:** ${members.map(({ name }) => linkTo(name, page)).join(", ")}`, "");
  }
  if (page !== corePage) {
    const shared = [...names.values()].filter(
      (each) => each.page !== page && each.from.some((from) => here.some((entry) => entry.from === from)),
    );
    const links = shared.map(({ name }) => linkTo(name, page));
    if (links.length > 0) lines.push(`**It also exports:** ${links.join(", ")}`, "");
  }
  for (const { heading, members } of groups) {
    if (members.length === 0) continue;
    lines.push(`## ${heading}`, "");
    for (const member of members) lines.push(...(await describe(member)));
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

async function describe({ name, page, from, declarations, comments }) {
  const lines = [`### ${name}`, ""];
  if (page === corePage || from.length > 1 || from[0] !== entries.find((entry) => entry.page === page)?.from)
    lines.push(`From ${from.map((each) => `\`${each}\``).join(", ")}.`, "");
  const code = await formatCode(declarations.map((each) => each.code).join("\n"));
  const parts = declarations[0].kind === "TSDeclareFunction" ? partsOf(declarations[0]) : [];
  const shown = await formatCode([...declarations, ...parts].map((each) => each.code).join("\n\n"));
  for (const { text } of comments) if (text !== "") lines.push(linkNames(text, page), "");
  lines.push("```ts", shown, "```", "");
  for (const example of comments.flatMap((each) => each.examples))
    lines.push("```js", example.replace(/^```\w*\n|\n```$/g, ""), "```", "");
  const used = new Set(code.replaceAll(/\/\*\*[^]*?\*\//g, "").match(/\b\w+\b/g));
  const links = [...names.keys()].filter((each) => each !== name && /^[A-Z]/.test(each) && used.has(each));
  if (links.length > 0) lines.push(`See ${links.map((each) => linkTo(each, page)).join(", ")}.`, "");
  return lines;
}

/** The types of a function's options that are not public, so no page describes them elsewhere. */
function partsOf({ file, code }) {
  const parameters = code.slice(0, code.lastIndexOf("):"));
  return [...new Set(parameters.match(/\b[A-Z]\w*(?:Options|Spec|Params)\b/g))].flatMap((name) =>
    names.has(name) ? [] : declarationsOf(...Object.values(follow(file, name))),
  );
}

/** The declarations as a reader needs them: nothing private, in the project's format. */
async function formatCode(code) {
  const open = code
    .replaceAll(/^\s*#private;\n/gm, "")
    .replaceAll(/(?:\/\*\*(?:(?!\*\/)[^])*\*\/\s*)?(?:private|protected) [^\n]*;\n/g, "")
    // `BrandedError` makes `instanceof` hold across copies of a package: a detail of ours.
    .replaceAll("extends BrandedError", "extends Error")
    .replaceAll(/\{@link (\w+)\}/g, "`$1`")
    .replaceAll(/^export /gm, "");
  const { code: pretty, errors } = await format("api.d.ts", open, { printWidth: 88 });
  if (errors.length > 0) throw new Error(`${errors[0].message}\n${open}`);
  return pretty.trimEnd().replaceAll(/^declare /gm, "");
}

function linkNames(text, page) {
  return text
    .replaceAll(/\{@link (\w+)\}/g, (_, name) => (names.has(name) ? linkTo(name, page) : `\`${name}\``))
    .replaceAll(/(?<!`[^`\n]*)<(?=\w)/g, "&lt;");
}

function linkTo(name, page) {
  const target = names.get(name);
  return `[${name}](${target.page === page ? "" : `${target.page}.md`}#${name.toLowerCase()})`;
}
