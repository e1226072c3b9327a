import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText, seededCallTexts } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { JsonError } from "../errors/index.ts";
import { type Index, scan } from "./scan.ts";
import { defineShape, lenient, type Shape } from "./shape.ts";

const REQUEST: Shape = defineShape({
  jsonrpc: true,
  id: true,
  method: true,
  params: { name: true, arguments: true, task: true, _meta: { progressToken: true, "x.y/z": true } },
  result: lenient({ resultType: true, inner: { key: true } }),
});

function refusal(text: string): JsonError | undefined {
  try {
    scan(Buffer.from(text), REQUEST);
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

/** The JSON text a slot's value has, or undefined. */
function read(text: string, index: Index, ...path: string[]): string | undefined {
  const slot = REQUEST.slotOf(...path);
  return index[slot + 1] === -1
    ? undefined
    : Buffer.from(text).toString("utf8", index[slot + 1], index[slot + 2]);
}

/** Nested text that puts a member at the given level: `at(["params"], '"a":1')` is `{"params":{"a":1}}`. */
function at(path: readonly string[], members: string): string {
  return path.reduceRight((inner, key) => `{"${key}":${inner}}`, `{${members}}`);
}

const PLACES: readonly (readonly [path: readonly string[], key: string])[] = [
  [[], "id"],
  [[], "method"],
  [[], "params"],
  [["params"], "name"],
  [["params"], "task"],
  [["params"], "_meta"],
  [["params", "_meta"], "progressToken"],
  [["params", "_meta"], "x.y/z"],
  [["result", "inner"], "key"],
];

function unicodeEscape(text: string, index: number): string {
  const code = text.charCodeAt(index).toString(16).padStart(4, "0");
  return `${text.slice(0, index)}\\u${code}${text.slice(index + 1)}`;
}

describe.each(PLACES)("at %j the key %j", (path, key) => {
  test("is found, also when any character is escaped", () => {
    for (let i = 0; i < key.length; i++) {
      const text = at(path, `"a":0, "${unicodeEscape(key, i)}" : 42 ,"b":1`);
      expect(read(text, scan(Buffer.from(text), REQUEST), ...path, key)).toBe("42");
    }
  });

  test("is refused when it occurs twice, in any spelling and with any value", () => {
    for (const second of [key, unicodeEscape(key, 0), unicodeEscape(key, key.length - 1)]) {
      for (const value of ["1", "{}", '{"name":1,"key":1}', "[]"]) {
        const error = refusal(at(path, `"${key}":${value},"zzz":0,"${second}":${value}`));
        expect(error?.code).toBe("json.duplicate_key");
        expect(error?.message).toContain(`a second "${key}" in one object`);
      }
    }
  });

  test("is refused in any other case, plain or escaped", () => {
    const variants = [key.toUpperCase(), `${key[0]}${key.slice(1).toUpperCase()}`];
    for (let i = 0; i < key.length; i++) {
      variants.push(key.slice(0, i) + key.charAt(i).toUpperCase() + key.slice(i + 1));
    }
    for (const variant of variants.filter((text) => text !== key)) {
      for (const spelled of [variant, unicodeEscape(variant, 0)]) {
        expect(refusal(at(path, `"${spelled}":1`))?.code).toBe("json.case_variant_key");
        expect(refusal(at(path, `"${key}":1,"${spelled}":1`))?.code).toBe("json.case_variant_key");
      }
    }
  });

  test("is not mistaken for a key that only starts or ends alike", () => {
    for (const other of [
      `${key}x`,
      `x${key}`,
      key.slice(1),
      key.slice(0, -1),
      ` ${key}`,
      `${key} `,
      `${key}\\u0000`,
    ]) {
      expect(refusal(at(path, `"${other}":1,"${key}":2`))).toBeUndefined();
    }
  });
});

describe("keys beyond ASCII", () => {
  test.each([
    ["param\u017f", []], // ſ, LATIN SMALL LETTER LONG S
    ["PARAM\u017f", []],
    ["re\u017fult", []],
    ["\u0131d", []], // ı, LATIN SMALL LETTER DOTLESS I
    ["\u0130D", []], // İ, LATIN CAPITAL LETTER I WITH DOT ABOVE
    ["ta\u017fk", ["params"]],
    ["tas\u212a", ["params"]], // K, KELVIN SIGN
    ["TA\u017f\u212a", ["params"]],
    ["progressTo\u212aen", ["params", "_meta"]],
    ["progre\u017f\u017fToken", ["params", "_meta"]],
    ["progre\u00dfToken", ["params", "_meta"]], // ß becomes SS
  ])("%j is a case variant", (key, path) => {
    const escaped = Array.from(key, (c) => unicodeEscape(c, 0)).join("");
    expect(refusal(at(path, `"${key}":1`))?.code).toBe("json.case_variant_key");
    expect(refusal(at(path, `"${escaped}":1`))?.code).toBe("json.case_variant_key");
  });

  test.each(["íd", "paramß", "id\u0301", "і\u0501", "\\ud800", "😀", "@name", "\u007fmeta", "\\u005Fmet"])(
    "%j is a key that is not ours",
    (key) => {
      expect(refusal(at(["params"], `"${key}":1`))).toBeUndefined();
    },
  );

  test("too long to be ours are not decoded", () => {
    expect(refusal(at(["params"], `"${"\\u006e".repeat(100_000)}":1,"name":2`))).toBeUndefined();
  });

  test("keys that merely share the bits of one of ours are left alone", () => {
    // `_` and DEL, `.` and 0x0E, `/` and 0x0F differ in the bit that the case of letters differs in.
    expect(refusal(at(["params"], `"\u007fmeta":1`))).toBeUndefined();
    expect(refusal(at(["params", "_meta"], `"x\\u000ey\\u000fz":1`))).toBeUndefined();
  });
});

describe("a lenient level", () => {
  test("lets case variants pass", () => {
    expect(
      refusal('{"result":{"ResultType":1,"resultType":2,"RESULTTYPE":3,"re\u017fultType":4}}'),
    ).toBeUndefined();
  });

  test("refuses duplicates all the same", () => {
    expect(refusal('{"result":{"resultType":1,"result\\u0054ype":2}}')?.code).toBe("json.duplicate_key");
  });

  test("has strict levels inside", () => {
    expect(refusal('{"result":{"Inner":{"KEY":1},"inner":{"KEY":1}}}')?.code).toBe("json.case_variant_key");
  });
});

describe("what the shape does not name", () => {
  test("may occur twice and in any case", () => {
    expect(
      refusal('{"x":1,"x":2,"X":3,"params":{"arguments":{"name":1,"name":2,"Name":3,"id":4,"ID":5}}}'),
    ).toBeUndefined();
    expect(refusal('[{"id":1,"id":2,"ID":3}]')).toBeUndefined();
    expect(refusal('{"params":[{"name":1,"name":2}]}')).toBeUndefined();
  });
});

describe("a refused message", () => {
  test.each([
    ['{"id":7,"method":"a","method":"b"}', "7"],
    ['{"METHOD":"a","id":"x"}', '"x"'],
    ['{"Id":1,"id":2}', "2"],
    ['{"params":{"name":1,"name":2},"id":9}', "9"],
    ['{"id":1,"id":2}', undefined],
    ['{"id":1,"id":1,"id":1}', undefined],
    ['{"ID":1}', undefined],
  ])("%s still tells its id, unless the id itself is in doubt", (text, id) => {
    const index = refusal(text)?.index;
    expect(index).toBeDefined();
    expect(read(text, index!, "id")).toBe(id);
  });

  test("hides everything under a key that occurred twice", () => {
    const text = '{"params":{"name":1,"_meta":{"progressToken":2}},"params":{"arguments":3},"id":4}';
    const index = refusal(text)?.index ?? [];
    expect(read(text, index, "params", "name")).toBeUndefined();
    expect(read(text, index, "params", "_meta", "progressToken")).toBeUndefined();
    expect(read(text, index, "id")).toBe("4");
  });

  test("with an error further on is malformed and nothing else", () => {
    expect(refusal('{"id":1,"id":2,}')).toMatchObject({ code: "json.syntax", index: undefined });
  });

  test("names the first of several refused keys", () => {
    expect(refusal('{"Id":1,"id":2,"id":3}')).toMatchObject({ code: "json.case_variant_key", offset: 1 });
  });
});

describe("spans", () => {
  test("agree with a search by JSON.parse alone, for tool calls of any spelling", () => {
    for (const text of seededCallTexts(11, 300)) expect(scanSpans(text)).toEqual(searchSpans(text));
  });

  test("agree with it for any object that has some of our keys", () => {
    const key = fc.constantFrom("id", "method", "params", "result", "name", "other");
    const members = fc.uniqueArray(fc.tuple(key, jsonText()), { selector: ([name]) => name, maxLength: 6 });
    const envelope = members.map(
      (list) => `{${list.map(([name, value]) => `"${name}" :${value}`).join(" , ")}}`,
    );
    fc.assert(
      fc.property(envelope, (text) => {
        fc.pre(refusal(text) === undefined);
        expect(scanSpans(text)).toEqual(searchSpans(text));
      }),
      { numRuns: runs(300) },
    );
  });
});

const ROOT_KEYS = ["jsonrpc", "id", "method", "params", "result"];
const PARAMS_KEYS = ["name", "arguments", "task", "_meta"];
const ABSENT = [-1, -1, -1];

/** What a scan finds: the whole text, then each key of the envelope, then each of `params`. */
function scanSpans(text: string): number[][] {
  const index = scan(Buffer.from(text), REQUEST);
  return [
    triple(index),
    ...ROOT_KEYS.map((name) => triple(index, name)),
    ...PARAMS_KEYS.map((name) => triple(index, "params", name)),
  ];
}

/** The same by {@link findMembers}. */
function searchSpans(text: string): number[][] {
  const start = text.length - text.trimStart().length;
  const members = findMembers(text, start);
  const params = members.get("params")?.[1];
  const inner = params === undefined ? 0 : charAt(text, params);
  const isObject = params !== undefined && text[inner] === "{";
  const found = isObject ? findMembers(text, inner) : new Map<string, number[]>();
  return [
    [-1, start, Buffer.byteLength(text.trimEnd())],
    ...ROOT_KEYS.map((name) => members.get(name) ?? ABSENT),
    ...PARAMS_KEYS.map((name) => found.get(name) ?? ABSENT),
  ];
}

function triple(index: Index, ...path: string[]): number[] {
  const slot = REQUEST.slotOf(...path);
  return index.slice(slot, slot + 3);
}

/**
 * A slow reference that knows no grammar: a key or value ends at the first place where JSON.parse accepts
 * what came so far and the right punctuation follows. Offsets in bytes.
 */
function findMembers(text: string, start: number): Map<string, number[]> {
  const members = new Map<string, number[]>();
  const skip = (p: number): number => p + (text.slice(p).length - text.slice(p).trimStart().length);
  const endOf = (from: number, followers: string): number => {
    for (let end = from + 1; end <= text.length; end++) {
      if (followers.includes(text[skip(end)] ?? "none") && isParsable(text.slice(from, end))) return end;
    }
    throw new Error("no value");
  };
  let p = skip(start + 1);
  while (text[p] !== "}") {
    const keyEnd = endOf(p, ":");
    const valueStart = skip(skip(keyEnd) + 1);
    const valueEnd = endOf(valueStart, ",}");
    const offsets = [p, valueStart, valueEnd].map((at) => Buffer.byteLength(text.slice(0, at)));
    members.set(JSON.parse(text.slice(p, keyEnd)) as string, offsets);
    p = skip(valueEnd);
    if (text[p] === ",") p = skip(p + 1);
  }
  return members;
}

function charAt(text: string, byteOffset: number): number {
  return Buffer.from(text).toString("utf8", 0, byteOffset).length;
}

function isParsable(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
