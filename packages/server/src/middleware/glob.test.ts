import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { createGlob, createGlobs } from "./allow-list.ts";

/** Tries everything, as slowly as one likes. */
function naive(glob: string, name: string): boolean {
  if (glob === "") return name === "";
  if (glob[0] === "*") return naive(glob.slice(1), name) || (name !== "" && naive(glob, name.slice(1)));
  return name !== "" && (glob[0] === "?" || glob[0] === name[0]) && naive(glob.slice(1), name.slice(1));
}

describe("deny", () => {
  test.each([
    ["note://secret", "NOTE://SECRET", true],
    ["NOTE://Secret", "note://secret", true],
    ["own__note://secret", "own__note://SECRET", true],
    ["file:///etc/*", "file:///ETC/passwd", true],
    ["file:///straße/é", "file:///STRASSE/E\u0301", true],
    ["*secret*", "note://SECRET/1", true],
    ["note://secret", "note://secrets", false],
    // Names of tools and prompts have a case.
    ["delete_all", "Delete_All", false],
  ])("%s keeps %s away: %s", (glob, name, isKept) => {
    expect(createGlobs(undefined, [glob])(name)).toBe(!isKept);
    expect(createGlobs(undefined, [glob])("own__x", name)).toBe(!isKept);
  });

  test("is not weakened by what allow says, for which case counts", () => {
    const mayPass = createGlobs(["note://Open*"], ["note://openssl"]);
    expect(["note://Open", "note://open", "note://OpenSSL"].map((uri) => mayPass(uri))).toEqual([
      true,
      false,
      false,
    ]);
  });
});

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
      { numRuns: runs(5000) },
    );
  });

  // Trying everything would take 2 ** 500 steps.
  const many = 500;
  test.each([
    ["stars", "*a".repeat(many), true],
    ["stars that end otherwise", `${"*a".repeat(many)}*b`, false],
    ["one long piece", `*${"a".repeat(many)}b*`, false],
    ["single characters", `*${"a?".repeat(many)}b*`, false],
    ["nothing but stars", "*".repeat(2 * many), true],
    ["characters between stars", "*?".repeat(many), true],
  ])("of a thousand characters ends: %s", (_, glob, expected) => {
    expect(createGlob(glob)("a".repeat(2 * many))).toBe(expected);
  });
});

describe("lists of globs", () => {
  test("without an allow list let everything pass that is not denied", () => {
    const mayPass = createGlobs(undefined, ["*delete*"]);
    expect(["read", "delete_all"].map((name) => mayPass(name))).toEqual([true, false]);
    expect(createGlobs(undefined)("anything")).toBe(true);
  });

  test("with an empty allow list let nothing pass", () => {
    expect(createGlobs([])("anything")).toBe(false);
  });

  test("deny by either name, and allow by the first", () => {
    const mayPass = createGlobs(["files__*", "read"], ["delete", "files__move"]);
    expect(mayPass("files__delete", "delete")).toBe(false);
    expect(mayPass("files__move", "shift")).toBe(false);
    expect(mayPass("files__write", "write")).toBe(true);
    expect(mayPass("other__read", "read")).toBe(false);
  });

  test("deny what is allowed as well", () => {
    const mayPass = createGlobs(["files__*", "x"], ["files__delete"]);
    expect(["files__read", "files__delete", "x", "y"].map((name) => mayPass(name))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});
