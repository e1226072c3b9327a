import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { callTool, valueOf } from "../../../../test/support/use-provider.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import type { ToolResult } from "../../../core/src/mcp/types.ts";
import { inputRequired, failure, structured, text } from "../../../core/src/provider/content.ts";
import type { HandlerResult, ToolHandler } from "./event.ts";
import { createRegistry, type Registry } from "./registry.ts";
import type { InferredOutput, SchemaSource } from "./schema.ts";
import type { ToolSpec } from "./tool-spec.ts";

// These tests run twice: `tsc` fails for a mistake that compiles (an unused @ts-expect-error) and for sound code that does
// not, and vitest runs the same lines.

const output = z.object({ celsius: z.number(), unit: z.enum(["c", "f"]).default("c") });
const strict = z.strictObject({ celsius: z.number() });
const more = { celsius: 3, sky: "blue" };
const sources = {
  valibot: toStandardJsonSchema(v.object({ celsius: v.number() })),
  arktype: type({ celsius: "number" }),
};

describe("with `output`, a handler may return", () => {
  test.each<[what: string, register: (registry: Registry) => void]>([
    ["the value", (r) => r.register("x", { output }, () => ({ celsius: 3 }))],
    ["the value, with literals", (r) => r.register("x", { output }, () => ({ celsius: 3, unit: "f" }))],
    ["a promise of it", (r) => r.register("x", { output }, async () => ({ celsius: 3, unit: "f" }))],
    ["structured()", (r) => r.register("x", { output }, async () => structured({ celsius: 3, unit: "f" }))],
    [
      "a whole result",
      (r) => r.register("x", { output }, () => ({ content: [text("3")], structuredContent: { celsius: 3 } })),
    ],
    [
      "the value at the end of a stream",
      (r) =>
        r.register("x", { output }, async function* () {
          yield "warm";
          yield { type: "progress", progress: 1 };
          return { celsius: 3, unit: "c" };
        }),
    ],
    [
      "the value at the end of a generator",
      (r) =>
        r.register("x", { output }, function* () {
          yield { type: "toolUse", name: "thermometer" };
          return structured({ celsius: 3 });
        }),
    ],
    [
      "a value of valibot's schema",
      (r) => r.register("x", { output: sources.valibot }, () => ({ celsius: 3 })),
    ],
    [
      "a value of arktype's schema",
      (r) => r.register("x", { output: sources.arktype }, () => ({ celsius: 3 })),
    ],
    ["any object for a JSON Schema", (r) => r.register("x", { output: jsonSchema }, () => ({ celsius: 3 }))],
  ])("%s", async (_, register) => {
    const registry = createRegistry();
    register(registry);
    expect(await resultOf(registry)).toMatchObject({ structuredContent: { celsius: 3 } });
  });

  test("a string, where the schema is one", async () => {
    const registry = createRegistry();
    registry.register("x", { output: z.enum(["warm", "cold"]) }, () => "warm");
    expect(await resultOf(registry)).toMatchObject({ structuredContent: "warm" });
  });

  test("a failure or a question", async () => {
    const registry = createRegistry();
    registry.register("x", { output }, (_, { answers }) => {
      const answer = answers.elicited("where");
      if (answer === undefined) return inputRequired({ where: elicit("Where?", {}) });
      return answer.action === "accept" ? { celsius: 3 } : failure("no place, no weather");
    });
    expect(await callTool(registry, "x")).toMatchObject({ kind: "input_required" });
    registry.unregister("x");
    registry.register("x", { output }, () => ({ content: [text("no thermometer")], isError: true }));
    expect(await resultOf(registry)).toMatchObject({ isError: true });
  });
});

