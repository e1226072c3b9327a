import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
// @ts-expect-error -- a script without types
import { rows } from "../proof/attacks/lib/bundle.mjs";
// @ts-expect-error -- a script without types
import { mergeResults, renderPage } from "../proof/attacks/lib/page.mjs";
import { root } from "./source-graph.ts";

const names = rows as readonly string[];
const line = { what: "kills", count: "3 kills", bound: "0 orphans", figure: "0 orphans", isMet: true };
const row = {
  title: "Kills",
  how: "By hand.",
  lines: [line],
  date: "2026-01-01",
  commit: "abc",
  node: "20",
  machine: "one",
};
const render = renderPage as (results: object, names: readonly string[]) => string;
const merge = mergeResults as (earlier: object, rows: object, names: readonly string[]) => object;

test("every row of the scorecard is a file, and every file a row", () => {
  const files = readdirSync(join(root, "proof/attacks/rows")).map((file) => file.replace(".ts", ""));
  expect(files.toSorted()).toEqual(names.toSorted());
});

test("figures of a run replace earlier ones of the same row only, in the order of the rows", () => {
  const earlier = { rows: { b: 1, a: 2, gone: 3 } };
  expect(JSON.stringify(merge(earlier, { a: 4 }, ["a", "b"]))).toBe('{"rows":{"a":4,"b":1}}');
});

test("a bound that is not met is named at the top of the page", () => {
  expect(render({ rows: { kills: row } }, ["kills"])).toContain("**1 of 1 bounds are met.**");
  const broken = { ...line, figure: "2 orphans | left", isMet: false };
  const page = render({ rows: { kills: { ...row, lines: [line, broken] } } }, ["kills"]);
  expect(page).toContain("**1 of 2 bounds are met.** Not met:");
  expect(page).toContain("- kills: 2 orphans | left");
  expect(page).toContain("| kills | 3 kills | 0 orphans | 2 orphans \\| left | **not met** |");
});

test("a row without figures is named at the top of the page", () => {
  expect(render({ rows: { kills: row } }, ["kills"])).not.toContain("Rows without figures");
  expect(render({ rows: { kills: row } }, ["kills", "soak"])).toContain(
    "Rows without figures of a full run: soak.",
  );
});

test("the page says what its figures say", () => {
  const file = join(root, "docs/evidence/reliability.json");
  if (!existsSync(file)) return;
  const results = JSON.parse(readFileSync(file, "utf8")) as object;
  expect(readFileSync(join(root, "docs/evidence/reliability.md"), "utf8")).toBe(render(results, names));
});
