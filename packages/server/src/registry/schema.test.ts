import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { SchemaError } from "../../../core/src/errors/index.ts";
import { describeIssues } from "../../../core/src/schema/types.ts";
import {
  type Checked,
  type InferredInput,
  type InferredOutput,
  type JsonSchema,
  type SchemaSource,
  toObjectRoot,
  toSchema,
} from "./schema.ts";

const weather: JsonSchema = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 }, unit: { enum: ["c", "f"] } },
  required: ["city", "unit"],
  additionalProperties: false,
};

async function textOf(schema: JsonSchema, value: unknown): Promise<string> {
  const checked: Checked = await toSchema(schema).check(value);
  return checked.ok ? "ok" : describeIssues(checked.issues);
}

describe("a JSON Schema", () => {
  test("is listed as it is", () => {
    expect(toSchema(weather).json).toBe(weather);
  });

  test("gives back the very value that fits", async () => {
    const value = { city: "Paris", unit: "c" };
    const checked = await toSchema(weather).check(value);
    expect(checked.ok && checked.value).toBe(value);
  });

  test("neither fills in defaults, nor changes types, nor drops properties", async () => {
    const value = { n: "3", extra: 1 };
    const schema = { type: "object", properties: { n: { type: "number" }, d: { default: 1 } } };
    expect(await textOf(schema, value)).toContain("/n must be number");
    expect(value).toEqual({ n: "3", extra: 1 });
  });

  test.each<[JsonSchema, unknown, string]>([
    [weather, { city: 3, unit: "c" }, "/city must be string (got number 3)"],
    [weather, { city: "x" }, "/ must have required property 'unit'"],
    [weather, { city: "x", unit: "k" }, '/unit must be one of "c", "f" (got string "k")'],
    [weather, { city: "x", unit: "c", extra: 1 }, '/ must not have property "extra"'],
    [weather, [], "/ must be object (got array of 0)"],
    [weather, null, "/ must be object (got null)"],
    [
      { properties: { "a/b~c": { type: "null" } } },
      { "a/b~c": true },
      "/a~1b~0c must be null (got boolean true)",
    ],
    [{ items: { const: 1 } }, [1, {}], "/1 must be 1 (got object)"],
    [{ maxLength: 1 }, "x".repeat(500), 'more than 1 characters (got string "xxx'],
    [{ properties: { a: false } }, { a: 1 }, "/a boolean schema is false"],
    [{ propertyNames: { maxLength: 1 } }, { ab: 1 }, '/ must not have property "ab": the name is invalid'],
    [{ unevaluatedProperties: false }, { ab: 1 }, '/ must not have property "ab"'],
    [{ format: "email" }, "nobody", 'must match format "email"'],
  ])("%j says what is wrong with %j", async (schema, value, text) => {
    const found = await textOf(schema, value);
    expect(found).toContain("Invalid arguments: ");
    expect(found).toContain(text);
    expect(found.length).toBeLessThan(500);
  });

  test("reports several issues at once, each one once, eight at most", async () => {
    expect(await textOf(weather, { city: 1, unit: 2 })).toContain("; /unit must be one of");
    expect(await textOf({ anyOf: [{ type: "string" }, { type: "string" }] }, 1)).toBe(
      "Invalid arguments: / must be string (got number 1); / must match a schema in anyOf (got number 1)",
    );
    const checked = await toSchema({ items: { type: "string" } }).check(Array.from({ length: 50 }, () => 1));
    expect(!checked.ok && checked.issues.length).toBe(8);
  });

  test("names one issue of a huge value, rather than gather a million", async () => {
    const checked = await toSchema({ items: { type: "string" } }).check(Array.from({ length: 1e6 }, () => 1));
    expect(!checked.ok && checked.issues).toEqual([{ path: "/0", message: "must be string (got number 1)" }]);
  });

  test("does not take what objects inherit for properties", async () => {
    expect(await textOf({ required: ["toString"] }, {})).toContain("required property 'toString'");
    expect(await textOf({ properties: { constructor: { type: "string" } } }, {})).toBe("ok");
    expect(await textOf({ additionalProperties: false }, JSON.parse('{"__proto__":{"a":1}}'))).toContain(
      "__proto__",
    );
    expect(await textOf(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as JsonSchema, {})).toBe(
      "ok",
    );
    expect(Object.hasOwn(Object.prototype, "a")).toBe(false);
  });

  test("ignores keywords and formats nobody knows", async () => {
    expect(await textOf({ "x-mcp-header": "A", format: "wibble", foo: { $ref: "http://x/" } }, "x")).toBe(
      "ok",
    );
  });

  test("is not led astray by keywords that only its checker knows", async () => {
    expect(await textOf({ $async: true, type: "string" }, 1)).toContain("must be string");
    expect(await textOf({ properties: { a: { id: "x", nullable: true, anyOf: [{}] } } }, { a: 1 })).toBe(
      "ok",
    );
    expect(await textOf({ type: "object", properties: { id: { type: "null" } } }, { id: 1 })).toContain(
      "/id must",
    );
  });

  test("takes patterns of the older syntax too", async () => {
    expect(await textOf({ pattern: "^\\_\\p{Lu}$" }, "_p{Lu}")).toBe("ok");
    expect(await textOf({ pattern: "^\\p{Lu}$" }, "É")).toBe("ok");
  });

  test("that is invalid is found out at the first check, and again at each one after", async () => {
    for (const invalid of [
      { type: "strin" },
      { properties: { a: 3 } },
      { required: [1] },
      { pattern: "(" },
    ]) {
      const schema = toSchema(invalid);
      for (let round = 0; round < 2; round += 1) {
        await expect((async () => schema.check(1))()).rejects.toMatchObject({ code: "schema.invalid" });
      }
    }
  });

  test("that is not an object is refused", () => {
    for (const source of [null, 1, "x", []]) {
      expect(() => toSchema(source as unknown as JsonSchema)).toThrow(SchemaError);
    }
  });
});

