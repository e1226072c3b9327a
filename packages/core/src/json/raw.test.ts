import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { JsonError } from "../errors/index.ts";
import { RawJson } from "./raw.ts";
import { scan } from "./scan.ts";
import { defineShape } from "./shape.ts";

const REQUEST = defineShape({ id: true, params: { name: true, arguments: true } });

function scanned(text: string): RawJson {
  const bytes = Buffer.from(text);
  return RawJson.fromScan(bytes, REQUEST, scan(bytes, REQUEST));
}

describe("RawJson.parse", () => {
  test("keeps the bytes, without the white space around them", () => {
    fc.assert(
      fc.property(jsonText(), (text) => {
        const raw = RawJson.parse(Buffer.from(text));
        expect(raw.text).toBe(text.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, ""));
        expect(Buffer.from(raw.bytes).toString()).toBe(raw.text);
        expect(raw.byteLength).toBe(raw.bytes.length);
        expect(raw.value).toEqual(JSON.parse(text));
        expect(raw.kind).toBe(kindOf(JSON.parse(text)));
      }),
    );
  });

  test("returns the very bytes it was given when there is nothing around the value", () => {
    const bytes = Buffer.from('{"a":1.0}');
    expect(RawJson.parse(bytes).bytes).toBe(bytes);
  });

  test("reads a plain Uint8Array as well as a Buffer", () => {
    const bytes = new Uint8Array(Buffer.from('{"é":"日本","n":1e400}'));
    expect(RawJson.parse(bytes).at("é")?.value).toBe("日本");
    expect(RawJson.parse(bytes).at("n")?.text).toBe("1e400");
  });

  test("refuses what is not JSON", () => {
    expect(() => RawJson.parse(Buffer.from("{"))).toThrow(JsonError);
    expect(() => RawJson.parse(Buffer.from("[[]]"), { maxDepth: 1 })).toThrow(/nested more than 1/);
  });
});

describe("RawJson.fromValue", () => {
  test("stringifies once, and only when asked", () => {
    const toJSON = vi.fn<() => number>(() => 1);
    const raw = RawJson.fromValue({ a: { toJSON } });
    expect(raw.kind).toBe("object");
    expect(toJSON).not.toHaveBeenCalled();
    expect([raw.text, raw.text, Buffer.from(raw.bytes).toString(), raw.byteLength]).toEqual([
      '{"a":1}',
      '{"a":1}',
      '{"a":1}',
      7,
    ]);
    expect(toJSON).toHaveBeenCalledOnce();
  });

  test("keeps the value itself", () => {
    const value = { a: 1 };
    expect(RawJson.fromValue(value).value).toBe(value);
  });

  test.each([undefined, () => 1, Symbol("s"), 1n])("refuses %s at once", (value) => {
    expect(() => RawJson.fromValue(value)).toThrow(TypeError);
  });

  test.each([
    [new Date(0), "string", '"1970-01-01T00:00:00.000Z"'],
    [Number.NaN, "null", "null"],
    [-Infinity, "null", "null"],
    ["\ud800", "string", '"\\ud800"'],
    [null, "null", "null"],
    [[undefined], "array", "[null]"],
    [false, "boolean", "false"],
  ])("sees %s as JSON.stringify does", (value, kind, text) => {
    const raw = RawJson.fromValue(value);
    expect([raw.kind, raw.text]).toEqual([kind, text]);
    expect(JSON.parse(raw.text)).toEqual(JSON.parse(JSON.stringify(value)));
  });

  test("has no member where JSON.stringify would leave it out", () => {
    const raw = RawJson.fromValue({ a: undefined, b: () => 1, c: Symbol("s"), d: 1 });
    expect(["a", "b", "c", "d", "toString", "__proto__"].map((key) => raw.at(key)?.value)).toEqual([
      undefined,
      undefined,
      undefined,
      1,
      undefined,
      undefined,
    ]);
  });
});

