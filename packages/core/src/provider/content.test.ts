import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import {
  audio,
  embedResource,
  failure,
  image,
  isContent,
  resourceLink,
  structured,
  text,
  toResourceContents,
} from "./content.ts";

const bytes = new Uint8Array([0, 104, 105, 255, 0]).subarray(1, 4);
const base64 = Buffer.from([104, 105, 255]).toString("base64");

describe("content helpers", () => {
  test("text is a text block", () => {
    expect(text("hi")).toEqual({ type: "text", text: "hi" });
  });

  test.each([
    ["image", image],
    ["audio", audio],
  ] as const)("%s takes the bytes of a view and no more, or base64 as it is", (type, make) => {
    expect(make(bytes, "a/b")).toEqual({ type, data: base64, mimeType: "a/b" });
    expect(make("aGk=", "a/b")).toEqual({ type, data: "aGk=", mimeType: "a/b" });
  });

  test("a resource link is a resource with a type", () => {
    expect(resourceLink({ uri: "file:///a", name: "a", size: 3 })).toEqual({
      type: "resource_link",
      uri: "file:///a",
      name: "a",
      size: 3,
    });
  });

  test("an embedded resource holds text, or bytes as a blob", () => {
    expect(embedResource("file:///a", "hi")).toEqual({
      type: "resource",
      resource: { uri: "file:///a", text: "hi" },
    });
    expect(embedResource("file:///a", bytes, "a/b")).toEqual({
      type: "resource",
      resource: { uri: "file:///a", mimeType: "a/b", blob: base64 },
    });
    expect(toResourceContents("file:///a", "", "text/plain")).toEqual({
      uri: "file:///a",
      mimeType: "text/plain",
      text: "",
    });
  });

  test("structured output is the value, and its JSON for clients that know only content", () => {
    expect(structured({ a: 1 })).toEqual({ content: [text('{"a":1}')], structuredContent: { a: 1 } });
    expect(structured([1], [text("one")])).toEqual({ content: [text("one")], structuredContent: [1] });
  });

  test.each([undefined, () => 1, Symbol("s")])(
    "%o has no JSON, so it is not a structured output",
    (value) => {
      expect(() => structured(value)).toThrow(TypeError);
    },
  );

  test("a failure is text for the model with isError", () => {
    expect(failure("no")).toEqual({ content: [text("no")], isError: true });
  });
});

describe("isContent", () => {
  test("knows every block the helpers make", () => {
    const blocks = [
      text("a"),
      image(bytes, "a/b"),
      audio(bytes, "a/b"),
      resourceLink({ uri: "a:b", name: "c" }),
      embedResource("a:b", "c"),
    ];
    expect(blocks.map(isContent)).toEqual(blocks.map(() => true));
  });

  test.each([
    [null],
    ["text"],
    [[]],
    [{}],
    [{ type: "text" }],
    [{ type: "text", text: 1 }],
    [{ type: "image", data: "a" }],
    [{ type: "audio", mimeType: "a/b" }],
    [{ type: "resource_link", uri: "a:b" }],
    [{ type: "resource", resource: null }],
    [{ type: "Feature", text: "GeoJSON has a type too" }],
  ])("does not take %j for a block", (value) => {
    expect(isContent(value)).toBe(false);
  });
});
