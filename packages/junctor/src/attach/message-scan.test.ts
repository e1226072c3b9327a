import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { scanMessage, withId } from "./lines.ts";

describe("scanMessage", () => {
  test.each([
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "1", "tools/list", false],
    ['{"method":"a","params":{"id":"no","s":"}\\"{"},"id":"x"}', '"x"', "a", false],
    [' { "id" : "a\\"b" , "result" : {"id":2} } ', '"a\\"b"', undefined, true],
    ['{"error":{"code":1},"id":null}', "null", undefined, true],
    ['{"method":"notifications/initialized"}', undefined, "notifications/initialized", false],
    ["no json", undefined, undefined, false],
    ["{", undefined, undefined, false],
    ['{"id"', undefined, undefined, false],
    ['{"id":"never ends', '"never ends', undefined, false],
  ])("%s", (text, id, method, isAnswer) => {
    expect(scanMessage(Buffer.from(text))).toMatchObject({ id, method, isAnswer, isBatch: false });
  });

  test("a batch is recognized, and not looked into", () => {
    expect(scanMessage(Buffer.from(' [{"id":1}]'))).toMatchObject({ isBatch: true, id: undefined });
  });

  test("finds the id and the method of any message, in any order of its members", () => {
    const id = fc.oneof(fc.integer(), fc.string());
    fc.assert(
      fc.property(id, fc.string(), fc.jsonValue(), fc.boolean(), (given, method, params, isFirst) => {
        const head = { id: given, method };
        const message = isFirst ? { ...head, params } : { params, ...head };
        const line = Buffer.from(JSON.stringify(message));
        const scanned = scanMessage(line);
        expect(scanned.id).toBe(JSON.stringify(given));
        const renamed = JSON.parse(withId(line, scanned.idAt ?? [0, 0], '"new"').toString()) as object;
        expect(renamed).toEqual({ ...(JSON.parse(line.toString()) as object), id: "new" });
      }),
      { numRuns: runs(1000) },
    );
  });

  test("never throws, whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => void scanMessage(Buffer.from(bytes))),
      { numRuns: runs(1000) },
    );
  });
});
