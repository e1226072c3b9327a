import type { Tool } from "@junctor/core/mcp";
import { expect, test } from "vitest";
import { printServerTypes } from "./server-types.ts";

function typesOf(inputSchema: object, outputSchema?: object): string {
  const tool = { name: "do_it", inputSchema, ...(outputSchema === undefined ? {} : { outputSchema }) };
  return printServerTypes({ name: "demo", tools: [tool as Tool], prompts: [] });
}

test("arguments, results and prompts are members of one interface, with their descriptions", () => {
  const text = printServerTypes({
    name: "demo",
    tools: [
      {
        name: "add",
        description: "Adds two numbers.",
        inputSchema: {
          type: "object",
          properties: { a: { type: "number", description: "The first" }, "b c": { type: "integer" } },
          required: ["a"],
        },
        outputSchema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
      },
      { name: "a-b", inputSchema: { type: "object" } },
    ],
    prompts: [{ name: "review", arguments: [{ name: "code", required: true }, { name: "style" }] }],
  });
  expect(text)
    .toBe(`/** What demo takes and gives. Junctor wrote this from its lists: do not edit it, write it again. */
export interface Server {
  tools: {
    "a-b": {
      args: { [name: string]: unknown };
      result: undefined;
    };
    /** Adds two numbers. */
    add: {
      args: {
        /** The first */
        a: number;
        "b c"?: number;
      };
      result: {
        sum: number;
      };
    };
  };
  prompts: {
    review: {
      args: {
        code: string;
        style?: string;
      };
    };
  };
}
`);
});

test("choices, unions and constants are literal types", () => {
  const text = typesOf({
    type: "object",
    properties: {
      size: { type: "string", enum: ["s", "m"] },
      either: { anyOf: [{ type: "string" }, { type: "null" }] },
      many: { type: "array", items: { type: ["string", "number"] } },
      both: { allOf: [{ type: "object", properties: { a: { const: 1 } } }, { $ref: "#/$defs/More" }] },
    },
    $defs: { More: { type: "object", properties: { b: { type: "boolean" } }, required: ["b"] } },
  });
  expect(text).toContain('size?: ("s" | "m");');
  expect(text).toContain("either?: (string | null);");
  expect(text).toContain("many?: readonly (string | number)[];");
  expect(text).toMatch(/both\?: \(\{\n +a\?: 1;\n +\} & DoItArgsMore\);/);
  expect(text).toContain("type DoItArgsMore = {\n  b: boolean;\n};");
});

test("a schema that refers to itself is a type that does", () => {
  const text = typesOf({
    type: "object",
    properties: { root: { $ref: "#/$defs/node" } },
    $defs: {
      node: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } } },
    },
  });
  expect(text).toContain("root?: DoItArgsNode;");
  expect(text).toContain("type DoItArgsNode = {\n  children?: readonly DoItArgsNode[];\n};");
});

test("a cycle of references alone is unknown, because TypeScript refuses it", () => {
  const text = typesOf({
    type: "object",
    properties: { x: { $ref: "#/$defs/a" } },
    $defs: {
      a: { anyOf: [{ $ref: "#/$defs/b" }, { type: "string" }] },
      b: { $ref: "#/$defs/a" },
    },
  });
  expect(text).toContain("type DoItArgsB = unknown;");
});

test("a description cannot end its comment or hide what follows", () => {
  const text = typesOf({
    type: "object",
    properties: { a: { type: "string", description: "x */ stolen: never; /*\u202e\u0000\nsecond" } },
  });
  expect(text).toContain("* x *\\/ stolen: never; /*\n");
  expect(["\u202e", "\u0000"].filter((mark) => text.includes(mark))).toEqual([]);
});

test("the order of lists changes nothing", () => {
  const tools: Tool[] = [
    { name: "b", inputSchema: { type: "object" } },
    { name: "a", inputSchema: { type: "object" } },
  ];
  const print = (listed: readonly Tool[]): string =>
    printServerTypes({ name: "s", tools: listed, prompts: [] });
  expect(print(tools)).toBe(print(tools.toReversed()));
});
