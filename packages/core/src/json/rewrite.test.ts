import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText, seededJsonTexts } from "../../../../test/support/arbitrary-json.ts";
import { growthOf } from "../../../../test/support/growth.ts";
import { rewriteStrings } from "./rewrite.ts";

const shout = (value: string): string => value.toUpperCase();

/** Every string that is a value, as a full parser finds them. */
function parsedStrings(text: string): string[] {
  const found: string[] = [];
  JSON.parse(text, (_, value: unknown) => {
    if (typeof value === "string") found.push(value);
    return value;
  });
  return found;
}

describe("rewriteStrings", () => {
  test.each([
    ['"a"', '"A"'],
    ['{"a":"a"}', '{"a":"A"}'],
    ['{"a" :\n"a" , "b":["b",{"c":"c"}]}', '{"a" :\n"A" , "b":["B",{"c":"C"}]}'],
    ['["\\u0061\\"b"]', '["A\\"B"]'],
    ['["a\\\\","b"]', '["A\\\\","B"]'],
    [
      '{"n":12345678901234567890,"z":-0,"e":1e400,"s":"x","f":1.0}',
      '{"n":12345678901234567890,"z":-0,"e":1e400,"s":"X","f":1.0}',
    ],
    ['{"a":"B","a":"c"}', '{"a":"B","a":"C"}'],
    ['"\\ud800x"', '"\\ud800X"'],
  ])("turns %s into %s", (text, expected) => {
    expect(rewriteStrings(text, shout)).toBe(expected);
  });

  test("leaves every byte of a text in which nothing is rewritten", () => {
    fc.assert(fc.property(jsonText(), (text) => rewriteStrings(text, (value) => value) === text));
    for (const text of seededJsonTexts(1, 500)) expect(rewriteStrings(text, (value) => value)).toBe(text);
  });

  test("gives each string value once, decoded, and no key", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const seen: string[] = [];
        rewriteStrings(text, (value) => (seen.push(value), value));
        expect(seen.toSorted()).toEqual(parsedStrings(text).toSorted());
      }),
    );
  });

  test("changes what a parser sees in the strings, and nothing else", () => {
    fc.assert(
      fc.property(jsonText(), (text) => {
        const expected: unknown = JSON.parse(text, (_, value: unknown) =>
          typeof value === "string" ? shout(value) : value,
        );
        expect(JSON.parse(rewriteStrings(text, shout))).toEqual(expected);
      }),
    );
  });

  test("keeps everything between the strings byte for byte", () => {
    const mark = "a mark that occurs nowhere";
    const outside = (text: string): string =>
      text.replaceAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g, (found, colon) =>
        colon === undefined ? JSON.stringify(mark) : found,
      );
    fc.assert(fc.property(jsonText(), (text) => rewriteStrings(text, () => mark) === outside(text)));
  });

  test.each([
    ["backslashes", (count: number) => `"${"\\\\".repeat(count)}"`],
    ["quotes", (count: number) => `"${'\\"'.repeat(count)}"`],
    ["small strings", (count: number) => `[${'"",'.repeat(count)}""]`],
  ])("takes time in proportion to a text of %s", (_, textOf) => {
    const [small, large] = [500, 4_000];
    const texts = new Map([small, large].map((count) => [count, textOf(count)]));
    for (const text of texts.values()) expect(JSON.parse(text)).toBeDefined();
    const work = (count: number): unknown => rewriteStrings(texts.get(count)!, (value) => value);
    expect(growthOf({ small, large, work }, 24)).toBeLessThan(24);
  });
});
