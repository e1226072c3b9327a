import { expect, test } from "vitest";
import {
  loadErrorEntries,
  NotFoundError,
  RpcError,
  rpcCodes,
  type RpcErrorCode,
  ScopeError,
  toStatus,
} from "./index.ts";

const statuses: { readonly [code: string]: number } = {
  "rpc.header_mismatch": 400,
  "rpc.unsupported_version": 400,
  "rpc.missing_capability": 400,
  "rpc.method_not_found": 404,
  "rpc.outcome_unknown": 409,
  "rpc.key_reused": 422,
  "rpc.too_many": 429,
  "rpc.overloaded": 503,
};

test.each(Object.keys(rpcCodes) as readonly RpcErrorCode[])("%s has its status", (code) => {
  expect(toStatus(new RpcError(code, "x"))).toBe(statuses[code] ?? 200);
});

test("a tool that is not there is not a method that is not there, whatever code a dialect gives it", () => {
  const cause = new NotFoundError("tool", "x");
  expect(toStatus(new RpcError("rpc.method_not_found", "x", { cause }))).toBe(200);
});

test("a token without the scopes is refused with 403 if it is the one that came, not one of another server", () => {
  const cause = new ScopeError(["a"]);
  expect(toStatus(new RpcError("rpc.insufficient_scope", "x", { cause }))).toBe(403);
  expect(toStatus(new RpcError("rpc.insufficient_scope", "x"))).toBe(200);
});

test("the code of another version that has no row here is 200", () => {
  expect(toStatus(new RpcError("rpc.new" as RpcErrorCode, "x", { rpcCode: -32099 }))).toBe(200);
});

test("each code has one row, with a sentence that says what it means and one that says what to do", async () => {
  const entries = await loadErrorEntries();
  const codes = entries.map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
  for (const { meaning, advice } of entries) {
    expect(meaning).toMatch(/^[A-Z`].*\.$/s);
    expect(advice).toMatch(/^[A-Z`].*\.$/s);
  }
});