describe("an object root", () => {
  test("is asked for", () => {
    expect(() => toObjectRoot(toSchema(weather), "Tool")).not.toThrow();
    expect(() => toObjectRoot(toSchema(z.object({})), "Tool")).not.toThrow();
    expect(() => toObjectRoot(toSchema({}), 'Tool "x": input')).toThrow('Tool "x": input must be');
    expect(() => toObjectRoot(toSchema({ type: ["object"] }), "Tool")).toThrow(SchemaError);
    expect(() => toObjectRoot(toSchema(z.string()), "Tool")).toThrow('type "string"');
  });
});

describe("a union of objects", () => {
  const a = z.object({ kind: z.literal("a"), n: z.number() });
  const b = z.object({ kind: z.literal("b") });

  test.each<[what: string, source: SchemaSource]>([
    ["z.union", z.union([a, b])],
    ["z.discriminatedUnion", z.discriminatedUnion("kind", [a, b])],
    ["z.union in z.union", z.union([a, z.union([b, a])])],
    [
      "z.intersection",
      z.intersection(z.object({ kind: z.string() }), z.object({ n: z.number().optional() })),
    ],
    [
      "anyOf",
      {
        anyOf: [
          { type: "object", required: ["kind"] },
          { type: "object", required: ["b"] },
        ],
      },
    ],
  ])("as %s has an object root, and is checked as before", async (_, source) => {
    const schema = toObjectRoot(toSchema(source), "Tool");
    expect(schema.json).toMatchObject({ ...toSchema(source).json, type: "object" });
    expect(await schema.check({ kind: "b" })).toMatchObject({ ok: true });
    expect(await schema.check({})).toMatchObject({ ok: false });
  });

  test("with something else beside it has none", () => {
    const source = z.union([a, z.string()]);
    expect(() => toObjectRoot(toSchema(source), "Tool")).toThrow("but has no type. Wrap it in an object");
  });
});

test.each<[source: JsonSchema, sentence: string]>([
  [{ type: "object", properties: { a: z.string() } }, "holds a zod schema at /properties/a. Write all of it"],
  [{ type: "object", properties: { a: { items: z.string() } } }, "at /properties/a/items"],
  [{ anyOf: [z.string()] }, "at /anyOf/0"],
])("a JSON Schema that holds a schema of a library is refused", (source, sentence) => {
  expect(() => toSchema(source, { what: "Tool" })).toThrow(sentence);
});

test("a property that is called ~standard is a property", () => {
  const properties = { "~standard": { type: "string" } };
  expect(() => toSchema({ type: "object", properties })).not.toThrow();
});

describe("types", () => {
  test("of a handler's arguments come from the schema", () => {
    function register<const S extends SchemaSource>(
      _input: S,
      _handler: (args: InferredOutput<S>) => void,
    ): void {}
    register(z.object({ a: z.number().default(1) }), (args) =>
      expectTypeOf(args).toEqualTypeOf<{ a: number }>(),
    );
    const json: JsonSchema = { type: "object", properties: { a: {} } };
    register(json, (args) => expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>());
    register(
      {
        type: "object",
        properties: {
          kind: { enum: ["a", "b"] },
          sizes: { type: "array", items: { type: ["integer", "null"] } },
          at: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
        },
        required: ["kind", "at"],
      },
      (args) => {
        expectTypeOf(args.kind).toEqualTypeOf<"a" | "b">();
        expectTypeOf(args.at.x).toEqualTypeOf<number>();
        expectTypeOf(args.sizes).toEqualTypeOf<(number | null)[] | undefined>();
      },
    );
    const source = z.object({ a: z.number().default(1) });
    expectTypeOf<InferredInput<typeof source>>().toEqualTypeOf<{ a?: number | undefined }>();
  });
});

describe("describing issues", () => {
  test("says how many were left out", () => {
    const issues = Array.from({ length: 10 }, (_, n) => ({ path: `/${n}`, message: "is wrong" }));
    expect(describeIssues(issues, "Bad")).toMatch(/^Bad: \/0 is wrong; .*\/7 is wrong; and 2 more$/);
  });
});
