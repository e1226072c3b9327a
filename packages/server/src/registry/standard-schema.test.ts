import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { describeIssues } from "../../../core/src/schema/types.ts";
import { type InferredOutput, type SchemaSource, toSchema, withJsonSchema } from "./schema.ts";

const json = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "number" } },
  required: ["city", "days"],
};
const valibot = v.object({ city: v.string(), days: v.number() });
const sources: readonly [string, SchemaSource][] = [
  ["zod", z.object({ city: z.string(), days: z.number() })],
  ["arktype", type({ city: "string", days: "number" })],
  ["valibot with its converter", toStandardJsonSchema(valibot)],
  ["valibot with a JSON Schema by hand", withJsonSchema(valibot, json)],
];

describe.each(sources)("%s", (_, source) => {
  const schema = toSchema(source);

  test("is listed as JSON Schema", () => {
    expect(schema.json).toMatchObject(json);
  });

  test("takes what fits", async () => {
    const value = { city: "Paris", days: 3 };
    expect(await schema.check(value)).toEqual({ ok: true, value });
  });

  test("says where and what is wrong", async () => {
    const checked = await schema.check({ city: "Paris", days: "3" });
    expect(checked.ok).toBe(false);
    const text = checked.ok ? "" : describeIssues(checked.issues);
    expect(text).toMatch(/^Invalid arguments: \/days (?!days).*number/);
  });
});

describe("a Standard Schema", () => {
  test("applies its defaults and transforms, and lists the side that was asked for", async () => {
    const source = z.object({ n: z.string().default("7").pipe(z.transform(Number)).pipe(z.number()) });
    expect(await toSchema(source).check({})).toEqual({ ok: true, value: { n: 7 } });
    expect(toSchema(source).json).toMatchObject({ properties: { n: { type: "string" } } });
    expect(toSchema(source).json).not.toHaveProperty("required");
    expect(toSchema(source, { side: "output" }).json).toMatchObject({
      properties: { n: { type: "number" } },
      required: ["n"],
    });
  });

  test("may take its time", async () => {
    const source = z.object({
      a: z.string().refine((text) => Promise.resolve(text === "yes"), "must be yes"),
    });
    expect(await toSchema(source).check({ a: "yes" })).toEqual({ ok: true, value: { a: "yes" } });
    expect(await toSchema(source).check({ a: "no" })).toEqual({
      ok: false,
      issues: [{ path: "/a", message: "must be yes" }],
    });
  });

  test("is converted once", () => {
    let conversions = 0;
    const convert = (): Record<string, unknown> => ({ type: "object", title: String((conversions += 1)) });
    const standard = { ...valibot["~standard"], jsonSchema: { input: convert, output: convert } };
    const schema = toSchema({ "~standard": standard });
    expect([schema.json, schema.json, conversions]).toEqual([schema.json, schema.json, 1]);
  });

  test("may refer to itself", async () => {
    const node = z.object({
      get children() {
        return z.array(node);
      },
    });
    expect(await toSchema(node).check({ children: [{ children: [] }] })).toMatchObject({ ok: true });
    expect(await toSchema(node).check({ children: [{ children: 1 }] })).toMatchObject({
      issues: [{ path: "/children/0/children" }],
    });
  });

  test("reports eight issues at most, with every kind of key in the path", async () => {
    const issue = { message: "is bad", path: ["a/b", { key: 0 }, Symbol("s")] };
    const validate = (): StandardSchemaV1.FailureResult => ({
      issues: Array.from({ length: 20 }, () => issue),
    });
    const checked = await toSchema(
      withJsonSchema({ "~standard": { version: 1, vendor: "ours", validate } }, {}),
    ).check(1);
    expect(!checked.ok && checked.issues).toEqual(
      Array.from({ length: 8 }, () => ({ path: "/a~1b/0/Symbol(s)", message: "is bad" })),
    );
  });

  test("of valibot alone is refused with what to write instead", () => {
    expect(() => toSchema(valibot)).toThrow(
      expect.objectContaining({
        code: "schema.no_json_schema",
        message: expect.stringContaining(
          'import { toStandardJsonSchema } from "@valibot/to-json-schema"',
        ) as string,
      }),
    );
  });

  test("of a library we never heard of is refused with its name", () => {
    const source: StandardSchemaV1 = {
      "~standard": { version: 1, vendor: "acme", validate: (value) => ({ value }) },
    };
    expect(() => toSchema(source)).toThrow(/acme.*withJsonSchema/);
  });

  test("that has no JSON Schema is refused with the reason", () => {
    expect(() => toSchema(z.object({ at: z.date() }))).toThrow(
      expect.objectContaining({
        code: "schema.no_json_schema",
        message: expect.stringContaining("Date cannot be represented") as string,
      }),
    );
  });

  test("is held to the same limits", () => {
    expect(() => toSchema(z.object({ a: z.string() }), { limits: { maxBytes: 10 } })).toThrow(
      expect.objectContaining({ code: "schema.too_large" }),
    );
    expect(() => toSchema(withJsonSchema(valibot, { $ref: "http://x/" }))).toThrow(
      expect.objectContaining({ code: "schema.ref" }),
    );
  });

  test("keeps its types when a JSON Schema is put beside it", () => {
    const source = withJsonSchema(valibot, json);
    expectTypeOf<InferredOutput<typeof source>>().toEqualTypeOf<{ city: string; days: number }>();
  });
});

describe("a pattern that backtracks", () => {
  // One way to split 40 letters is tried after the other: 2 to the power of 40, which takes hours.
  const value = { code: `${"a".repeat(40)}!` };
  const pattern = /^(a+)+$/;
  const byValibot = withJsonSchema(v.object({ code: v.pipe(v.string(), v.regex(pattern)) }), {
    type: "object",
    properties: { code: { type: "string", pattern: pattern.source } },
  });

  test.each<[string, SchemaSource]>([
    ["zod", z.object({ code: z.string().regex(pattern) })],
    ["arktype", type({ code: pattern })],
    ["valibot", byValibot],
    ["JSON Schema", { properties: { code: { type: "string", pattern: pattern.source } } }],
  ])("in %s is stopped, and does not hold up later checks", async (_, source) => {
    const schema = toSchema(source, { limits: { maxCheckMs: 50 } });
    await expect((async () => schema.check(value))()).rejects.toMatchObject({ code: "schema.exhausted" });
    expect(await schema.check({ code: "aaa" })).toMatchObject({ ok: true });
    expect(await schema.check({ code: "b" })).toMatchObject({ ok: false });
  });

  test("does not hide an error of the author's own code", async () => {
    const broken = z.object({
      code: z
        .string()
        .regex(pattern)
        .refine(() => {
          throw new RangeError("Invalid time zone");
        }),
    });
    await expect((async () => toSchema(broken).check({ code: "a" }))()).rejects.toThrow("Invalid time zone");
  });

  test("may be checked inside of another check", async () => {
    const inner = toSchema(z.string().regex(pattern));
    const outer = toSchema(
      z.object({
        code: z
          .string()
          .regex(pattern)
          .refine((code) => "ok" in (inner.check(code) as object)),
      }),
    );
    expect(await outer.check({ code: "a" })).toMatchObject({ ok: true });
    expect(await outer.check({ code: "a" })).toMatchObject({ ok: true });
  });
});
