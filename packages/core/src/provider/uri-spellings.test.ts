import * as fc from "fast-check";
import { expect, test } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { spellingsOf } from "./filters.ts";

test.each([
  ["note://secret", ["note://secret"]],
  ["https://host/a/b?c=d#e", ["https://host/a/b?c=d#e"]],
  ["note://%73ecret", ["note://%73ecret", "note://secret"]],
  ["x:a%20b", ["x:a%20b", "x:a b"]],
  ["file:///a/../b", ["file:///a/../b", "file:///b"]],
  ["file:///../../b", ["file:///../../b", "file:///b"]],
  ["file:///a%2F..%2Fb", ["file:///a%2F..%2Fb", "file:///a/../b", "file:///b"]],
  ["x:%2573", ["x:%2573", "x:%73", "x:s"]],
  ["x:%ff", ["x:%ff", "x:\uFFFD", "x:%EF%BF%BD"]],
  ["x:%", ["x:%"]],
])("%s may be read as %j", (uri, spellings) => {
  expect(spellingsOf(uri)).toEqual(spellings);
});

test("whatever is escaped, and however often, is judged by what it stands for", () => {
  const rounds = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), rounds, (word, times) => {
      const escape = (text: string): string =>
        Array.from(new TextEncoder().encode(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(
          "",
        );
      let escaped = escape(word);
      for (let round = 1; round < times; round++) escaped = escaped.replaceAll("%", "%25");
      expect(spellingsOf(`x:${escaped}`)).toContain(`x:${word}`);
    }),
  );
});

test.each(["/..", "%25", "//", "%2e%2e/", "/.\\"])(
  "the time grows with the length of %s, not faster",
  (part) => {
    const work = (count: number): unknown => spellingsOf(`file:///${part.repeat(count)}`);
    expect(growthOf({ small: 300, large: 2_400, work }, 24)).toBeLessThan(24);
  },
);
