import * as fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import type { Separator } from "../../../core/src/compose/namespace.ts";
import { findSamePrefixes, isPrefix, toPrefix } from "./parse-config.ts";

const separators: readonly Separator[] = ["__", "_", "-", ".", "/"];

test.each<[string, Separator, string]>([
  ["github", "__", "github"],
  ["my-server_1.x", "__", "my-server_1.x"],
  ["my server", "__", "my-server"],
  ["@scope/x", "__", "scope-x"],
  ["io.github.me/tool", "__", "io.github.me-tool"],
  ["my_db (read only)", "__", "my_db-read-only"],
  ["a__b", "__", "a-b"],
  ["a_", "__", "a"],
  ["my_db", "_", "my-db"],
  ["my-db", "-", "my_db"],
  ["a.b", ".", "a-b"],
  ["日本", "__", "server-cf2abf0c"],
  ["a-name-that-is-much-longer-than-others", "__", "a-name-that-is-much-lon-8af8aa25"],
])("the prefix of %s before %s is %s", (name, separator, prefix) => {
  expect(toPrefix(name, separator)).toBe(prefix);
});

test("every name has a prefix that can stand before every separator, always the same", () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, unit: "grapheme" }),
      fc.constantFrom(...separators),
      (name, separator) => {
        const prefix = toPrefix(name, separator);
        expect(isPrefix(prefix, separator)).toBe(true);
        expect(toPrefix(name, separator)).toBe(prefix);
        expect(toPrefix(prefix, separator)).toBe(prefix);
      },
    ),
    { numRuns: runs(1000) },
  );
});

test("prefixes that look the same in a name are found, and false is not a prefix", () => {
  const prefixes = new Map<string, string | false>([
    ["one", "a.b"],
    ["two", "c"],
    ["three", "a_b"],
    ["four", false],
    ["five", false],
  ]);
  expect(findSamePrefixes(prefixes, "__")).toEqual([["one", "three"]]);
  expect(findSamePrefixes(prefixes, "/")).toEqual([]);
});