describe("with `output`, the run shows whether it fits:", () => {
  test.each<[what: string, register: (registry: Registry) => void]>([
    ["a string, by JSON Schema", (r) => r.register("x", { output: { type: "string" } }, () => "warm")],
    [
      "one of several types, by JSON Schema",
      (r) => r.register("x", { output: { anyOf: [{ type: "string" }, { type: "null" }] } }, () => "warm"),
    ],
    ["a whole result of elsewhere", (r) => r.register("x", { output: z.string() }, () => wholeResult())],
    [
      "a whole result of elsewhere, awaited",
      (r) => r.register("x", { output: z.string() }, async () => await wholeResult()),
    ],
    [
      "a whole result at the end of a stream",
      (r) =>
        r.register("x", { output: z.string() }, async function* () {
          yield "part";
          return await wholeResult();
        }),
    ],
  ])("%s", async (_, register) => {
    const registry = createRegistry();
    register(registry);
    expect(await resultOf(registry)).toMatchObject({ structuredContent: "warm" });
  });

  test("a stream that fails and returns nothing", async () => {
    const registry = createRegistry();
    registry.register("x", { output }, async function* () {
      yield "part";
      yield { type: "error", message: "no thermometer" };
    });
    expect(await resultOf(registry)).toMatchObject({ isError: true, content: [{ text: "no thermometer" }] });
  });

  test.each<[what: string, register: (registry: Registry) => void, result: object]>([
    [
      "dropped by zod",
      (r) => r.register("x", { output }, () => more),
      { structuredContent: { celsius: 3, unit: "c" } },
    ],
    [
      "a failure for a strict object",
      (r) => r.register("x", { output: strict }, () => more),
      { isError: true },
    ],
    [
      "kept by JSON Schema",
      (r) => r.register("x", { output: jsonSchema }, () => more),
      { structuredContent: more },
    ],
  ])("members that the schema does not have are %s", async (_, register, result) => {
    const registry = createRegistry();
    register(registry);
    const { structuredContent, isError } = (await resultOf(registry)) as ToolResult;
    expect(isError === true ? { isError } : { structuredContent }).toEqual(result);
  });

  test("a whole result of elsewhere that does not fit", async () => {
    const registry = createRegistry();
    registry.register("x", { output }, () => wholeResult());
    expect(await resultOf(registry)).toMatchObject({ isError: true });
  });
});

describe("with `output`, a handler may not return", () => {
  test.each<[what: string, register: (registry: Registry) => void]>([
    // @ts-expect-error -- celsius is a number
    ["another type", (r) => r.register("x", { output }, () => ({ celsius: "3" }))],
    // @ts-expect-error -- celsius is a number
    ["a promise of another type", (r) => r.register("x", { output }, async () => ({ celsius: "3" }))],
    // @ts-expect-error -- celsius is missing
    ["less", (r) => r.register("x", { output }, () => ({ unit: "c" }))],
    // @ts-expect-error -- there is no unit k
    ["another literal", (r) => r.register("x", { output }, () => ({ celsius: 3, unit: "k" }))],
    // @ts-expect-error -- a string is not a temperature
    ["text", (r) => r.register("x", { output }, () => "3")],
    // @ts-expect-error -- nothing at all is not a temperature
    ["nothing", (r) => r.register("x", { output }, () => {})],
    // @ts-expect-error -- the result has no structuredContent
    ["a result without it", (r) => r.register("x", { output }, () => ({ content: [text("3")] }))],
    // @ts-expect-error -- celsius is a number
    ["structured() of another type", (r) => r.register("x", { output }, () => structured({ celsius: "3" }))],
    [
      "another type at the end of a stream",
      (r) =>
        // @ts-expect-error -- celsius is a number
        r.register("x", { output }, async function* () {
          yield "warm";
          return { celsius: "3" };
        }),
    ],
    [
      "nothing at the end of a generator",
      (r) =>
        // @ts-expect-error -- nothing at all is not a temperature
        r.register("x", { output }, function* () {
          yield "warm";
        }),
    ],
    [
      "a wrong value for valibot",
      // @ts-expect-error -- celsius is a number
      (r) => r.register("x", { output: sources.valibot }, () => ({ celsius: "3" })),
    ],
    [
      "a wrong value for arktype",
      // @ts-expect-error -- celsius is a number
      (r) => r.register("x", { output: sources.arktype }, () => ({ celsius: "3" })),
    ],
  ])("%s", async (_, register) => {
    const failed: string[] = [];
    const registry = createRegistry({ onError: (_error, tool) => void failed.push(tool) });
    register(registry);
    expect(await resultOf(registry)).toMatchObject({ isError: true });
    expect(failed).toEqual(["x"]);
  });
});

