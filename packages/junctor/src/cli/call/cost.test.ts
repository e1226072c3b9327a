import { expect, test } from "vitest";
import type { Tool } from "../../../../core/src/mcp/types.ts";
import { describeCost, measureCost } from "./cost.ts";

const tool = (name: string, length: number): Tool => ({
  name,
  description: "x".repeat(length),
  inputSchema: { type: "object" },
});
const serverOf = (name: string): string => name.split("__")[0] ?? "";

test("the cost of tools is shown by server and by tool, the most expensive first", () => {
  const report = measureCost([tool("a__x", 100), tool("b__y", 20_000), tool("b__z", 500)], serverOf);
  expect(report.servers.map(({ name, tools }) => [name, tools])).toEqual([
    ["b", 2],
    ["a", 1],
  ]);
  expect(report.largest.map(({ name }) => name)).toEqual(["b__y", "b__z", "a__x"]);
  expect(report.tokens).toBe(report.servers.reduce((sum, { tokens }) => sum + tokens, 0));
  expect(report.advice).toMatchObject({ setting: expect.stringContaining('"tools": "search"') as string });
  const text = describeCost(report);
  expect(text).toMatch(/^server +tools +≈tokens +share\nb +2 +4,\d+ +9\d %\n/);
  expect(text).toContain("This saves most");
});

test("few tools are left as they are", () => {
  expect(measureCost([tool("a", 10)], serverOf).advice).toBeUndefined();
  expect(measureCost([], serverOf)).toMatchObject({ tools: 0, tokens: 0, servers: [] });
});
