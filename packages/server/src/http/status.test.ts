import { expect, test } from "vitest";
import { NotFoundError } from "../../../core/src/errors/not-found-error.ts";
import { RpcError, rpcCodes, type RpcErrorCode } from "../../../core/src/errors/rpc-error.ts";
import { toStatus } from "./reply.ts";

const refusals: readonly RpcErrorCode[] = [
  "rpc.header_mismatch",
  "rpc.unsupported_version",
  "rpc.missing_capability",
];
const codes = Object.keys(rpcCodes) as readonly RpcErrorCode[];

const others: { readonly [code: string]: number } = {
  "rpc.method_not_found": 404,
  "rpc.too_many": 429,
  "rpc.overloaded": 503,
};

test.each(codes)("%s has its status", (code) => {
  expect(toStatus(new RpcError(code, "x"))).toBe(refusals.includes(code) ? 400 : (others[code] ?? 200));
});

test("a tool that is not there is not a method that is not there, whatever code a dialect gives it", () => {
  const cause = new NotFoundError("tool", "x");
  expect(toStatus(new RpcError("rpc.method_not_found", "x", { cause }))).toBe(200);
});