describe("without `output`, a handler may return", () => {
  interface Weather {
    readonly celsius: number;
  }
  const weather: Weather = { celsius: 3 };

  test.each<[what: string, register: (registry: Registry) => void]>([
    ["text", (r) => r.register("x", {}, () => "3")],
    ["an object of any shape", (r) => r.register("x", {}, () => ({ celsius: 3, next: "page", then: 1 }))],
    ["an interface", (r) => r.register("x", {}, () => weather)],
    ["a promise of a list of them", (r) => r.register("x", {}, async () => [weather])],
    ["nothing", (r) => r.register("x", {}, async () => {})],
    [
      "what a generator yields",
      (r) =>
        r.register("x", { input: z.object({ n: z.number().default(2) }) }, function* ({ n }) {
          for (let i = 0; i < n; i += 1) yield `${i}`;
        }),
    ],
  ])("%s", async (_, register) => {
    const registry = createRegistry();
    register(registry);
    expect(await resultOf(registry)).not.toHaveProperty("isError");
  });
});

describe("a misspelt event fails to compile, and ends the call with a sentence in the log:", () => {
  test.each<[what: string, register: (registry: Registry) => void, sentence: string]>([
    [
      "another type",
      (r) =>
        // @ts-expect-error -- it is "progress"
        r.register("x", {}, async function* () {
          yield { type: "progess", progress: 1 };
        }),
      'yielded an event of type "progess", which is not an event; did you mean "progress"?',
    ],
    [
      "no type",
      (r) =>
        // @ts-expect-error -- it is `type`, not `kind`
        r.register("x", {}, function* () {
          yield { kind: "progress", progress: 1 };
        }),
      "yielded object without a type, which is not an event; the types are content, toolUse, progress",
    ],
    [
      "a content block",
      (r) =>
        // @ts-expect-error -- a block is not an event
        r.register("x", {}, function* () {
          yield text("hello");
        }),
      'yielded a content block, which is not an event; write { type: "content", content: block }',
    ],
    [
      "a number",
      (r) =>
        // @ts-expect-error -- a number is not an event
        r.register("x", {}, function* () {
          yield 1;
        }),
      "yielded number 1 without a type, which is not an event",
    ],
  ])("%s", async (_, register, sentence) => {
    const errors: unknown[] = [];
    const registry = createRegistry({ onError: (error) => errors.push(error) });
    register(registry);
    expect(await resultOf(registry)).toMatchObject({ isError: true });
    expect(String(errors[0])).toContain(sentence);
  });
});

describe("what fails to compile is refused at registration:", () => {
  test.each<[what: string, register: (registry: Registry) => void, sentence: string]>([
    [
      "an input that is not an object",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { input: z.string() }, () => ""),
      'Tool "x": input must be a schema with type "object" at its root, but has type "string". Wrap it in an object',
    ],
    [
      "an input that is a list",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { input: z.array(z.string()) }, () => ""),
      'but has type "array". Wrap it in an object',
    ],
    [
      "a raw shape",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { input: { a: z.number() } }, () => ""),
      'Tool "x": input is a plain object whose member "a" is a zod schema. Wrap it: z.object({ … }).',
    ],
    [
      "a raw shape of arktype, with an argument called type",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { input: { type: type("string") } }, () => ""),
      "Wrap it: type({ … }).",
    ],
    [
      "a raw shape of an output",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { output: { a: v.number() } }, () => ({ a: 1 })),
      'Tool "x": output is a plain object whose member "a" is a valibot schema. Wrap it',
    ],
    [
      "a raw shape inside of a JSON Schema",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { input: { type: "object", properties: { a: z.string() } } }, () => ""),
      'Tool "x": input is a JSON Schema that holds a zod schema at /properties/a. Write all of it with zod',
    ],
    [
      "a raw shape inside of the JSON Schema of an output",
      // @ts-expect-error -- the error says what to write
      (r) => r.register("x", { output: { type: "object", properties: { a: z.string() } } }, () => null),
      'Tool "x": output is a JSON Schema that holds a zod schema at /properties/a',
    ],
    [
      "no handler",
      // @ts-expect-error -- the handler is missing
      (r) => r.register("x", { description: "Does nothing" }),
      'Tool "x": the handler is missing; write register(name, spec, handler)',
    ],
    [
      "a handler that is not a function",
      // @ts-expect-error -- a string is not a handler
      (r) => r.register("x", {}, "handler"),
      'Tool "x": the handler must be a function, but is string "handler"',
    ],
    [
      "no spec",
      // @ts-expect-error -- the spec is missing
      (r) => r.register("x", () => ""),
      'Tool "x": the spec is missing; write register("x", {}, handler)',
    ],
    [
      "a misspelt key",
      // @ts-expect-error -- it is "input"
      (r) => r.register("x", { inputt: z.object({}) }, () => ""),
      'Tool "x" has no option "inputt"; did you mean "input"?',
    ],
    [
      "the key of another library",
      // @ts-expect-error -- it is "input"
      (r) => r.register("x", { inputSchema: z.object({}) }, () => ""),
      'Tool "x" has no option "inputSchema"; did you mean "input"?',
    ],
    [
      "a key of nothing we know",
      // @ts-expect-error -- there is no such key
      (r) => r.register("x", { colour: "red" }, () => ""),
      'Tool "x" has no option "colour"; its options are title, description, input',
    ],
  ])("%s", (_, register, sentence) => {
    expect(() => register(createRegistry())).toThrow(sentence);
  });

  test("a misspelt option of the registry", () => {
    // @ts-expect-error -- it is "onError"
    expect(() => createRegistry({ onErorr: () => {} })).toThrow(
      'createRegistry has no option "onErorr"; did you mean "onError"?',
    );
  });
});

