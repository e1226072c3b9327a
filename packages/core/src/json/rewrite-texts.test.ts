import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { rewriteTexts } from "./rewrite.ts";

/** Masks single texts, as a redaction does. */
const mask =
  (...secrets: readonly string[]) =>
  (texts: readonly string[]): readonly string[] =>
    texts.map((text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, "X"), text));

describe("rewriteTexts", () => {
  test.each([
    ['{"a":"b","c":["b",{"b":true}]}', '{"a":"X","c":["X",{"X":true}]}'],
    ['{"\\u0062" :\n"\\u0062"}', '{"X" :\n"X"}'],
    ["[12345678901234567890,-0,1e400,1.0,null,false]", "[12345678901234567890,-0,1e400,1.0,null,false]"],
    ['{"n":4111}', '{"n":"X"}'],
    ['{"n":4.111e3}', '{"n":"X"}'],
    ['{"n":41110000000000000001}', '{"n":"X0000000000000001"}'],
    ['["\\"{","}",{"b":1}]', '["\\"{","}",{"X":1}]'],
    ["4111", '"X"'],
    ['"b"', '"X"'],
  ])("turns %s into %s", (text, expected) => {
    expect(rewriteTexts(text, mask("b", "4111"))).toBe(expected);
  });

  test("numbers keys that become equal, and keeps the values of all", () => {
    const text = '{"a":1,"b":2,"X":3,"X (2)":4,"c":{"a":5},"b":6}';
    expect(JSON.parse(rewriteTexts(text, mask("a", "b")))).toEqual({
      X: 1,
      "X (2)": 2,
      "X (3)": 3,
      "X (2) (2)": 4,
      c: { X: 5 },
      "X (4)": 6,
    });
  });

  test("means the same where nothing is rewritten", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(rewriteTexts(text, (texts) => texts))).toEqual(JSON.parse(text));
      }),
    );
  });

  test("leaves no text that it had to rewrite", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const seen: string[] = [];
        JSON.parse(
          rewriteTexts(text, (texts) => texts.map(() => "m")),
          (key, value: unknown) => {
            seen.push(key, typeof value === "string" || typeof value === "number" ? String(value) : "m");
            return Array.isArray(value) ? null : value;
          },
        );
        const isOurs = (shown: string): boolean => /^(?:m(?: \([0-9]+\))?|[0-9]*)$/.test(shown);
        expect(seen.filter((shown) => !isOurs(shown))).toEqual([]);
      }),
    );
  });

  test.each([
    ["keys that become equal", (count: number) => `{${'"a":1,'.repeat(count)}"a":1}`],
    ["backslashes", (count: number) => `"${"\\\\".repeat(count)}"`],
    ["numbers", (count: number) => `[${"12,".repeat(count)}1]`],
  ])("takes time in proportion to a text of %s", (_, textOf) => {
    const [small, large] = [500, 4_000];
    const texts = new Map([small, large].map((count) => [count, textOf(count)]));
    const work = (count: number): unknown => rewriteTexts(texts.get(count)!, mask("a"));
    expect(growthOf({ small, large, work }, 24)).toBeLessThan(24);
  });
});
