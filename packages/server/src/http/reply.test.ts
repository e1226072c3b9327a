import { describe, expect, test } from "vitest";
import { isJson, parseAccept } from "./reply.ts";

describe("what a client accepts", () => {
  test.each<[string | undefined, boolean, boolean]>([
    [undefined, true, true],
    ["", false, false],
    ["application/json, text/event-stream", true, true],
    ["text/event-stream,application/json", true, true],
    ["application/json", true, false],
    ["text/event-stream", false, true],
    ["*/*", true, true],
    ["application/*", true, false],
    ["text/*", false, true],
    ["APPLICATION/JSON", true, false],
    [" application/json ;q=0.3, text/html", true, false],
    ["application/json;q=0, text/event-stream", false, true],
    ["application/json;q=0.000", false, false],
    ["application/json;q=0.001", true, false],
    ["application/jsonx, xtext/event-stream", false, false],
    ["text/html", false, false],
    ["text/event-stream;q=0, */*", true, false],
    ["*/*, text/event-stream;q=0", true, false],
    ["*/*, application/*;q=0", false, true],
    ["application/*;q=0, application/json", true, false],
    ["*/*;q=0, text/event-stream", false, true],
  ])("%j: JSON %s, streams %s", (header, json, sse) => {
    expect(parseAccept(header)).toEqual({ json, sse });
  });
});

describe("whether a body is JSON", () => {
  test.each<[string | undefined, boolean]>([
    ["application/json", true],
    ["application/json;charset=utf-8", true],
    ["Application/Json ; charset=utf-8", true],
    [undefined, false],
    ["", false],
    ["text/plain", false],
    ["text/plain; x=application/json", false],
    ["application/json-patch+json", false],
    ["application/x-www-form-urlencoded", false],
  ])("%j: %s", (header, expected) => {
    expect(isJson(header)).toBe(expected);
  });
});
