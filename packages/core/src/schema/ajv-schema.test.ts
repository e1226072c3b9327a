import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { type JsonSchema, type Schema, toSchema } from "../../../server/src/registry/schema.ts";
import type { SchemaError } from "../errors/index.ts";
import { surveySchema } from "./survey.ts";
import { defaultSchemaLimits, type SchemaLimits } from "./types.ts";

async function isOk(schema: Schema, value: unknown): Promise<boolean> {
  return (await schema.check(value)).ok;
}

function refusal(schema: JsonSchema, limits: Partial<SchemaLimits> = {}): string {
  try {
    toSchema(schema, { limits });
    return "accepted";
  } catch (error) {
    return (error as SchemaError).code;
  }
}

describe("dialects", () => {
  test.each([
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft/2020-12/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema#",
  ])("%s is understood", async ($schema) => {
    const schema = toSchema({
      $schema,
      type: "object",
      required: ["a"],
      properties: { a: { format: "date" } },
    });
    expect(await isOk(schema, { a: "2026-07-28" })).toBe(true);
    expect(await isOk(schema, { a: "today" })).toBe(false);
  });

  test("each has its own keywords", async () => {
    const tuple = [{ type: "string" }, { type: "number" }];
    expect(await isOk(toSchema({ prefixItems: tuple }), ["a", "b"])).toBe(false);
    const draft07 = toSchema({ $schema: "http://json-schema.org/draft-07/schema#", items: tuple });
    expect(await isOk(draft07, ["a", "b"])).toBe(false);
    const tree = {
      $schema: "https://json-schema.org/draft/2019-09/schema",
      $recursiveAnchor: true,
      properties: { next: { $recursiveRef: "#" } },
      required: ["n"],
    };
    expect(await isOk(toSchema(tree), { n: 1, next: { n: 2 } })).toBe(true);
    expect(await isOk(toSchema(tree), { n: 1, next: {} })).toBe(false);
  });

  test.each(["http://json-schema.org/draft-04/schema#", "https://example.com/mine", "", 7, "constructor"])(
    "%j is refused at once, and never means that all is accepted",
    ($schema) => {
      expect(refusal({ $schema })).toBe("schema.dialect");
    },
  );
});

describe("references", () => {
  test.each<JsonSchema>([
    { $ref: "http://example.com/a.json" },
    { properties: { a: { $ref: "other.json#/x" } } },
    { items: { $dynamicRef: "https://example.com/#meta" } },
    { $ref: "#/$defs/missing", $defs: {} },
    { $ref: "#/$defs/toString", $defs: {} },
    { $ref: "#missing" },
    { $ref: "file:///etc/passwd" },
    { $ref: "https://json-schema.org/draft/2020-12/schema" },
    { $id: "https://example.com/a", $ref: "b" },
    { allOf: [{ not: { if: { $ref: "//x" } } }] },
    { $ref: "#/%FF" },
  ])("%j leads nowhere, and is refused at once", (schema) => {
    expect(refusal(schema)).toBe("schema.ref");
  });

  test("in properties and data are not references", () => {
    expect(
      refusal({ properties: { $ref: { type: "string" } }, const: { $ref: "x" }, default: { $ref: "x" } }),
    ).toBe("accepted");
  });

  test.each<JsonSchema>([
    { $ref: "#/$defs/a", $defs: { a: { type: "string" } } },
    { $ref: "#/$defs/a%20b~1c", $defs: { "a b/c": { type: "string" } } },
    { $ref: "#text", $defs: { a: { $anchor: "text", type: "string" } } },
    { $ref: "text", $defs: { a: { $id: "text", type: "string" } } },
    {
      $id: "https://example.com/a",
      $ref: "b#c",
      $defs: { a: { $id: "b", $defs: { x: { $anchor: "c", type: "string" } } } },
    },
    { $id: "urn:uuid:1", $ref: "urn:uuid:1#/$defs/a", $defs: { a: { type: "string" } } },
    { $id: "https://example.com/a", $ref: "#/components/a", components: { a: { type: "string" } } },
    {
      $schema: "http://json-schema.org/draft-07/schema#",
      $ref: "#t",
      definitions: { a: { $id: "#t", type: "string" } },
    },
    { $dynamicAnchor: "t", type: ["string", "array"], items: { $dynamicRef: "#t" } },
  ])("%j is followed within the document", async (schema) => {
    expect(await isOk(toSchema(schema), "text")).toBe(true);
    expect(await isOk(toSchema(schema), 1)).toBe(false);
  });

  test("under an unknown keyword are found at the first check", async () => {
    const schema = toSchema({ $ref: "#/components/a", components: { a: { $ref: "http://example.com/" } } });
    await expect((async () => schema.check(1))()).rejects.toMatchObject({ code: "schema.ref" });
  });

  test("may go in circles", async () => {
    const list = { type: "object", properties: { next: { $ref: "#" } }, additionalProperties: false };
    expect(await isOk(toSchema(list), { next: { next: {} } })).toBe(true);
    expect(await isOk(toSchema(list), { next: { next: 1 } })).toBe(false);
  });
});

