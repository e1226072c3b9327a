import { expect, test } from "vitest";
import * as errors from "../packages/core/src/errors/index.ts";
import { readSource, readSourceGraph } from "./source-graph.ts";

const entries = await errors.loadErrorEntries();
const rowsOf = (className: string): readonly errors.ErrorEntry[] =>
  entries.filter((entry) => entry.className === className);

/** Each class of errors with the text of its declaration. */
const classes = [...readSourceGraph().keys()].flatMap((file) =>
  [...readSource(file).matchAll(/class (\w+) extends BrandedError \{\n.*?\n\}\n/gs)].map(
    ([text, name = ""]) => ({
      name,
      text,
    }),
  ),
);

test("every class of errors has its rows in the table, and the table has rows of no other", () => {
  const names = new Set(entries.map(({ className }) => className));
  expect(classes.map(({ name }) => name).toSorted()).toEqual([...names].toSorted());
});

test.each(classes)("the table describes the fields of $name, and has its codes", ({ name, text }) => {
  const fields = [...text.matchAll(/^ {2}readonly (\w+)(?:;|:| =)/gm)].map(([, field = ""]) => field);
  expect(fields).toContain("code");
  const getters = [...text.matchAll(/^ {2}get (status)\(/gm)].map(([, field = ""]) => field);
  const described = Object.keys(rowsOf(name)[0]?.fields ?? {});
  expect([...described, "code"].toSorted()).toEqual([...fields, ...getters].toSorted());
  const [, code] = /readonly code = "(.*?)"/.exec(text) ?? [];
  if (code !== undefined) expect(rowsOf(name).map((entry) => entry.code)).toEqual([code]);
});
