import { expect, test } from "vitest";
import { type NamedEntries, createNamedEntries } from "./members.ts";

const create = (): NamedEntries<number, { name: string }> =>
  createNamedEntries("The tool", "tools", (entry: number) => ({ name: String(entry) }));
const namesIn = (catalog: NamedEntries<number, { name: string }>): readonly string[] =>
  catalog.list().items.map(({ name }) => name);

test("entries are kept under their names, in the order they came", () => {
  const catalog = create();
  catalog.add("b", 1);
  catalog.add("a", 2);
  catalog.add("__proto__", 3);
  expect([
    catalog.entries.get("a"),
    catalog.entries.get("__proto__"),
    catalog.entries.get("constructor"),
  ]).toEqual([2, 3, undefined]);
  expect([...catalog.entries.values()]).toEqual([1, 2, 3]);
  expect(namesIn(catalog)).toEqual(["1", "2", "3"]);
});

test("a name that is taken is refused, and what has it stays", () => {
  const catalog = create();
  catalog.add("a", 1);
  expect(() => catalog.add("a", 2)).toThrow('The tool "a" is registered already; unregister it first');
  expect(catalog.entries.get("a")).toBe(1);
});

test("removing tells whether there was anything", () => {
  const catalog = create();
  catalog.add("a", 1);
  expect([catalog.remove("a"), catalog.remove("a")]).toEqual([true, false]);
  expect(namesIn(catalog)).toEqual([]);
});

test("the list is the same, and frozen, until something is added or removed", () => {
  const catalog = create();
  catalog.add("a", 1);
  const first = catalog.list();
  expect(catalog.list()).toBe(first);
  expect(Object.isFrozen(first.items)).toBe(true);
  expect(catalog.remove("b")).toBe(false);
  expect(catalog.list()).toBe(first);
  catalog.add("b", 2);
  expect(catalog.list()).not.toBe(first);
  expect(first.items).toEqual([{ name: "1" }]);
});
