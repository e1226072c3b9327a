import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { runs } from "../../../../test/support/runs.ts";
import { ConfigError, type ConfigIssue } from "../../../core/src/errors/index.ts";
import { createFindings, type Findings } from "./findings.ts";
import { parseJsonc } from "./jsonc.ts";

const read = (): Findings => createFindings({ file: "f", env: {} });
const parse = (text: string): unknown => parseJsonc(text, read());

describe("what people write", () => {
  test.each<[string, unknown]>([
    ['{ "a": 1, // one\n "b": 2 /* two */ }', { a: 1, b: 2 }],
    ['{ "a": [1, 2,], }', { a: [1, 2] }],
    ["/* */[/*a*/1/*b*/,/*c*/]//end", [1]],
    ['{ "url": "http://a/*b*/", "c": "d // e,]" }', { url: "http://a/*b*/", c: "d // e,]" }],
    ['\uFEFF{ "a": null }', { a: null }],
    ["// nothing\r\n", undefined],
    ["", undefined],
    ['"\\u00e9\\"\\\\"', 'é"\\'],
    ["-0.5e+3", -500],
  ])("%j", (text, value) => {
    expect(parse(text)).toEqual(value);
  });

  test("`__proto__` is a key like any other", () => {
    const value = parse('{ "__proto__": { "a": 1 } }') as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test("a key that is written twice is an issue at every level, and the rest is read", () => {
    const findings = read();
    parseJsonc('{ "a": [{ "b c": 1,\n "b c": 2 }],\n\n "a": 3, "d": 4 }', findings);
    expect(findings.issues).toEqual([
      {
        path: 'a[0]["b c"]',
        at: { line: 2, column: 2 },
        message: "is written twice, in lines 1 and 2: keep one of them",
      },
      {
        path: "a",
        at: { line: 4, column: 2 },
        message: "is written twice, in lines 1 and 4: keep one of them",
      },
    ]);
  });

  test("lines are counted however they end, and a byte order mark is in none", () => {
    for (const end of ["\n", "\r\n", "\r"])
      expect(() => parse(`{${end}  "a": 1${end}  x }`)).toThrow(/^f:3:3: /);
    expect(() => parse("\uFEFFx")).toThrow(/^f:1:1: /);
  });
});

describe("a syntax error says where it is and what to write", () => {
  test.each([
    [
      "{",
      '1:2: expected a name in double quotes or "}", found the end of the file: is a bracket not closed?',
    ],
    ['{ "mcpServers": {} ', '1:20: expected "," or "}", found the end of the file: is a bracket not closed?'],
    ['{ "mcpServers": {} } }', '1:22: expected the end of the file, found "}"'],
    [
      "{ mcpServers: {} }",
      '1:3: expected a name in double quotes or "}", found mcpServers (write texts and names in double quotes)',
    ],
    [
      "{ 'mcpServers': {} }",
      '1:3: expected a name in double quotes or "}", found \' (write plain double quotes: ")',
    ],
    [
      "{ “mcpServers”: {} }",
      '1:3: expected a name in double quotes or "}", found “ (write plain double quotes: ")',
    ],
    [
      '{ "mcpServers": {\n  "x": { "command": "a" "args": [] } } }',
      '2:25: expected "," or "}", found a string: is a comma missing before it?',
    ],
    ['{ "mcpServers" {} }', '1:16: expected ":", found "{"'],
    ['{ "a": True }', "1:8: expected a value, found True (write true)"],
    ['{ "a": None }', "1:8: expected a value, found None (write null)"],
    ['{ "a": sk-1234567890 }', "1:8: expected a value, found sk (write texts and names in double quotes)"],
    ['{ "a": abcdefghijklmnopqrstuvwxyz1 }', '1:8: expected a value, found "a"'],
    ['{ "a": [1,, 2] }', '1:11: expected a value, found ","'],
    ['{ "a": 01 }', '1:9: expected "," or "}", found "1"'],
    ['{ "a": "C:\\Users\\me" }', "1:11: \\U means nothing in a string: write a backslash as \\\\"],
    ['{ "a": "one\ntwo" }', '1:8: this string has no end in its line: write a " there'],
    ['{ "a": "one\ttwo" }', "1:12: a tab cannot stand in a string: write it as \\t"],
    ["{ /* }", "1:3: this comment has no end: write */ there"],
    ["{ # no\n}", '1:3: expected a name in double quotes or "}", found # (a comment begins with //)'],
    ['{ "a":\u00a01 }', "1:7: expected a value, found the character U+00A0: remove it"],
    ["{,}", '1:2: expected a name in double quotes or "}", found ","'],
    ["[".repeat(70), "1:66: is nested more than 64 deep: nest less deeply"],
  ])("%s", (text, message) => {
    expect(() => parse(text)).toThrow(new ConfigError("f", [toIssue(message)]));
  });
});

/** `1:2: …` as an issue. */
function toIssue(text: string): ConfigIssue {
  const [, line, column, message = ""] = /^(\d+):(\d+): (.*)$/s.exec(text) ?? [];
  return { path: "", at: { line: Number(line), column: Number(column) }, message };
}

const blanks = fc
  .array(
    fc.oneof(
      fc.constantFrom("", " ", "\n", "\t", "\r\n"),
      fc.string().map((text) => `/*${text.replaceAll("*/", "")}*/`.replace("**/", "* */")),
      fc.string().map((text) => `//${text.replaceAll(/[\r\n]/g, "")}\n`),
    ),
    { maxLength: 3 },
  )
  .map((parts) => parts.join(""));

/** The tokens of a JSON text: strings whole, everything else by itself. */
const tokensOf = (json: string): readonly string[] =>
  json.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^[\]{}:,"\s]+/g) ?? [];

test("any JSON with comments and trailing commas put in means what it meant", () => {
  fc.assert(
    fc.property(fc.json(), fc.infiniteStream(fc.tuple(blanks, fc.boolean())), (json, extras) => {
      const text = tokensOf(json).flatMap((token, index, tokens) => {
        const [blank, hasComma] = extras.next().value as [string, boolean];
        const isEnd = token === "]" || token === "}";
        const isEmpty = tokens[index - 1] === (token === "]" ? "[" : "{");
        return [blank, isEnd && !isEmpty && hasComma ? `,${blank}` : "", token];
      });
      expect(parse(`${text.join("")}// end`)).toEqual(JSON.parse(json));
    }),
    { numRuns: runs(500) },
  );
});

test("any text at all is read, or refused with a line and a column", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    "1",
    "true",
    "/*",
    "*/",
    "//",
    "\n",
    "\\",
    "é",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 12 }), (parts) => {
      const text = parts.join("");
      try {
        parse(text);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        expect((error as ConfigError).issues.at(-1)).toMatchObject({
          path: "",
          at: { line: expect.any(Number) as number },
        });
        expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
      }
    }),
    { numRuns: runs(1000) },
  );
});

test.each([
  ["escapes", (count: number) => `"${"\\n".repeat(count)}"`],
  ["an open text", (count: number) => `"${"a".repeat(count)}`],
  ["spaces", (count: number) => " ".repeat(count)],
  ["beginnings of comments", (count: number) => "/*".repeat(count)],
  ["comments", (count: number) => "//\n".repeat(count)],
])("the time grows with the number of %s, not faster", (_, textOf) => {
  const [small, large] = [12_500, 100_000];
  const texts = new Map([small, large].map((count) => [count, textOf(count)]));
  const work = (count: number): void => {
    try {
      parse(texts.get(count)!);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
    }
  };
  expect(growthOf({ small, large, work }, 24)).toBeLessThan(24);
});
