import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { leastCostOf } from "../../test/support/growth.ts";
import { createGlob, createGlobs } from "./glob.ts";

/** Tries everything, as slowly as one likes. */
function naive(glob: string, name: string): boolean {
  if (glob === "") return name === "";
  if (glob[0] === "*") return naive(glob.slice(1), name) || (name !== "" && naive(glob, name.slice(1)));
  return name !== "" && (glob[0] === "?" || glob[0] === name[0]) && naive(glob.slice(1), name.slice(1));
}

describe("a glob", () => {
  test.each([
    ["github__*", "github__search", true],
    ["github__*", "xgithub__search", false],
    ["*__search", "github__search", true],
    ["git*search", "git_search", true],
    ["git*search", "gitsearch", true],
    ["git*tsearch", "gitsearch", false],
    ["?b", "ab", true],
    ["?b", "b", false],
    ["a.c", "abc", false],
    ["A", "a", false],
    ["a[b]", "a[b]", true],
    ["*", "", true],
    ["", "", true],
    ["", "a", false],
    ["***a***", "a", true],
    ["*?*", "", false],
    ["a?", "a?", true],
    ["*?x*", "?y?x", true],
    ["*é?*", "caféx", true],
  ])("%s on %s: %s", (glob, name, expected) => {
    expect(createGlob(glob)(name)).toBe(expected);
  });

  const letters = fc.constantFrom("a", "b", "?", "*");
  test("decides as one that tries everything", () => {
    const globs = fc.string({ unit: letters, maxLength: 10 });
    const names = fc.string({ unit: fc.constantFrom("a", "b", "?"), maxLength: 12 });
    fc.assert(
      fc.property(globs, names, (glob, name) => createGlob(glob)(name) === naive(glob, name)),
      { numRuns: 5000 },
    );
  });

  test("decides so across the bounds of a word of 32 too", () => {
    const piece = fc.string({ unit: fc.constantFrom("a", "a", "a", "?", "b"), minLength: 30, maxLength: 70 });
    const noise = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 40 });
    fc.assert(
      fc.property(piece, noise, noise, (middle, before, after) => {
        const name = before + middle.replaceAll("?", "b") + after;
        expect(createGlob(`*${middle}*`)(name)).toBe(true);
        expect(createGlob(`*${middle}?*`)(name)).toBe(naive(`*${middle}?*`, name));
      }),
    );
  });

  const many = 5000;
  test.each([
    ["stars", "*a".repeat(many), "a".repeat(2 * many)],
    ["stars that end otherwise", `${"*a".repeat(many)}*b`, "a".repeat(2 * many)],
    ["one long piece", `*${"a".repeat(many)}b*`, "a".repeat(2 * many)],
    ["single characters", `*${"a?".repeat(many)}b*`, "a".repeat(2 * many)],
    ["nothing but stars", "*".repeat(2 * many), "a".repeat(2 * many)],
    ["characters between stars", "*?".repeat(many), "a".repeat(2 * many)],
  ])("of ten thousand characters is quick: %s", (_, glob, name) => {
    const fits = createGlob(glob);
    const words = new Int32Array(Math.ceil(many / 32));
    /** Goes over all words of a piece for each character of a name, and does as little as that can be. */
    const readAll = (): void => {
      for (let read = 0; read < 2 * many; read++)
        for (let word = 0; word < words.length; word++) words[word] = (words[word]! << 1) ^ read;
    };
    // To compare the characters of a piece one by one takes ten times as long.
    expect(leastCostOf(() => fits(name)) / leastCostOf(readAll)).toBeLessThan(4);
  });
});

describe("lists of globs", () => {
  test("without an allow list let everything pass that is not denied", () => {
    const mayPass = createGlobs(undefined, ["*delete*"]);
    expect(["read", "delete_all"].map(mayPass)).toEqual([true, false]);
    expect(createGlobs(undefined)("anything")).toBe(true);
  });

  test("with an empty allow list let nothing pass", () => {
    expect(createGlobs([])("anything")).toBe(false);
  });

  test("deny what is allowed as well", () => {
    const mayPass = createGlobs(["files__*", "x"], ["files__delete"]);
    expect(["files__read", "files__delete", "x", "y"].map(mayPass)).toEqual([true, false, true, false]);
  });
});
