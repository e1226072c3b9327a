import { sep } from "node:path";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { expand } from "./expand.ts";

const source = {
  env: { A: "alpha", EMPTY: "", NESTED: "${A}", "PF(x86)": "C:", HOME: "/home/me", __proto__: undefined },
  folder: "/etc/proj",
};

describe("expanding", () => {
  test.each([
    ["nothing", "nothing"],
    ["${A}", "alpha"],
    ["<${A}${A}>", "<alphaalpha>"],
    ["${env:A}", "alpha"],
    ["${A:-other}", "alpha"],
    ["${NO:-other}", "other"],
    ["${NO:-}", ""],
    ["${NO:-a:-b}", "a:-b"],
    ["${env:NO:-other}", "other"],
    ["${EMPTY}", ""],
    ["${EMPTY:-other}", "other"],
    ["${PF(x86)}", "C:"],
    ["${NESTED}", "${A}"],
    ["$${A}", "${A}"],
    ["$$${A}", "$${A}"],
    ["$A $ {A} $", "$A $ {A} $"],
    ["${workspaceFolder}/x", "/etc/proj/x"],
    ["${workspaceFolderBasename}", "proj"],
    ["${userHome}", "/home/me"],
    ["a${/}b${pathSeparator}c", `a${sep}b${sep}c`],
  ])("%s gives %s", (text, expected) => {
    expect(expand(text, source)).toMatchObject({ text: expected, faults: [] });
  });

  test("tells what came from the environment, and nothing else", () => {
    expect(expand("${A} ${NO:-other} ${NESTED} ${workspaceFolder}", source).values).toEqual([
      { name: "A", value: "alpha" },
      { name: "NESTED", value: "${A}" },
    ]);
  });

  test("what an object inherits is not a variable", () => {
    expect(expand("${toString} ${constructor}", source).faults).toMatchObject([
      { kind: "unset", name: "toString" },
      { kind: "unset", name: "constructor" },
    ]);
  });

  test("without a folder or a home, says so", () => {
    expect(expand("${workspaceFolder}${workspaceFolderBasename}${userHome}", { env: {} }).faults).toEqual([
      {
        kind: "unknown",
        name: "workspaceFolder",
        message: "${workspaceFolder} is not known here: write the folder itself",
      },
      {
        kind: "unknown",
        name: "workspaceFolderBasename",
        message: "${workspaceFolderBasename} is not known here: write the name itself",
      },
      {
        kind: "unknown",
        name: "userHome",
        message: "${userHome} is not known here: set HOME, or write the folder itself",
      },
    ]);
  });
});

const name = fc.stringMatching(/^[A-Z]{1,3}$/);
const piece = fc.oneof(
  fc.string(),
  fc.constantFrom("$", "{", "}", "${", "$${", ":-", "env:", "input:", "${A}", "${B:-x}"),
  name.map((variable) => `\${${variable}}`),
);
const text = fc.array(piece, { maxLength: 10 }).map((parts) => parts.join(""));

test("nothing makes it throw, and no fault repeats a value", () => {
  fc.assert(
    fc.property(text, fc.dictionary(name, fc.constant("s3cr3t-value")), (given, env) => {
      const { faults } = expand(given, { env });
      for (const { message } of faults) expect(message).not.toContain("s3cr3t-value");
    }),
    { numRuns: runs(1000) },
  );
});

test("a value is never expanded again, whatever it holds", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, text), { minLength: 1, maxLength: 5 }), (entries) => {
      const env = Object.fromEntries(entries);
      const names = Object.keys(env);
      const expansion = expand(names.map((variable) => `\${${variable}}`).join("|"), { env });
      expect(expansion.text).toBe(names.map((variable) => env[variable]).join("|"));
      expect(expansion.faults).toEqual([]);
    }),
    { numRuns: runs(500) },
  );
});

test("an escaped text comes out as it was", () => {
  fc.assert(
    fc.property(text, (given) => {
      // A $ before an escape would be read as part of it.
      fc.pre(!given.includes("$${"));
      expect(
        expand(
          given.replaceAll("${", () => "$${"),
          { env: {} },
        ),
      ).toEqual({
        text: given,
        values: [],
        secrets: [],
        faults: [],
      });
    }),
    { numRuns: runs(500) },
  );
});

describe("a secret of the keychain", () => {
  const readSecret = (name: string) => (name === "a/KEY" ? { text: "${A}" } : { problem: "it is gone" });

  test("is filled in as it is, and is a value to hide", () => {
    expect(expand("Bearer ${keychain:a/KEY}", { ...source, readSecret })).toEqual({
      text: "Bearer ${A}",
      values: [],
      secrets: ["${A}"],
      faults: [],
    });
  });

  test("that cannot be had is a fault that names it", () => {
    const message = "${keychain:b} has no value: it is gone";
    expect(expand("${keychain:b}", { ...source, readSecret }).faults).toEqual([
      { kind: "unknown", name: "keychain:b", message },
    ]);
    expect(expand("${keychain:b}", source).faults).toHaveLength(1);
    expect(expand("${keychain:}", { ...source, readSecret }).faults[0]?.kind).toBe("malformed");
  });
});
