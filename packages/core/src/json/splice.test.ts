import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText, seededCallTexts } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { RawJson } from "./raw.ts";
import { scan } from "./scan.ts";
import { defineShape } from "./shape.ts";
import { editMembers } from "./splice.ts";

const REQUEST = defineShape({ id: true, method: true, params: { name: true, arguments: true } });
const NAME = REQUEST.slotOf("params", "name");
const PARAMS = REQUEST.slotOf("params");

const parse = (text: string): RawJson => RawJson.parse(Buffer.from(text));
const one = RawJson.fromText("1.0");
const setMember = (raw: RawJson, key: string, value: RawJson): RawJson =>
  editMembers(raw, Object.fromEntries([[key, value]]));

describe("setting one member", () => {
  test("leaves every byte outside the name as it was, in 100,000 calls of any spelling", () => {
    const name = RawJson.fromValue("upstream tool");
    for (const text of seededCallTexts(2026, runs(100_000))) {
      const bytes = Buffer.from(text);
      const index = scan(bytes, REQUEST);
      const start = index[NAME + 1]! - index[PARAMS + 1]!;
      const end = index[NAME + 2]! - index[PARAMS + 1]!;
      const params = RawJson.fromScan(bytes, REQUEST, index).at("params")!;
      const renamed = setMember(params, "name", name).bytes;
      const tail = renamed.length - (params.byteLength - end);
      const isSame =
        Buffer.compare(renamed.subarray(0, start), params.bytes.subarray(0, start)) === 0 &&
        Buffer.compare(renamed.subarray(start, tail), name.bytes) === 0 &&
        Buffer.compare(renamed.subarray(tail), params.bytes.subarray(end)) === 0;
      if (!isSame) expect.fail(text);
    }
  });

  test("finds the same place with and without a scan's help", () => {
    for (const text of seededCallTexts(3, 500)) {
      const bytes = Buffer.from(text);
      const noted = RawJson.fromScan(bytes, REQUEST, scan(bytes, REQUEST)).at("params")!;
      const plain = RawJson.parse(bytes).at("params")!;
      expect(setMember(noted, "name", one).text).toBe(setMember(plain, "name", one).text);
    }
  });

  test("inserts a member that is not there as the first", () => {
    expect(setMember(parse('{ "a":2 }'), "b", one).text).toBe('{"b":1.0, "a":2 }');
    expect(setMember(parse("{ }"), 'q"é', one).text).toBe('{"q\\"é":1.0 }');
  });
});

describe("editMembers", () => {
  test.each<[text: string, remove: string[], set: string[], expected: string]>([
    ['{"a":1, "b":2 ,"c":3}', ["a"], [], '{"b":2 ,"c":3}'],
    ['{"a":1, "b":2 ,"c":3}', ["b"], [], '{"a":1 ,"c":3}'],
    ['{"a":1, "b":2 ,"c":3}', ["c"], [], '{"a":1, "b":2}'],
    ['{"a":1, "b":2 ,"c":3}', ["a", "b"], [], '{"c":3}'],
    ['{"a":1, "b":2 ,"c":3}', ["a", "c"], [], '{"b":2}'],
    ['{"a":1, "b":2 ,"c":3}', ["b", "c"], [], '{"a":1}'],
    ['{ "a":1, "b":2 ,"c":3 }', ["a", "b", "c"], [], "{  }"],
    ['{ "a":1, "b":2 ,"c":3 }', ["a", "b", "c"], ["d"], '{"d":1.0  }'],
    ['{"a":1, "b":2 ,"c":3}', ["a"], ["b"], '{"b":1.0 ,"c":3}'],
    ['{"a":1, "b":2 ,"c":3}', ["b"], ["a", "c"], '{"a":1.0 ,"c":1.0}'],
    ['{"a":1, "b":2 ,"c":3}', ["c"], ["d", "b", "e"], '{"d":1.0,"e":1.0,"a":1, "b":1.0}'],
    ['{"a":1,"\\u0061":2,"b":3,"a":4}', ["a"], [], '{"b":3}'],
    ['{"a":1,"\\u0061":2,"b":3,"a":4}', [], ["a"], '{"a":1.0,"\\u0061":1.0,"b":3,"a":1.0}'],
    ['{"b":{"a":1},"a":{"a":"}"}}', ["a"], [], '{"b":{"a":1}}'],
    ["{}", ["a"], [], "{}"],
  ])("%s without %j and with %j", (text, remove, set, expected) => {
    const edits = Object.fromEntries([
      ...remove.map((key) => [key, undefined] as const),
      ...set.map((key) => [key, one] as const),
    ]);
    expect(editMembers(parse(text), edits).text).toBe(expected);
  });

  test("does to bytes what it does to values, for any object and any edits", () => {
    const key = fc.constantFrom("a", "b", "c", "__proto__", "é");
    const members = fc.array(fc.tuple(key, jsonText()), { maxLength: 6 });
    const edits = fc.dictionary(key, fc.option(jsonText(), { nil: undefined }));
    fc.assert(
      fc.property(members, edits, (list, changes) => {
        const text = `{${list.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(" ,")}}`;
        const expected = new Map(Object.entries(JSON.parse(text) as object));
        for (const [name, change] of Object.entries(changes)) {
          if (change === undefined) expected.delete(name);
          else expected.set(name, JSON.parse(change));
        }
        const asText = mapEdits(changes, (change) => RawJson.fromText(change));
        const asValues = mapEdits(changes, (change) => RawJson.fromValue(JSON.parse(change)));
        const edited = editMembers(parse(text), asText);
        expect(edited.value).toEqual(Object.fromEntries(expected));
        expect(parse(edited.text).text).toBe(edited.text);
        const copied = editMembers(RawJson.fromValue(JSON.parse(text)), asValues);
        expect(JSON.parse(copied.text)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(expected))));
      }),
      { numRuns: runs(500) },
    );
  });

  test("keeps the spelling of bytes set into an object that is held as a value", () => {
    const edited = editMembers(RawJson.fromValue({ a: 1, b: 2 }), { a: one });
    expect(edited.text).toBe('{"a":1.0,"b":2}');
  });

  test("does not change the value it got", () => {
    const value = { a: 1 };
    expect(editMembers(RawJson.fromValue(value), { a: undefined, b: RawJson.fromValue(2) }).value).toEqual({
      b: 2,
    });
    expect(value).toEqual({ a: 1 });
  });

  test("sets __proto__ as a key like any other", () => {
    for (const raw of [RawJson.fromValue({ a: 1 }), parse('{"a":1}')]) {
      const edited = setMember(raw, "__proto__", RawJson.fromValue({ polluted: 1 }));
      expect(edited.text).toBe('{"__proto__":{"polluted":1},"a":1}');
      expect((edited.value as { polluted?: unknown }).polluted).toBeUndefined();
    }
  });

  test.each(["[]", '"a"', "1", "null"])("refuses %s, which has no members", (text) => {
    const refused = expect.objectContaining({ code: "json.not_an_object" }) as Error;
    expect(() => editMembers(parse(text), { a: one })).toThrow(refused);
    expect(() => editMembers(RawJson.fromValue(JSON.parse(text)), { a: one })).toThrow(refused);
  });
});

type Edits<T> = Record<string, T | undefined>;

function mapEdits(edits: Edits<string>, map: (text: string) => RawJson): Edits<RawJson> {
  return Object.fromEntries(
    Object.entries(edits).map(([key, text]) => [key, text === undefined ? undefined : map(text)]),
  );
}
