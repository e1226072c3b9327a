import { Buffer, isUtf8 } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText, seededJsonTexts } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { JsonError, type JsonErrorCode } from "../errors/index.ts";
import { scan, scanElements } from "./scan.ts";
import { defineShape } from "./shape.ts";

const NOTHING = defineShape({});

function refusal(input: string | Uint8Array, maxDepth = 256): JsonError | undefined {
  try {
    scan(typeof input === "string" ? Buffer.from(input) : input, NOTHING, { maxDepth });
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

function isParsable(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The text, if scan and JSON.parse disagree about it, also at an odd byte offset or in a plain Uint8Array.
 * Bytes that are not UTF-8 must be refused as such.
 */
function disagreement(input: string | Buffer): string | undefined {
  const bytes = Buffer.from(input);
  const isExpected = (code: JsonErrorCode | undefined): boolean =>
    isUtf8(bytes) ? (code === undefined) === isParsable(bytes.toString()) : code === "json.utf8";
  const forms = [bytes, Buffer.concat([Buffer.from("x"), bytes]).subarray(1), new Uint8Array(bytes)];
  return forms.every((form) => isExpected(refusal(form)?.code)) ? undefined : bytes.toString();
}

describe("scan accepts what JSON.parse accepts", () => {
  test("for any JSON text", () => {
    fc.assert(
      fc.property(jsonText(), (text) => {
        expect(isParsable(text)).toBe(true);
        expect(refusal(text)).toBeUndefined();
      }),
      { numRuns: runs(1000) },
    );
  });

  test("for JSON texts with some bytes changed, dropped or added", () => {
    const bytes = fc.oneof(
      fc.constantFrom(...Buffer.from('"\\{}[],:0123456789.-+eEtrufalsn/b \t\n\r\u0000\u001fx')),
      fc.integer({ min: 0, max: 255 }),
    );
    const change = fc.record({ at: fc.nat(), drop: fc.nat(3), add: fc.array(bytes, { maxLength: 2 }) });
    fc.assert(
      fc.property(jsonText(), fc.array(change, { minLength: 1, maxLength: 3 }), (text, changes) => {
        const mutated = [...Buffer.from(text)];
        for (const { at, drop, add } of changes) mutated.splice(at % (mutated.length + 1), drop, ...add);
        expect(disagreement(Buffer.from(mutated))).toBeUndefined();
      }),
      { numRuns: runs(5000) },
    );
  });

  test("for strings of JSON's own characters in any order", () => {
    const soup = fc.string({
      unit: fc.constantFrom(
        ...'" \\ { } [ ] , : 0 1 9 . - + e E t r u f a l s n true "a"'.split(" "),
        " ",
        "\n",
      ),
      maxLength: 12,
    });
    fc.assert(
      fc.property(soup, (text) => {
        expect(disagreement(text)).toBeUndefined();
      }),
      { numRuns: runs(5000) },
    );
  });

  test.each([
    ..."0,-0,1,10,01,00,-,+1,-01,1.,.5,1.0,1.e1,1e,1e+,1e+1,1E-01,1e400,0x1,1_0,NaN,Infinity,-Infinity".split(
      ",",
    ),
    ..."true,tru,trux,truee,True,false,fals,null,nul,nulll,undefined".split(","),
    '""',
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12G4"',
    '"\\uABcd"',
    '"\\ud800"',
    "'a'",
    '"\\',
    '"\\u',
    '"\u007f"',
    "",
    " ",
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1}",
    "{]",
    "[]]",
    "[][]",
    "[[],[ ]]",
    "{",
    "}",
    "{}",
    "{ }",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a" 1}',
    "{a:1}",
    "{1:1}",
    '{"a":1 "b":2}',
    " \t\r\n1\t",
    "\u00a01",
    "\u000b1",
    "\u20281",
    "1 2",
    "1,",
    "//c\n1",
    "1/**/",
    '{"a":1}x',
  ])("for %j", (text) => {
    const nested = [text, `[${text}]`, `{"a":${text}}`, `{"a":[{"b":${text}}]}`];
    expect(nested.map(disagreement)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("for every control character at every place of a short and a long string", () => {
    for (let code = 0; code < 0x24; code++) {
      for (const length of [3, 150]) {
        for (let at = 0; at < length; at++) {
          const text = `"${"é".repeat(at % 5)}${"x".repeat(at)}${String.fromCharCode(code)}${"x".repeat(length - at)}"`;
          expect(disagreement(text)).toBeUndefined();
        }
      }
    }
  });

  test("for long strings with escapes at every alignment", () => {
    for (let at = 100; at < 140; at++) {
      for (const escape of ["\\n", '\\"', "\\\\", "\\u00e9", "\\q", "\\u00g0", "\\"]) {
        const text = `"${"x".repeat(at)}${escape}${"y".repeat(140 - at)}"`;
        expect(disagreement(text)).toBeUndefined();
      }
    }
  });

  test("for a text cut off at any byte", () => {
    for (const text of seededJsonTexts(7, runs(200))) {
      const bytes = Buffer.from(text);
      for (let end = 0; end < bytes.length; end++) {
        expect(disagreement(bytes.subarray(0, end))).toBeUndefined();
      }
    }
  });
});

describe("scan refuses", () => {
  test.each<[JsonErrorCode, string | Uint8Array, number]>([
    ["json.syntax", '{"a":01}', 6],
    ["json.syntax", "", 0],
    ["json.utf8", Buffer.from([0x22, 0x61, 0xff, 0x22]), 2],
    ["json.utf8", Buffer.from([0x22, 0xef, 0xbf, 0x22]), 1],
    ["json.utf8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 1],
    ["json.bom", "\ufeff{}", 0],
    ["json.trailing", "{} {}", 3],
    ["json.trailing", "1 x", 2],
    ["json.depth", "[".repeat(257), 256],
  ])("with %s: %j", (code, input, offset) => {
    expect(refusal(input)).toMatchObject({ code, offset });
  });

  test.each([
    (depth: number): string => "[".repeat(depth) + "]".repeat(depth),
    (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth),
    (depth: number): string => '{"a":[],"b":['.repeat(depth / 2) + "]}".repeat(depth / 2),
  ])("one level more than the limit, and not the limit", (nest) => {
    expect(refusal(nest(256))).toBeUndefined();
    expect(refusal(nest(258))?.code).toBe("json.depth");
    expect(refusal(nest(8), 8)).toBeUndefined();
    expect(refusal(nest(8), 7)?.code).toBe("json.depth");
    expect(refusal(nest(2), 0)?.code).toBe("json.depth");
  });

  test("a million open brackets, and survives them when allowed", () => {
    expect(refusal("[".repeat(1e6))?.code).toBe("json.depth");
    expect(refusal("[".repeat(1e6), 1e7)).toMatchObject({ code: "json.syntax", offset: 1e6 });
    expect(refusal("[".repeat(1e6) + "]".repeat(1e6), 1e6)).toBeUndefined();
  });

  test("with a message that says what, where, with which value and what to do", () => {
    expect(refusal('{"a": nope}')?.message).toBe(
      "Expected null, found ‘nope}’ (byte 6). Send one JSON text as RFC 8259 spells it.",
    );
    expect(refusal("[1,")?.message).toContain("found the end of the text (byte 3)");
  });

  test("with a message that no text can blow up or smuggle control characters into", () => {
    const long = refusal(`[\u001b[2J\u202e${"x".repeat(1000)}`)?.message ?? "";
    expect(long).toContain("‘\\u{1b}[2J\\u{202e}xxx");
    expect(long.slice(long.indexOf("‘"), long.indexOf("’") + 1).length).toBeLessThanOrEqual(40);
  });
});

describe("scanElements", () => {
  test("gives the span of each element", () => {
    const bytes = Buffer.from(' [ 1 , {"a":[2]},"é", [] ] ');
    const texts = scanElements(bytes).map(({ start, end }) => bytes.toString("utf8", start, end));
    expect(texts).toEqual(["1", '{"a":[2]}', '"é"', "[]"]);
    expect(scanElements(Buffer.from("[ ]"))).toEqual([]);
  });

  test.each(["{}", "[1", "[1,]", "[1]]", "[1 2]", "", "\ufeff[]", "[", "[nul]"])("refuses %j", (text) => {
    expect(() => scanElements(Buffer.from(text))).toThrow(JsonError);
  });

  test("stops after as many elements as are wanted", () => {
    expect(scanElements(Buffer.from("[1,2,3"), { maxElements: 2 })).toHaveLength(2);
    expect(scanElements(Buffer.from("[1]"), { maxElements: 2 })).toHaveLength(1);
  });

  test("counts the array itself as a level", () => {
    expect(scanElements(Buffer.from("[[]]"), { maxDepth: 2 })).toHaveLength(1);
    expect(() => scanElements(Buffer.from("[[]]"), { maxDepth: 1 })).toThrow(/nested more than 1 deep/);
    expect(() => scanElements(Buffer.from("[]"), { maxDepth: 0 })).toThrow(/nested more than 0 deep/);
  });
});
