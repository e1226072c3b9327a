import { describe, expect, test } from "vitest";
import type { ToolResult } from "../../../core/src/mcp/types.ts";
import { embedResource, failure, structured, text } from "../../../core/src/provider/content.ts";
import type { HandlerResult } from "./event.ts";
import { toSchema } from "./schema.ts";
import { checkOutput, toToolResult } from "./tool-entry.ts";

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
    [0],
    [false],
    [null],
    [{ type: "Feature" }],
    [{ content: "a page's own content" }],
    [{ content: ["not", "blocks"] }],
    [{ type: "doc", content: [{ type: "paragraph" }] }],
    [{ type: "image", url: "https://example.com/a.png" }],
  ])("as %j is structured output", (value) => {
    expect(toToolResult(value)).toEqual(structured(value));
  });

  test.each([
    [
      { content: [{ type: "img", data: "", mimeType: "image/png" }] },
      'content[0] is of the unknown type "img"; did you mean "image"?',
    ],
    [
      { content: [text("a"), { type: "vidoe" }] },
      'content[1] is of the unknown type "vidoe"; the types are text, image',
    ],
    [{ content: [{ type: "text" }] }, 'content[0] is of type "text" and must have a "text"'],
    [{ content: [{ type: "paragraph" }] }, "To send the value as it is, write structured(value)"],
    [{ content: [{ type: "resource", resource: {} }] }, 'must have a "resource" with a "uri"'],
    [[text("a"), "b"], '[1] is string "b"'],
    [{ type: "image", data: "" }, 'must have "data", base64 in a string, and a "mimeType"'],
    [{ isError: true }, "whose content is missing"],
    [{ structuredContent: { a: 1 } }, "return structured(value)"],
    [{ content: [], isError: "yes" }, 'whose isError is string "yes"'],
    [{ content: [], _meta: "x" }, 'whose _meta is string "x"'],
    [{ method: "elicitation/create", params: {} }, "write inputRequired({ name: question })"],
    [new Error("boom"), "An Error has no JSON; throw it"],
    [{ a: Promise.resolve(1) }, "A Promise has no JSON; await it"],
    [{ a: new Set([1]) }, "A Set has no JSON"],
    [new Response("x"), "A Response has no JSON"],
    [Buffer.from("x"), "A Buffer has no JSON; write image(bytes, mimeType)"],
    [{ data: new Uint8Array(2) }, "A Uint8Array has no JSON"],
    [Number.NaN, "NaN has no JSON"],
  ])("as %j is a mistake that is named", (value, message) => {
    expect(() => toToolResult(value as HandlerResult)).toThrow(message);
  });

  test("as a value like a result is checked by the output schema, where there is one", () => {
    const value = { content: [{ type: "paragraph" }] };
    expect(toToolResult(value, [], true)).toEqual(structured(value));
  });

  test("as nothing at all is not content", () => {
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
  const ignore = (): void => {};
  const schema = toSchema({
    type: "object",
    properties: { celsius: { type: "number" } },
    required: ["celsius"],
  });

  test("lets through what fits", async () => {
    const result = structured({ celsius: 21.5 });
    expect(await checkOutput(result, schema, ignore)).toBe(result);
  });

  test("turns what does not fit into a failure that says where and what", async () => {
    const heard: string[] = [];
    const hear = (fault: string): void => void heard.push(fault);
    const checked = await checkOutput(structured({ celsius: "warm" }), schema, hear);
    expect(heard).toEqual([
      expect.stringMatching(/^The tool's output .* fault of the tool: \/celsius .*number/),
    ]);
    expect(checked).toEqual(failure(heard[0] ?? ""));
  });

  test("turns a result without structured output into a failure", async () => {
    const heard: string[] = [];
    const checked = await checkOutput({ content: [text("warm")] }, schema, (fault) => void heard.push(fault));
    const fault = "The tool promised structured output and gave none; this is a fault of the tool.";
    expect(checked).toEqual(failure(fault));
    expect(heard).toEqual([fault]);
  });

  test("does not judge failures, nor results of tools without one", async () => {
    const failed = failure("no such place");
    expect(await checkOutput(failed, schema, ignore)).toBe(failed);
    const free = structured({ anything: true });
    expect(await checkOutput(free, undefined, ignore)).toBe(free);
  });
});
