import { describe, expect, test } from "vitest";
import { describeType, parseValue, toValueType } from "./command.ts";

const root = {
  $defs: {
    size: { type: "integer" },
    self: { $ref: "#/$defs/self" },
    colour: { oneOf: [{ const: "r", title: "Red" }, { const: "g" }] },
  },
};

const parse = (schema: object, ...texts: readonly string[]): unknown => {
  const parsed = parseValue(texts, toValueType(schema, root));
  return parsed.ok ? parsed.value : `problem: ${parsed.problem}`;
};

describe("a type is described as a manual would", () => {
  test.each([
    [{ type: "integer" }, "integer"],
    [{ type: ["string", "null"] }, "null|string"],
    [{ $ref: "#/$defs/size" }, "integer"],
    [{ $ref: "#/$defs/self" }, "any"],
    [{ $ref: "https://example.com/x" }, "any"],
    [{ $ref: "#/$defs/colour" }, "r|g"],
    [{ type: "string", oneOf: [{ const: "a b" }, { const: 2 }] }, "'a b'|2"],
    [{ anyOf: [{ type: "integer" }, { const: null }] }, "null|integer"],
    [{ anyOf: [{ type: "integer" }, true] }, "any"],
    [{ allOf: [{ description: "x" }, { type: "boolean" }] }, "boolean"],
    [{ type: "array", items: { enum: [1, 2] } }, "(1|2)[]"],
    [{ type: "array" }, "array"],
    [true, "any"],
  ])("%j", (schema, description) => {
    expect(describeType(toValueType(schema, root))).toBe(description);
  });
});

describe("a text becomes the value its type says", () => {
  test.each([
    [{ type: "string" }, "12", "12"],
    [{ type: "integer" }, "-12", -12],
    [{ type: "integer" }, "1.0", 1],
    [{ type: "number" }, "1e3", 1000],
    [{ type: "number" }, "9007199254740993.5", 9007199254740994],
    [{ type: "boolean" }, "false", false],
    [{ type: ["integer", "string"] }, "12", 12],
    [{ type: ["integer", "string"] }, "twelve", "twelve"],
    [{ type: ["string", "null"] }, "null", null],
    [{ enum: ["a", 2, null] }, "2", 2],
    [{ type: "array", items: { type: "integer" } }, "3", [3]],
    [{ type: "array", items: { type: "integer" } }, "[3,4]", [3, 4]],
    [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] }, "x", "x"],
    [{ type: "object" }, '{"a":1}', { a: 1 }],
    [{}, '{"a":1}', { a: 1 }],
    [{}, "null", null],
    [{}, "plain", "plain"],
  ])("%j %s", (schema, text, value) => {
    expect(parse(schema, text)).toEqual(value);
  });

  test("or the problem with it", () => {
    expect(parse({ type: "integer" }, "1.5")).toBe("problem: is not an integer");
    expect(parse({ type: "boolean" }, "yes")).toBe("problem: is not true or false");
    expect(parse({ type: ["integer", "null"] }, "x")).toBe("problem: is not null or an integer");
    expect(parse({ type: "object" }, "x")).toMatch(/^problem: is not a JSON object, such as /);
    expect(parse({ type: "array" }, "[1")).toMatch(/^problem: is not a JSON array, such as /);
    expect(parse({ enum: ["celsius", "kelvin"] }, "celsus")).toBe(
      "problem: is not one of celsius, kelvin; did you mean celsius?",
    );
    expect(parse({ type: "array", items: { type: "integer" } }, "1", "x")).toBe("problem: is not an integer");
    expect(parse({ type: "array", items: { type: "object" } }, "x")).toBe(
      `problem: is not a JSON array, such as '[{"key":"value"}]'`,
    );
    expect(parse({ type: "string" }, "a", "b")).toBe("problem: was given 2 times");
  });

  test("several texts are the items of an array", () => {
    expect(parse({ type: "array", items: { type: "string" } }, "a", "2")).toEqual(["a", "2"]);
  });
});
