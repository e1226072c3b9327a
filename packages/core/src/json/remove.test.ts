import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { RawJson } from "./raw.ts";
import { scan } from "./scan.ts";
import { defineShape, lenient } from "./shape.ts";
import { withoutMembers } from "./splice.ts";

const SHAPE = defineShape({ result: lenient({ a: true, b: true, c: true }) });

/** The object as a scan leaves it: in the middle of a message, its members noted. */
function noted(text: string): RawJson {
  const bytes = Buffer.from(`{"id":1,"result":${text}}`);
  const result = RawJson.fromScan(bytes, SHAPE, scan(bytes, SHAPE)).at("result");
  if (result === undefined) throw new Error(text);
  return result;
}

test.each<[text: string, keys: string[], expected: string]>([
  ['{"a":1, "b":2 ,"c":3}', ["a"], '{"b":2 ,"c":3}'],
  ['{"a":1, "b":2 ,"c":3}', ["b"], '{"a":1, "c":3}'],
  ['{"a":1, "b":2 ,"c":3 }', ["c"], '{"a":1, "b":2 }'],
  ['{"a":1, "b":2 ,"c":3}', ["b", "a"], '{"c":3}'],
  ['{"a":1, "b":2 ,"c":3}', ["c", "b"], '{"a":1}'],
  ['{"a":1, "b":2 ,"c":3}', ["a", "c"], '{"b":2 }'],
  ['{ "a":1, "b":2 ,"c":3 }', ["a", "b", "c"], "{ }"],
  ['{"x":"é","a":1}', ["a"], '{"x":"é"}'],
])("%s without %j", (text, keys, expected) => {
  expect(withoutMembers(noted(text), keys).text).toBe(expected);
});

test("leaves out exactly the given keys, noted by a scan or not, in any object", () => {
  const key = fc.constantFrom("a", "b", "c", "é", "z");
  const members = fc.uniqueArray(fc.tuple(key, jsonText(), fc.constantFrom("", " ", "\n ")), {
    selector: ([name]) => name,
  });
  fc.assert(
    fc.property(members, fc.subarray(["a", "b", "c"]), fc.boolean(), (list, keys, isLong) => {
      const filler = isLong ? `,"filler":"${"x".repeat(5000)}"` : "";
      const all = list.map(([name, value, gap]) => `${gap}"${name}"${gap}:${value}${gap}`);
      const text = `{"first":0${filler}${all.map((each) => `,${each}`).join("")}}`;
      const expected = Object.entries(JSON.parse(text) as object).filter(([name]) => !keys.includes(name));
      for (const raw of [noted(text), RawJson.parse(Buffer.from(text)), RawJson.fromText(text)]) {
        const left = withoutMembers(raw, keys);
        expect(Object.entries(JSON.parse(left.text) as object)).toEqual(expected);
        expect(RawJson.parse(left.bytes).text).toBe(left.text);
      }
    }),
    { numRuns: runs(500) },
  );
});

test("copies nothing of what is large", () => {
  const raw = noted(`{"a":1,"text":"${"x".repeat(100_000)}","b":2}`);
  const pieces = withoutMembers(raw, ["a", "b"]).written as readonly Uint8Array[];
  expect(pieces.map(({ buffer }) => buffer === raw.bytes.buffer)).toEqual([true, true, true]);
});
