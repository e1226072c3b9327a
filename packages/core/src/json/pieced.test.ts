import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { inScratch, maxScratchBytes, Pieced } from "./pieced.ts";
import { RawJson } from "./raw.ts";
import { scan } from "./scan.ts";
import { defineShape, lenient } from "./shape.ts";
import { prependMembers, withoutMembers } from "./splice.ts";

const SHAPE = defineShape({ id: true, result: lenient({ a: true, b: true, c: true }) });

function writtenBytes({ written }: RawJson): Buffer {
  return typeof written === "string" ? Buffer.from(written) : Buffer.concat(written);
}

/** Cuts bytes at these places, in whatever order they are named. */
function cutAt(bytes: Uint8Array, places: readonly number[]): Pieced {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return new Pieced(ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end)));
}

const places = fc.array(fc.nat(10_000), { maxLength: 5 });

test("pieces are the bytes they were cut from", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), places, fc.nat(220), fc.nat(220), (bytes, cuts, a, b) => {
      const pieced = cutAt(bytes, cuts);
      expect(pieced.length).toBe(bytes.length);
      expect(pieced.at(a)).toBe(bytes[a]);
      expect(Buffer.concat(pieced.cut(a, b))).toEqual(Buffer.from(bytes.subarray(a, Math.max(a, b))));
      expect(Buffer.from(inScratch(pieced))).toEqual(Buffer.from(bytes));
      expect(Buffer.from(pieced.join())).toEqual(Buffer.from(bytes));
    }),
  );
});

test("JSON in pieces reads like the same JSON in one piece, whatever is read first", () => {
  const key = fc.constantFrom("a", "b", "c", "é");
  const members = fc.uniqueArray(fc.tuple(key, jsonText()), { selector: ([name]) => name });
  const looks: readonly ((raw: RawJson) => unknown)[] = [
    (raw) => raw.kind,
    (raw) => raw.byteLength,
    (raw) => Buffer.from(raw.bytes),
    (raw) => writtenBytes(raw),
    (raw) => raw.text,
    (raw) => raw.value,
    (raw) => raw.textOf("a"),
    (raw) => raw.has("b"),
    (raw) => raw.at("a")?.value,
    (raw) => raw.at("é")?.text,
    (raw) => raw.spanOf("c"),
    (raw) => withoutMembers(raw, ["a", "c"]).text,
    (raw) => prependMembers('"first":1', raw).text,
  ];
  fc.assert(
    fc.property(members, places, fc.shuffledSubarray(looks.map((_, at) => at)), (list, cuts, order) => {
      const object = `{${list.map(([name, value]) => `"${name}":${value}`).join(",")}}`;
      const bytes = Buffer.from(` {"id":1,"result": ${object} }`);
      const index = scan(bytes, SHAPE);
      const whole = RawJson.fromScan(bytes, SHAPE, index);
      const pieced = RawJson.fromScan(cutAt(bytes, cuts), SHAPE, index);
      for (const pair of [
        [whole, pieced],
        [whole.at("result"), pieced.at("result")],
      ] as const) {
        const [one, other] = pair;
        if (one === undefined || other === undefined) throw new Error("no result");
        for (const look of order) expect(looks[look]?.(other)).toEqual(looks[look]?.(one));
      }
    }),
    { numRuns: runs(500) },
  );
});

test("looking at a member joins nothing", () => {
  const filler = Buffer.from("x".repeat(50_000));
  const pieces = [
    Buffer.from('{"id":1,"result":{"a":true,"text":"'),
    filler,
    filler,
    Buffer.from('","b":2}}'),
  ];
  const pieced = new Pieced(pieces);
  const result = RawJson.fromScan(pieced, SHAPE, scan(inScratch(pieced), SHAPE)).at("result");
  expect([result?.kind, result?.textOf("a"), result?.at("b")?.kind]).toEqual(["object", "true", "number"]);
  if (result === undefined) throw new Error("no result");
  const rest = withoutMembers(result, ["a", "b"]);
  expect((rest.written as readonly Uint8Array[]).filter((piece) => piece === filler)).toHaveLength(2);
  expect(rest.byteLength).toBe(2 * filler.length + '{"text":""}'.length);
});

test("bytes too large for the scratch memory are joined", () => {
  const large = new Pieced([new Uint8Array(maxScratchBytes), new Uint8Array(1)]);
  expect(inScratch(large)).toBe(large.join());
});
