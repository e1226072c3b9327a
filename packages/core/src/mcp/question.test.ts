import { describe, expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { isAcceptable } from "./question.ts";
import type { Question } from "./types.ts";

const form = (properties: object, required: readonly string[] = []): Question => ({
  method: "elicitation/create",
  params: { message: "?", requestedSchema: { type: "object", properties, required } },
});
const isFit = (ask: Question, answer: unknown): boolean => isAcceptable(ask, RawJson.fromValue(answer));
const fits = (field: object, value: unknown): boolean =>
  isFit(form({ field }), { action: "accept", content: { field: value } });

describe("an answer to a form", () => {
  test.each([7, "x", null, [], {}, { action: "approve" }, { method: "x", result: {} }])(
    "cannot be %j",
    (answer) => {
      expect(isFit(form({}), answer)).toBe(false);
    },
  );

  test.each(["decline", "cancel"])("may be %s, with or without content", (action) => {
    const strict = form({ name: { type: "string" } }, ["name"]);
    expect(isFit(strict, { action })).toBe(true);
    expect(isFit(strict, { action, content: { name: 7 } })).toBe(true);
  });

  test("must have what is required, as a property of its own", () => {
    const strict = form({ toString: { type: "string" } }, ["toString"]);
    expect(isFit(strict, { action: "accept", content: {} })).toBe(false);
    expect(isFit(strict, { action: "accept" })).toBe(false);
    expect(isFit(strict, { action: "accept", content: { toString: "x" } })).toBe(true);
  });

  test.each([null, [], "x", 7])("cannot have the content %j", (content) => {
    expect(isFit(form({}), { action: "accept", content })).toBe(false);
  });

  test("may have fields nobody asked for, and may leave out what is optional", () => {
    expect(isFit(form({ name: { type: "string" } }), { action: "accept", content: { other: 7 } })).toBe(true);
  });

  test("to a form without a schema may be anything", () => {
    const bare: Question = { method: "elicitation/create", params: { message: "?" } };
    expect(isFit(bare, { action: "accept", content: { a: 1 } })).toBe(true);
    expect(isFit(bare, { action: "accept" })).toBe(true);
  });

  test.each<[object, unknown, boolean]>([
    [{ type: "string" }, "x", true],
    [{ type: "string" }, 7, false],
    [{ type: "string" }, null, false],
    [{ type: "string", minLength: 2 }, "x", false],
    [{ type: "string", maxLength: 1 }, "🦊", true],
    [{ type: "string", maxLength: 1 }, "xy", false],
    [{ type: "integer" }, 7, true],
    [{ type: "integer" }, 7.5, false],
    [{ type: "integer" }, "7", false],
    [{ type: "integer", minimum: 8 }, 7, false],
    [{ type: "integer", maximum: 6 }, 7, false],
    [{ type: "number" }, 7.5, true],
    [{ type: "number", minimum: 0, maximum: 1 }, 0, true],
    [{ type: "number", minimum: 0, maximum: 1 }, 1.01, false],
    [{ type: "boolean" }, false, true],
    [{ type: "boolean" }, "false", false],
    [{ type: "string", enum: ["a", "b"], enumNames: ["A", "B"] }, "a", true],
    [{ type: "string", enum: ["a", "b"] }, "c", false],
    [{ type: "string", oneOf: [{ const: "a", title: "A" }] }, "a", true],
    [{ type: "string", oneOf: [{ const: "a", title: "A" }] }, "A", false],
    [{ type: "array", items: { type: "string", enum: ["a"] } }, ["a", "a"], true],
    [{ type: "array", items: { type: "string", enum: ["a"] } }, ["b"], false],
    [{ type: "array", items: { type: "string" } }, "a", false],
    [{ type: "array", items: { anyOf: [{ const: "a", title: "A" }] } }, ["a"], true],
    [{ type: "array", items: { anyOf: [{ const: "a", title: "A" }] } }, ["b"], false],
    [{ type: "array", minItems: 1, items: { type: "string" } }, [], false],
    [{ type: "array", maxItems: 1, items: { type: "string" } }, ["a", "b"], false],
    [{ type: "string", format: "email" }, "not really", true],
    [{ type: "tea" }, 7, true],
  ])("with the field %j and the value %j: %j", (field, value, isRight) => {
    expect(fits(field, value)).toBe(isRight);
  });
});

describe.each<[string, Question, readonly unknown[], readonly unknown[]]>([
  [
    "a page to visit",
    { method: "elicitation/create", params: { mode: "url", url: "https://example.com" } },
    [{ action: "accept" }, { action: "decline" }, { action: "cancel" }],
    [{}, { action: "visited" }, 7, null],
  ],
  [
    "sampling",
    { method: "sampling/createMessage", params: {} },
    [
      { role: "assistant", model: "m", content: { type: "text", text: "x" } },
      { role: "assistant", model: "m", content: [] },
    ],
    [{}, { role: "assistant", model: "m" }, { method: "x", result: {} }, "text", null],
  ],
  ["roots", { method: "roots/list" }, [{ roots: [] }], [{}, { roots: {} }, [], null]],
])("an answer to %s", (_, ask, right, wrong) => {
  test.each(right)("may be %j", (answer) => expect(isFit(ask, answer)).toBe(true));
  test.each(wrong)("cannot be %j", (answer) => expect(isFit(ask, answer)).toBe(false));
});
