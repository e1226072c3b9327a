import { describe, expect, test } from "vitest";
import { defineShape, foldCase, lenient } from "./shape.ts";

describe("defineShape", () => {
  const shape = defineShape({
    id: true,
    params: { name: true, _meta: lenient({ token: true }) },
    result: true,
  });

  test("gives every key path its own three places in the index", () => {
    const slots = [
      shape.slotOf(),
      shape.slotOf("id"),
      shape.slotOf("params"),
      shape.slotOf("params", "name"),
      shape.slotOf("params", "_meta"),
      shape.slotOf("params", "_meta", "token"),
      shape.slotOf("result"),
    ];
    expect(slots).toEqual([0, 3, 6, 9, 12, 15, 18]);
    expect(shape.blank).toEqual(Array.from({ length: 21 }, () => -1));
  });

  test.each([[["name"]], [["params", "id"]], [["id", "x"]], [["toString"]]])("has no slot for %j", (path) => {
    expect(() => shape.slotOf(...path)).toThrow(TypeError);
  });

  test.each([
    [{ é: true }],
    [{ "": true }],
    [{ 'a"b': true }],
    [{ "a\\b": true }],
    [{ "a\nb": true }],
  ] as const)("refuses a key that JSON might write in more ways than one: %j", (tree) => {
    expect(() => defineShape(tree)).toThrow(/not plain ASCII/);
  });

  test("refuses two keys of one object that differ only in case", () => {
    expect(() => defineShape({ id: true, ID: true })).toThrow(/two cases/);
    expect(() => defineShape({ id: true, params: { ID: true } })).not.toThrow();
  });
});

test.each([
  ["params", "PARAM\u017f"],
  ["token", "TO\u212aen"],
  ["id", "\u0131D"],
  ["id", "\u0130d"],
  ["file", "\ufb01LE"],
])("foldCase takes %j and %j for the same", (key, variant) => {
  expect(foldCase(variant)).toBe(foldCase(key));
});