describe("an input may be", () => {
  test.each<[what: string, register: (registry: Registry) => void]>([
    [
      "an object",
      (r) => r.register("x", { input: z.object({ a: z.number().optional() }) }, ({ a }) => a ?? 0),
    ],
    ["a record", (r) => r.register("x", { input: z.record(z.string(), z.number()) }, (args) => args)],
    [
      "an object behind a preprocessor",
      (r) => r.register("x", { input: z.preprocess((given) => given, z.object({})) }, () => ""),
    ],
    [
      "a JSON Schema in a variable",
      (r) => r.register("x", { input: jsonSchema }, (args) => args["celsius"] ?? 0),
    ],
    [
      "an object that may be left out",
      (r) =>
        r.register("x", { input: z.object({ a: z.number().optional() }).optional() }, (args) => args?.a ?? 0),
    ],
    [
      "an object with a default",
      (r) =>
        r.register("x", { input: z.object({ a: z.number().default(1) }).default({ a: 2 }) }, ({ a }) => a),
    ],
    [
      "a union of objects",
      (r) => r.register("x", { input: z.union([z.object({ a: z.number() }), z.object({})]) }, (args) => args),
    ],
    [
      "given by a generic function",
      (r) => addGeneric(r, z.object({ a: z.number().default(1) }), ({ a }) => a),
    ],
    ["a document from elsewhere", (r) => r.register("x", { input: toDocument() }, () => "")],
    ["a schema known only as one", (r) => r.register("x", toSpec(), () => "")],
  ])("%s", async (_, register) => {
    const registry = createRegistry();
    register(registry);
    expect(await resultOf(registry)).not.toHaveProperty("isError");
  });

  test("typed for the handler as it comes out", () => {
    createRegistry().register("x", { input: z.object({ n: z.coerce.number() }) }, ({ n }) => {
      expectTypeOf(n).toEqualTypeOf<number>();
      return n;
    });
  });
});

test("a generator is not a value that a handler may return", () => {
  expectTypeOf<Generator<number>>().not.toExtend<HandlerResult>();
  expectTypeOf<AsyncGenerator<number>>().not.toExtend<HandlerResult>();
  expectTypeOf<Map<string, number>>().not.toExtend<HandlerResult>();
  expectTypeOf<{ next: string }>().toExtend<HandlerResult>();
});

test("a function is not a value that a handler may return", async () => {
  const registry = createRegistry({ onError: () => {} });
  // @ts-expect-error -- a function has no JSON
  registry.register("x", {}, () => () => 1);
  expect(await resultOf(registry)).toMatchObject({ isError: true });
});

const jsonSchema = { type: "object", properties: { celsius: { type: "number" } } };

function toDocument(): { readonly [keyword: string]: unknown } {
  return JSON.parse('{"type":"object"}') as { readonly [keyword: string]: unknown };
}

function toSpec(): ToolSpec<SchemaSource> {
  return { input: z.object({}) };
}

function wholeResult(): Promise<ToolResult> {
  return Promise.resolve({ content: [text("warm")], structuredContent: "warm" });
}

function addGeneric<Input extends z.ZodObject>(
  registry: Registry,
  input: Input,
  handler: ToolHandler<InferredOutput<Input>>,
): void {
  registry.register("x", { input }, handler);
}

async function resultOf(registry: Registry): Promise<unknown> {
  return valueOf(await callTool(registry, "x"));
}
