import { describe, expect, test } from "vitest";
import type { ToolResult } from "../mcp/types.ts";
import { toSchema } from "../schema/schema.ts";
import { embedResource, failure, structured, text } from "./content.ts";
import { checkOutput, toToolResult } from "./result.ts";

describe("what a handler returned", () => {
  test("as a string is text", () => {
    expect(toToolResult("hi")).toEqual({ content: [text("hi")] });
    expect(toToolResult("")).toEqual({ content: [text("")] });
  });

  test("as content is content, alone or in an array", () => {
    expect(toToolResult(text("hi"))).toEqual({ content: [text("hi")] });
    expect(toToolResult([text("a"), embedResource("a:b", "c")])).toEqual({
      content: [text("a"), embedResource("a:b", "c")],
    });
  });

  test("as a result is that result, untouched", () => {
    const result: ToolResult = { content: [text("x")], structuredContent: 1, isError: true, _meta: { a: 1 } };
    expect(toToolResult(result)).toBe(result);
    const empty = { content: [] };
    expect(toToolResult(empty)).toBe(empty);
  });

  test.each([
    [{ a: 1 }],
    [[1, 2]],
    [[]],
    [[text("a"), "b"]],
    [0],
    [false],
    [null],
    [{ type: "Feature" }],
    [{ content: "a page's own content" }],
    [{ content: ["not", "blocks"] }],
    [{ content: [{ type: "paragraph" }] }],
  ])("as %j is structured output", (value) => {
    expect(toToolResult(value)).toEqual(structured(value));
  });

  test("as nothing is no content", () => {
    expect(toToolResult(undefined)).toEqual({ content: [] });
  });

  test("comes after what was streamed, unless it is a whole result", () => {
    const streamed = [text("first")];
    expect(toToolResult(undefined, streamed)).toEqual({ content: streamed });
    expect(toToolResult("then", streamed)).toEqual({ content: [text("first"), text("then")] });
    expect(toToolResult({ a: 1 }, streamed)).toEqual({
      content: [text("first"), text('{"a":1}')],
      structuredContent: { a: 1 },
    });
    expect(toToolResult({ content: [text("all")] }, streamed)).toEqual({ content: [text("all")] });
  });
});

describe("an output schema", () => {
  const schema = toSchema({
    type: "object",
    properties: { celsius: { type: "number" } },
    required: ["celsius"],
  });

  test("lets through what fits", async () => {
    const result = structured({ celsius: 21.5 });
    expect(await checkOutput(result, schema)).toBe(result);
  });

  test("turns what does not fit into a failure that says where and what", async () => {
    const { content, isError } = await checkOutput(structured({ celsius: "warm" }), schema);
    expect(isError).toBe(true);
    expect(content).toEqual([
      text(expect.stringMatching(/^The tool's output .* fault of the tool: \/celsius .*number/) as string),
    ]);
  });

  test("turns a result without structured output into a failure", async () => {
    const checked = await checkOutput({ content: [text("warm")] }, schema);
    expect(checked).toEqual(
      failure("The tool promised structured output and gave none; this is a fault of the tool."),
    );
  });

  test("does not judge failures, nor results of tools without one", async () => {
    const failed = failure("no such place");
    expect(await checkOutput(failed, schema)).toBe(failed);
    const free = structured({ anything: true });
    expect(await checkOutput(free, undefined)).toBe(free);
  });
});
