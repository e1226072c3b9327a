import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { carriedMeta } from "./params.ts";

const carried = (text: string): string | undefined => carriedMeta(RawJson.fromText(text));

test.each<[string, string | undefined]>([
  ["{}", undefined],
  ['{"progressToken":7}', undefined],
  ['{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}', undefined],
  ['{"io.modelcontextprotocol\\/clientInfo":{}}', undefined],
  ['{"\\u0069o.modelcontextprotocol/clientInfo":{}}', undefined],
  ['{"progress\\u0054oken":7}', undefined],
  [
    '{"traceparent":"00-1","progressToken":7,"com.example/x":{"a":[1.0,-0]}}',
    '"traceparent":"00-1","com.example/x":{"a":[1.0,-0]}',
  ],
  ['{ "a" : 12345678901234567890 , "b" : 1e400 }', '"a":12345678901234567890,"b":1e400'],
  ['{"io.modelcontextprotocolx/y":1}', '"io.modelcontextprotocolx/y":1'],
  ['{"IO.modelcontextprotocol/y":1}', '"IO.modelcontextprotocol/y":1'],
  ['{"__proto__":{"a":1}}', '"__proto__":{"a":1}'],
  ["7", undefined],
  ["[]", undefined],
])("%s passes on %s", (text, expected) => {
  expect(carried(text)).toBe(expected);
});

test("a missing _meta passes on nothing", () => expect(carriedMeta(undefined)).toBeUndefined());

test("a traceparent of our own takes the place of the caller's, however that is spelled", () => {
  const own = (text: string): string | undefined => carriedMeta(RawJson.fromText(text), "00-own");
  expect(carriedMeta(undefined, "00-own")).toBe('"traceparent":"00-own"');
  expect(own('{"progressToken":1}')).toBe('"traceparent":"00-own"');
  expect(own('{"traceparent":"00-theirs","baggage":"a=1"}')).toBe('"traceparent":"00-own","baggage":"a=1"');
  expect(own('{"trace\\u0070arent":"00-theirs"}')).toBe('"traceparent":"00-own"');
});

test("what is passed on is one line, though it came on several", () => {
  const text = carried('{\n"a": {\n"b": "x"\n}\n}');
  expect(text).not.toContain("\n");
  expect(JSON.parse(`{${text}}`)).toEqual({ a: { b: "x" } });
});

test("a key that comes twice is passed on once", () => {
  expect(Object.keys(JSON.parse(`{${carried('{"a":1,"a":2}')}}`) as object)).toEqual(["a"]);
  expect(carried('{"a":1,"a":2}')?.match(/"a"/g)).toHaveLength(1);
});

test("any _meta is passed on with the same members, without the protocol's", () => {
  const own = fc.constantFrom("progressToken", "io.modelcontextprotocol/logLevel");
  const key = fc.oneof(fc.string(), own);
  fc.assert(
    fc.property(fc.dictionary(key, fc.jsonValue()), (meta) => {
      const text = carriedMeta(RawJson.fromText(JSON.stringify(meta)));
      const kept = Object.entries(meta).filter(
        ([name]) => name !== "progressToken" && !name.startsWith("io.modelcontextprotocol/"),
      );
      expect(JSON.parse(`{${text ?? ""}}`)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(kept))));
    }),
  );
});
