// Writes the tables of docs/reference/admin-api.md, between its markers, from the routes and answers of packages/junctor/src/admin.
//
//   node scripts/admin-doc.mjs           writes the page
//   node scripts/admin-doc.mjs --check   exit code 1 when the page is not what it would write

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadTypeScript } from "./load-typescript.mjs";
import { root } from "./setup.mjs";

const { routes } = await loadTypeScript("packages/junctor/src/admin/routes.ts");
const { accessReport, checkReport } = await loadTypeScript("packages/junctor/src/admin/answers.ts");

const page = join(root, "docs/reference/admin-api.md");
const before = readFileSync(page, "utf8");
const after = fill(fill(before, "routes", describeRoutes()), "answers", describeAnswers());
if (!process.argv.includes("--check")) writeFileSync(page, after);
else if (before !== after) {
  console.error("docs/reference/admin-api.md is not up to date: run node scripts/admin-doc.mjs");
  process.exitCode = 1;
}

function fill(text, name, content) {
  const [begin, end] = [`<!-- ${name}: made by scripts/admin-doc.mjs -->`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/reference/admin-api.md lacks ${begin} or ${end}`);
  return `${text.slice(0, from + begin.length)}\n\n${content}\n${text.slice(to)}`;
}

function describeRoutes() {
  return routes.map(describeRoute).join("\n");
}

function describeRoute({ method, path, summary, query, body, answer, events, status = 200, type }) {
  const table = (head, shape) => (shape === undefined ? [] : toTable(head, shape.schema));
  const lines = [
    `### \`${method} ${path}\``,
    "",
    summary,
    "",
    ...table("query", query),
    ...table("body", body),
    ...describeAnswer(answer, status, type),
    ...table("event", events),
  ];
  return lines.join("\n");
}

function describeAnswer(answer, status, type) {
  if (answer === undefined) return ["Answers with an event stream.", ""];
  const code = status === 200 ? "" : `${status} and `;
  if (type !== undefined) return [`Answers with \`${type}\`.`, ""];
  const { schema } = answer;
  if (schema.$ref !== undefined) return [`Answers with ${code}${typeOf(schema)}.`, ""];
  if (Object.keys(schema.properties ?? {}).length === 0)
    return [
      `Answers with ${code}${schema.properties === undefined ? lower(schema.description) : "`{}`."}`,
      "",
    ];
  return [`Answers with ${code}an object:`, "", ...toTable("member", schema)];
}

function describeAnswers() {
  const shapes = [...routes.flatMap(({ answer, events }) => [answer, events]), checkReport, accessReport];
  const schemas = Object.assign({}, ...shapes.map((shape) => shape?.definitions));
  const names = Object.keys(schemas).toSorted();
  return names
    .map((name) =>
      [`### ${name}`, "", schemas[name].description, "", ...toTable("member", schemas[name])].join("\n"),
    )
    .join("\n");
}

function toTable(head, schema) {
  const rows = toRows(schema, "");
  if (rows.length === 0) return [];
  return [
    `| ${head} | type | meaning |`,
    "|---|---|---|",
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
  ];
}

/** The members of an object, and those of objects in it. */
function toRows({ properties = {}, required = [] }, prefix) {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const isOptional = !required.includes(name) || schema.default !== undefined;
    const path = prefix + name;
    const usual = schema.default === undefined ? "" : ` \`${schema.default}\` without it.`;
    const row = [`\`${path}\`${isOptional ? "?" : ""}`, typeOf(schema), (schema.description ?? "") + usual];
    const inner = schema.items ?? schema;
    return [row, ...toRows(inner, schema.items === undefined ? `${path}.` : `${path}[].`)];
  });
}

function typeOf({ $ref, anyOf, enum: words, type, items, additionalProperties }) {
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ");
  if (words !== undefined) return words.map((word) => `\`${word}\``).join(", ");
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (additionalProperties?.type !== undefined || additionalProperties?.$ref !== undefined)
    return `object of ${typeOf(additionalProperties)}`;
  if (Array.isArray(type)) return type.join(" or ");
  const plain = { string: "text", integer: "count", boolean: "flag" };
  return plain[type] ?? type ?? "any JSON";
}

function lower(text) {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
