import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { definitionOf, fromDefinition, withName } from "./definition.ts";
import type { Tool } from "./types.ts";

const odd = '{ "name" : "search", "inputSchema":{"type":"object","maximum":1e400, "x":1.0}, "vendor":[ ] }';

test("a definition of ours is serialised once", () => {
  const tool: Tool = { name: "a", inputSchema: { type: "object" } };
  expect(definitionOf(tool).text).toBe('{"name":"a","inputSchema":{"type":"object"}}');
  expect(definitionOf(tool)).toBe(definitionOf(tool));
});

test("a definition from elsewhere leaves as the bytes that came", () => {
  const tool = fromDefinition<Tool>(RawJson.parse(Buffer.from(odd)));
  expect(tool.name).toBe("search");
  expect(definitionOf(tool).text).toBe(odd);
});

test("a definition under another name keeps every other byte", () => {
  const tool = fromDefinition<Tool>(RawJson.parse(Buffer.from(odd)));
  const renamed = withName(tool, "web__search");
  expect(renamed).toEqual({ ...tool, name: "web__search" });
  expect(definitionOf(renamed).text).toBe(odd.replace("search", "web__search"));
  expect(definitionOf(tool).text).toBe(odd);
});

test("a changed copy is another thing, and is written again", () => {
  const tool = fromDefinition<Tool>(RawJson.parse(Buffer.from(odd)));
  expect(JSON.parse(definitionOf({ ...tool, title: "Search" }).text)).toMatchObject({ title: "Search" });
});
