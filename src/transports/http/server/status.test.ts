import { expect, test } from "vitest";
import { NotFoundError } from "../../../errors/not-found-error.ts";
import { RpcError, rpcCodes, type RpcErrorCode } from "../../../errors/rpc-error.ts";
import { toStatus } from "./reply.ts";

const refusals: readonly RpcErrorCode[] = [
  "rpc.header_mismatch",
  "rpc.unsupported_version",
  "rpc.missing_capability",
];
const codes = Object.keys(rpcCodes) as readonly RpcErrorCode[];

test.each(codes)("%s has its status", (code) => {
  const other = code === "rpc.method_not_found" ? 404 : 200;
  expect(toStatus(new RpcError(code, "x"))).toBe(refusals.includes(code) ? 400 : other);
});

test("a tool that is not there is not a method that is not there, whatever code a dialect gives it", () => {
  const cause = new NotFoundError("tool", "x");
  expect(toStatus(new RpcError("rpc.method_not_found", "x", { cause }))).toBe(200);
});
