import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { RawJson } from "./raw.ts";
import { toOneLine } from "./rewrite.ts";

test("an element on a line of its own does not become a line of its own", () => {
  const text = '{"arguments":[\n{"jsonrpc":"2.0","id":1,"method":"tools/call"}\r\n]}';
  const expected = '{"arguments":[ {"jsonrpc":"2.0","id":1,"method":"tools/call"}  ]}';
  expect(toOneLine(RawJson.parse(Buffer.from(text))).text).toBe(expected);
  expect(toOneLine(RawJson.fromText(text, true)).text).toBe(expected);
});

test("nothing but line breaks changes, in any JSON text", () => {
  fc.assert(
    fc.property(jsonText(), (text) => {
      const line = Buffer.from(toOneLine(RawJson.parse(Buffer.from(text))).bytes).toString();
      expect(line).toBe(text.replaceAll(/[\n\r]/g, " ").trim());
      expect(JSON.parse(line)).toEqual(JSON.parse(text));
    }),
  );
});

test("what has no line break is returned as it is", () => {
  const raws = [
    RawJson.parse(Buffer.from('{"a":"\\n"}')),
    RawJson.fromText("[1]"),
    RawJson.fromValue({ a: "\n" }),
  ];
  for (const raw of raws) expect(toOneLine(raw)).toBe(raw);
});