describe("limits", () => {
  const nested = (depth: number): JsonSchema => (depth === 0 ? {} : { not: nested(depth - 1) });

  test.each<[string, JsonSchema, Partial<SchemaLimits>]>([
    ["schema.too_large", { description: "é".repeat(140_000) }, {}],
    ["schema.too_large", { description: "x".repeat(100) }, { maxBytes: 100 }],
    ["schema.too_deep", nested(64), {}],
    ["schema.too_deep", { default: [[[[]]]] }, { maxDepth: 3 }],
    ["schema.too_complex", { anyOf: Array.from({ length: 10_000 }, () => ({})) }, {}],
    ["schema.too_complex", { pattern: "a".repeat(1_001) }, {}],
    ["schema.too_complex", { patternProperties: { ["a".repeat(1_001)]: {} } }, {}],
    ["accepted", { description: "x".repeat(250_000) }, {}],
    ["accepted", nested(63), {}],
    ["accepted", { anyOf: Array.from({ length: 9_999 }, () => ({})) }, {}],
    ["accepted", { properties: { pattern: { maxLength: 1 } }, pattern: "a".repeat(1_000) }, {}],
  ])("%s", (code, schema, limits) => {
    expect(refusal(schema, limits)).toBe(code);
  });

  test("hold for objects that contain themselves, or share a part many times", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic["not"] = cyclic;
    expect(refusal(cyclic)).toBe("schema.too_deep");
    let shared: JsonSchema = {};
    for (let level = 0; level < 25; level += 1) shared = { anyOf: [shared, shared] };
    expect(refusal(shared)).toBe("schema.too_complex");
  });

  test.each<[string, JsonSchema, unknown]>([
    ["a pattern that backtracks", { pattern: "^(a+)+$" }, `${"a".repeat(50)}!`],
    ["a property's pattern", { patternProperties: { "^(a+)+$": {} } }, { [`${"a".repeat(50)}!`]: 1 }],
    [
      "a long array of unique items",
      { uniqueItems: true },
      Array.from({ length: 100_000 }, (_, n) => ({ n })),
    ],
    ["a reference to itself", { $ref: "#" }, 1],
    ["branches that double at every step", doubling(40), 1],
  ])("stop %s", async (_, schema, value) => {
    const checking = (async () => toSchema(schema, { limits: { maxCheckMs: 50 } }).check(value))();
    await expect(checking).rejects.toMatchObject({ code: "schema.exhausted" });
  });

  test.each([
    ["^[a-z0-9-]+$", true],
    ["^\\d{4}-\\d{2}-\\d{2}$", true],
    ["^ISSUE-\\d{1,9}$", true],
    ["^.*$", true],
    ["^a", true],
    // Each may begin anywhere, split a text in several ways, or try more than one way.
    ["a+$", false],
    ["^a*a*$", false],
    ["^a*a{999}$", false],
    ["^(a+)+$", false],
    ["^(?:a|a)$", false],
    ["^a?a?$", false],
    ["^(?=a)$", false],
    ["^(a)\\1$", false],
  ])("of time: whether %s reads each character once is %s", (pattern, isLinear) => {
    expect(surveySchema({ pattern }, defaultSchemaLimits).isLinear).toBe(isLinear);
  });

  test("a definition used many times is not compiled as many times", async () => {
    const object = (count: number, member: JsonSchema): JsonSchema => ({
      properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, member])),
    });
    const schema = {
      ...object(300, { $ref: "#/$defs/big" }),
      $defs: { big: object(200, { type: "string" }) },
    };
    const limits = { maxCheckMs: 10_000 };
    expect(await isOk(toSchema(schema, { limits }), { p1: { p1: "x" } })).toBe(true);
    expect(await isOk(toSchema(schema, { limits }), { p1: { p1: 1 } })).toBe(false);
  });

  test("a schema that takes too long to compile is given up", async () => {
    const big = { properties: Object.fromEntries(Array.from({ length: 800 }, (_, n) => [`p${n}`, {}])) };
    const anyOf = Array.from({ length: 9_000 }, () => ({ $ref: "#/$defs/big" }));
    const schema = toSchema({ anyOf, $defs: { big } });
    await expect((async () => schema.check({}))()).rejects.toMatchObject({ code: "schema.exhausted" });
  });
});

describe("many schemas", () => {
  test("with the same $id do not collide, even in their inner ones", async () => {
    const make = (type: string): Schema =>
      toSchema({
        $id: "https://example.com/s",
        $ref: "inner",
        $defs: { a: { $id: "inner", $anchor: "x", type } },
      });
    const [text, number] = [make("string"), make("number")];
    expect(await Promise.all([isOk(text, "a"), isOk(number, "a")])).toEqual([true, false]);
    expect(await Promise.all([isOk(text, 1), isOk(number, 1)])).toEqual([false, true]);
  });

  test("come and go without a trace", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const documents: WeakRef<JsonSchema>[] = [];
    for (let n = 0; n < 50; n += 1) {
      const document = {
        $id: `https://example.com/${n % 5}`,
        type: "object",
        properties: { n: { const: n } },
      };
      documents.push(new WeakRef(document));
      const schema = toSchema(document);
      expect(await isOk(schema, { n })).toBe(true);
      expect(await isOk(schema, { n: -1 })).toBe(false);
    }
    // A WeakRef keeps its target until the job that made it has ended.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(documents.filter((document) => document.deref() !== undefined).length).toBeLessThanOrEqual(1);
  });
});

function doubling(steps: number): JsonSchema {
  const entries = Array.from({ length: steps }, (_, n) => {
    const next = { $ref: `#/$defs/s${n + 1}` };
    return [`s${n}`, { anyOf: [{ allOf: [next, false] }, { allOf: [next, false] }] }];
  });
  return { $ref: "#/$defs/s0", $defs: { ...Object.fromEntries(entries), [`s${steps}`]: {} } as JsonSchema };
}
