import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { decodeHeaderValue, encodeHeaderValue } from "./mirrored-headers.ts";

const wellFormed = fc.string({ unit: "binary" }).filter((text) => Buffer.from(text).toString() === text);
const lookAlike = fc
  .tuple(
    fc.constantFrom("=?base64?", "=?BASE64?", "=?base64", "=?"),
    fc.string(),
    fc.constantFrom("?=", "=", ""),
  )
  .map((parts) => parts.join(""));

describe("a header value", () => {
  test("comes out as it went in", () => {
    fc.assert(
      fc.property(fc.oneof(wellFormed, fc.string(), lookAlike), (text) => {
        expect(decodeHeaderValue(encodeHeaderValue(text))).toBe(text);
      }),
      { numRuns: runs(1000) },
    );
  });

  test("is visible ASCII without spaces at its ends, whatever it says", () => {
    fc.assert(
      fc.property(fc.oneof(wellFormed, lookAlike), (text) => {
        expect(encodeHeaderValue(text)).toMatch(/^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/);
      }),
    );
  });

  test.each([
    ["get_weather", "get_weather"],
    ["with inner spaces", "with inner spaces"],
    ["", ""],
    [" led", "=?base64?IGxlZA==?="],
    ["trailed ", "=?base64?dHJhaWxlZCA=?="],
    ["tab\tinside", "=?base64?dGFiCWluc2lkZQ==?="],
    ["line\nbreak", "=?base64?bGluZQpicmVhaw==?="],
    ["Zürich", "=?base64?WsO8cmljaA==?="],
    ["=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="],
  ])("%j is written %s", (text, value) => {
    expect(encodeHeaderValue(text)).toBe(value);
  });

  test.each([
    ["=?base64??=", ""],
    ["=?base64?YQ==?=", "a"],
    ["=?BASE64?YQ==?=", "=?BASE64?YQ==?="],
    ["=?base64?YQ==", "=?base64?YQ=="],
    ["=?base64?=", "=?base64?="],
    ["x=?base64?YQ==?=", "x=?base64?YQ==?="],
  ])("%s is read as %j", (value, text) => {
    expect(decodeHeaderValue(value)).toBe(text);
  });

  test.each([
    ["padding left out", "=?base64?YQ?="],
    ["too much padding", "=?base64?YQ===?="],
    ["stray bits", "=?base64?YR==?="],
    ["another alphabet", "=?base64?_-8=?="],
    ["white space", "=?base64?Y Q==?="],
    ["foreign characters", "=?base64?Y*==?="],
    ["bytes that are not UTF-8", "=?base64?/w==?="],
    ["a surrogate", "=?base64?7aCA?="],
    ["more after its padding", "=?base64?YQ==YQ==?="],
  ])("is refused when its base64 has %s", (_, value) => {
    expect(decodeHeaderValue(value)).toBeUndefined();
  });
});
