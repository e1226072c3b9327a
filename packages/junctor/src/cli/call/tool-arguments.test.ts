import { describe, expect, test } from "vitest";
import type { Tool } from "../../../../core/src/mcp/types.ts";
import { parseArgumentsJson, parseAssignments, synopsisOf } from "./tool-arguments.ts";

const add: Tool = {
  name: "add",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
};
const echo: Tool = {
  name: "echo",
  inputSchema: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
};
const plain: Tool = { name: "plain", inputSchema: { type: "object" } };
const open: Tool = {
  name: "open",
  inputSchema: {
    type: "object",
    properties: { a: { type: "string" } },
    additionalProperties: { type: "integer" },
  },
};
const parts: Tool = {
  name: "parts",
  inputSchema: { type: "object", anyOf: [{ properties: { a: { type: "string" } } }] },
};

describe("a synopsis", () => {
  test("puts what is required first and the rest in brackets", () => {
    const inputSchema = {
      type: "object",
      properties: {
        days: { type: "integer" },
        city: { type: "string" },
        unit: { enum: ["C", "very hot"] },
        tags: { type: "array", items: { type: "string" } },
        any: {},
      },
      required: ["city"],
    };
    expect(synopsisOf({ name: "x", inputSchema })).toBe(
      "city=string [days=integer] [unit=C|'very hot'] [tags=string[]] [any=any]",
    );
  });
});

describe("words that a tool does not take", () => {
  const takes = "(add takes a=number b=number)";
  test.each([
    [add, ["a=1"], `b is missing ${takes}`],
    [add, [], `a and b are missing ${takes}`],
    [add, ["a=1", "b=two"], `b=two is not a number ${takes}`],
    [add, ["a=1", "b="], `b= is not a number ${takes}`],
    [add, ["a=1", "b=2", "bb=3"], `there is no argument "bb"; did you mean b? ${takes}`],
    [add, ["a=1", "b=2", "c=3"], `there is no argument "c" ${takes}`],
    [add, ["a=1", "a=2", "b=2"], `a=… was given 2 times ${takes}`],
    [add, ["a=NaN", "b=2"], `a=NaN is not a number ${takes}`],
    [
      add,
      ["a=12345678901234567890", "b=2"],
      `a=12345678901234567890 is too large a number to be sent exactly (the limit is 9007199254740991) ${takes}`,
    ],
    [echo, ["hi"], '"hi" is not of the form key=value; did you mean message=hi? (echo takes message=string)'],
    [echo, ["=hi"], '"=hi" is not of the form key=value'],
    [plain, ["name=Ada"], 'there is no argument "name" (plain takes no arguments)'],
    [open, ["b=x"], "b=x is not an integer (open takes [a=string])"],
  ])("%o %j", (tool, words, complaint) => {
    expect(() => parseAssignments(words, tool)).toThrow(complaint);
  });

  test("are refused in JSON too", () => {
    expect(() => parseArgumentsJson('{"a":1,"bb":2}', add)).toThrow('no argument "bb"; did you mean b?');
    expect(() => parseArgumentsJson('{"a":1}', add)).toThrow("b is missing");
    expect(() => parseArgumentsJson("[1]", add)).toThrow("--args needs a JSON object");
    expect(() => parseArgumentsJson("{", add)).toThrow("--args is not JSON");
  });
});

describe("words that a tool takes", () => {
  test("may hold anything after the first =", () => {
    expect(parseAssignments(["message=a=b c"], echo)).toEqual({ message: "a=b c" });
    expect(parseAssignments(["message="], echo)).toEqual({ message: "" });
    expect(parseAssignments(["message=12"], echo)).toEqual({ message: "12" });
  });

  test("may be of names the schema leaves open", () => {
    expect(parseAssignments(["b=3"], open)).toEqual({ b: 3 });
    expect(parseAssignments(["a=x"], parts)).toEqual({ a: "x" });
  });

  test("may be named like what every object has", () => {
    const args = parseAssignments(["__proto__=3"], open);
    expect(JSON.stringify(args)).toBe('{"__proto__":3}');
  });
});
