import { expect, test } from "vitest";
import { toToolTable } from "../call/tools.ts";

const tools = [
  {
    name: "weather",
    description: "\n The weather.\nMore about it.",
    inputSchema: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    },
  },
  { name: "x", title: "A title", inputSchema: { type: "object" } },
];

test("where there is room, arguments have their types", () => {
  expect(toToolTable(tools, Infinity)).toBe(
    [
      "weather  city=string [days=integer]  The weather.",
      "x                                    A title",
      "",
    ].join("\n"),
  );
});

test("where there is little room, they have none, and lines are clipped", () => {
  expect(toToolTable(tools, 30)).toBe(
    ["weather  city [days]  The wea…", "x                     A title", ""].join("\n"),
  );
});

test("without tools there are no lines", () => {
  expect(toToolTable([], 80)).toBe("");
});
