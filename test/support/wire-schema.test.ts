import { describe, expect, test } from "vitest";
import { legacyRevisions, modernRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import { assertValidFrame, type Frame } from "./wire-schema.ts";

const revisions: readonly Revision[] = [...legacyRevisions, ...modernRevisions];
const call: Frame = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo" } };

function answer(result: object): Frame {
  return { jsonrpc: "2.0", id: 1, result };
}

describe.each(revisions)("the schema of %s", (revision) => {
  const isModern = revision === "2026-07-28";
  const head = isModern ? { resultType: "complete" } : {};
  const check = (frame: unknown, request?: Frame): void =>
    assertValidFrame("server", revision, request, frame);

  test("lets a tool's result through", () => {
    check(answer({ ...head, content: [{ type: "text", text: "hi" }], _meta: { "x/y": 1 } }), call);
  });

  test("refuses a result that lacks what the method promises", () => {
    expect(() => check(answer(head), call)).toThrow("content");
  });

  test("refuses a member the revision does not know", () => {
    expect(() => check(answer({ ...head, content: [], extra: 1 }), call)).toThrow("extra");
  });

  test("refuses an answer to no request", () => {
    expect(() => check(answer({ ...head, content: [] }))).toThrow("no request");
  });

  test("refuses an envelope that is not JSON-RPC", () => {
    expect(() => check({ jsonrpc: "1.0", id: 1, result: {} }, call)).toThrow("JSONRPCMessage");
  });

  test("lets a notification of the server through, and not one of the client", () => {
    check({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 0.5 } });
    expect(() => check({ jsonrpc: "2.0", method: "notifications/initialized" })).toThrow("has no server");
  });

  test("refuses a progress notification without its token", () => {
    const frame = { jsonrpc: "2.0", method: "notifications/progress", params: { progress: 1 } };
    expect(() => check(frame)).toThrow("progressToken");
  });

  test.runIf(isModern)("has no requests of the server", () => {
    expect(() => check({ jsonrpc: "2.0", id: 7, method: "roots/list" })).toThrow("has no server Request");
  });

  test.skipIf(isModern)("lets a request of the server through", () => {
    check({ jsonrpc: "2.0", id: 7, method: "roots/list" });
  });
});

test.each([
  ["2024-11-05", { type: "audio", data: "", mimeType: "audio/wav" }],
  ["2025-03-26", { type: "resource_link", uri: "a://b", name: "b" }],
] as const)("a block that came after %s is refused there", (revision, block) => {
  expect(() => assertValidFrame("server", revision, call, answer({ content: [block] }))).toThrow(
    "CallToolResult",
  );
});

test("an error with a code of its own must have the data that code promises", () => {
  const frame = (data: unknown): Frame => ({
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32021, message: "no", data },
  });
  assertValidFrame("server", "2026-07-28", call, frame({ requiredCapabilities: { roots: {} } }));
  expect(() => assertValidFrame("server", "2026-07-28", call, frame({}))).toThrow("requiredCapabilities");
});
