import { expect, test } from "vitest";
import { z } from "zod";
import { toSchema, convertCoercing } from "./schema.ts";

const input = z.object({
  count: z.coerce.number().int().min(1).describe("How many"),
  price: z.coerce.number().nullable(),
  name: z.coerce.string().max(20),
  isNew: z.coerce.boolean(),
  at: z.coerce.date(),
  serial: z.coerce.bigint(),
  sizes: z.array(z.coerce.number()),
  limit: z.coerce.number().default(10),
  note: z.string().optional(),
  length: z.string().transform((text) => text.length),
});

test("coerced parts list every JSON type they take, with their own limits", () => {
  const { properties, required } = toSchema(input).json;
  expect(properties).toMatchObject({
    count: { type: ["integer", "string"], minimum: 1, description: "How many" },
    price: { type: ["number", "string", "null"] },
    name: { type: ["string", "number", "boolean"], maxLength: 20 },
    isNew: { type: ["boolean", "string", "number"] },
    at: { type: ["string", "number"] },
    serial: { type: ["integer", "string"] },
    sizes: { items: { type: ["number", "string"] } },
    limit: { type: ["number", "string"], default: 10 },
    length: { type: "string" },
  });
  expect(required).not.toContain("limit");
  expect(required).not.toContain("note");
});

test("the output side lists what comes out", () => {
  const output = toSchema(z.object({ n: z.coerce.number() }), { side: "output" });
  expect(output.json).toMatchObject({ properties: { n: { type: "number" } } });
});

test("a part without JSON that is not coerced is refused with the reason", () => {
  expect(() => toSchema(z.object({ at: z.date(), n: z.coerce.number() }))).toThrow(
    "Date cannot be represented",
  );
});

test("a zod that takes no function for such parts keeps its error", () => {
  const convert = ({ unrepresentable }: Record<string, unknown>): object => {
    if (unrepresentable === undefined) throw new Error("no JSON Schema");
    return {};
  };
  expect(() => convertCoercing(convert)).toThrow("no JSON Schema");
});
