import { describe, expect, test } from "vitest";
import type { Approved, LockPart } from "../../lock/lock-file.ts";
import { describeChange, diffDefinitions } from "./lock-diff.ts";

const of = (part: LockPart, things: { readonly [name: string]: unknown }): Approved =>
  new Map([[part, new Map(Object.entries(things))]]);
const show = (before: Approved, after: Approved): string =>
  diffDefinitions(before, after).map(describeChange).join("");

test("what is new, changed and gone is shown member by member, and the rest is not", () => {
  const search = {
    name: "search",
    description: "Searches.",
    inputSchema: { properties: { q: { type: "string" } } },
  };
  const before = of("tools", { search, same: { name: "same" }, old: { name: "old" } });
  const schema = { properties: { q: { type: "number" } }, required: ["q"] };
  const after = of("tools", {
    search: { ...search, inputSchema: schema, annotations: { readOnlyHint: true } },
    same: { name: "same" },
    more: { name: "more", inputSchema: {} },
  });
  expect(show(before, after)).toBe(
    [
      "  + tool more new",
      "      name",
      '        + "more"',
      "      inputSchema",
      "        + {}",
      "  - tool old gone",
      "  ~ tool search changed",
      "      inputSchema.properties.q.type",
      '        - "string"',
      '        + "number"',
      "      inputSchema.required[0]",
      '        + "q"',
      "      annotations.readOnlyHint",
      "        + true",
      "",
    ].join("\n"),
  );
});

describe("hostile text", () => {
  // Escapes of a terminal, C1, direction marks, zero width, tags, a variation selector, odd blanks, private use, half a pair.
  const hostile = "\u001b[2J\u009b31m\u202e\u200b\u{e0041}\ufe0f\u00a0\u3000\ue000\ud800\r\u0007\u2028end";

  test.each<[string, Approved]>([
    ["a name", of("tools", { [hostile]: {} })],
    ["a key", of("tools", { a: { [hostile]: 1 } })],
    ["a value", of("tools", { a: { description: hostile } })],
    ["instructions", of("instructions", { "": hostile })],
  ])("in %s is shown, and a terminal obeys none of it", (_, after) => {
    const shown = show(new Map(), after);
    expect(shown).toMatch(/^[\x20-\x7e\n]*$/);
    expect(shown).toContain(
      String.raw`\u001b[2J\u009b31m\u202e\u200b\u{e0041}\ufe0f\u00a0\u3000\ue000\ud800\r\u0007\u2028end`,
    );
  });

  test("in another spelling than before is a change that can be seen", () => {
    const shown = show(of("tools", { a: { d: "Send." } }), of("tools", { a: { d: "Send\u200b." } }));
    expect(shown).toContain('- "Send."');
    expect(shown).toContain(String.raw`+ "Send\u200b."`);
  });

  test("of any length is shown to its end", () => {
    const long = `${"x".repeat(100_000)} and then the secret`;
    expect(show(new Map(), of("tools", { a: { description: long } }))).toContain("and then the secret");
  });
});

test("a key with a dot is not taken for two keys", () => {
  const before = of("tools", { a: { x: { y: 1 } } });
  const after = of("tools", { a: { "x.y": 1 } });
  expect(show(before, after)).toContain('["x.y"]');
});