describe("RawJson.fromText", () => {
  test("encodes when bytes are asked for", () => {
    const raw = RawJson.fromText('{"a":"é"}');
    expect([raw.kind, raw.text, raw.byteLength, raw.at("a")?.text]).toEqual([
      "object",
      '{"a":"é"}',
      10,
      '"é"',
    ]);
    expect(Buffer.from(raw.bytes).toString()).toBe('{"a":"é"}');
    expect(raw.value).toEqual({ a: "é" });
  });
});

describe("at", () => {
  test("gives each member the bytes it was written with", () => {
    const numbers = ["12345678901234567890", "1.0", "-0", "1e400", "0.10"];
    const text = `{ "params" : {"arguments":{"n":[${numbers.join(" , ")}]}, "name":"a\\u0062"}, "id":1.0 }`;
    for (const raw of [scanned(text), RawJson.parse(Buffer.from(text)), RawJson.fromText(text)]) {
      expect(raw.at("params")?.at("arguments")?.at("n")?.text).toBe(`[${numbers.join(" , ")}]`);
      expect(raw.at("params")?.at("name")?.text).toBe('"a\\u0062"');
      expect(raw.at("params")?.at("name")?.value).toBe("ab");
      expect(raw.at("id")?.text).toBe("1.0");
      expect(raw.at("absent")).toBeUndefined();
    }
  });

  test("shares memory with the whole", () => {
    const raw = scanned('{"params":{"name":"x","other":[1]}}');
    for (const key of ["name", "other"]) {
      expect(raw.at("params")?.at(key)?.bytes.buffer).toBe(raw.bytes.buffer);
    }
  });

  test("agrees with JSON.parse about every key of every object", () => {
    fc.assert(
      fc.property(jsonText(), fc.string(), (text, other) => {
        const value: unknown = JSON.parse(text);
        const raw = RawJson.parse(Buffer.from(text));
        expect(rebuild(raw)).toEqual(value);
        // 1e400 is Infinity as a value, and null when that is written again.
        expect(rebuild(RawJson.fromValue(value))).toEqual(JSON.parse(JSON.stringify(value)));
        expect(raw.at(other) !== undefined).toBe(isObject(value) && Object.hasOwn(value, other));
      }),
      { numRuns: runs(500) },
    );
  });

  test("takes the last of several, as JSON.parse does", () => {
    expect(RawJson.parse(Buffer.from('{"a":1,"\\u0061":2,"b":3}')).at("a")?.text).toBe("2");
  });

  test("finds nothing in what is not an object", () => {
    for (const text of ['["a"]', '"a"', "1", "null", "true"]) {
      expect(RawJson.parse(Buffer.from(text)).at("length")).toBeUndefined();
      expect(RawJson.fromValue(JSON.parse(text)).at("length")).toBeUndefined();
    }
    expect(scanned('{"params":[{"name":1}]}').at("params")?.at("name")).toBeUndefined();
  });

  test("treats __proto__ as a key like any other", () => {
    const text = '{"__proto__":{"polluted":1},"a":2}';
    for (const raw of [
      RawJson.parse(Buffer.from(text)),
      RawJson.fromValue(JSON.parse(text)),
      RawJson.fromText(text),
    ]) {
      expect(raw.at("__proto__")?.at("polluted")?.value).toBe(1);
      expect(raw.at("polluted")).toBeUndefined();
      expect(raw.text).toBe(text);
    }
    expect(RawJson.parse(Buffer.from("{}")).at("__proto__")).toBeUndefined();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

test("JSON.stringify shows the value, for logs", () => {
  expect(JSON.stringify({ raw: scanned('{"id":1.0}') })).toBe('{"raw":{"id":1}}');
});

/** The value, rebuilt from the members that `at` finds. */
function rebuild(raw: RawJson): unknown {
  const value = raw.value;
  if (!isObject(value)) return JSON.parse(raw.text);
  return Object.fromEntries(
    Object.keys(value).map((key) => [key, rebuild(raw.at(key) ?? expect.fail(`no ${key}`))]),
  );
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
