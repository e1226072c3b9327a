import { expect, test } from "vitest";
import { NotFoundError } from "../../../errors/not-found-error.ts";
import { RpcError, rpcCodes, type RpcErrorCode } from "../../../errors/rpc-error.ts";
import { toStatus } from "./status.ts";

const refusals: readonly RpcErrorCode[] = [
  "rpc.header_mismatch",
  "rpc.unsupported_version",
  "rpc.missing_capability",
];
const codes = Object.keys(rpcCodes) as readonly RpcErrorCode[];

test.each(codes)("%s has the status its era gives it", (code) => {
  const error = new RpcError(code, "x");
  const isRefusal = refusals.includes(code);
  expect(toStatus(error, false)).toBe(isRefusal ? 400 : 200);
  const modern = code === "rpc.method_not_found" ? 404 : 200;
  expect(toStatus(error, true)).toBe(isRefusal ? 400 : modern);
});

test("a tool that is not there is not a method that is not there, whatever code a dialect gives it", () => {
  const cause = new NotFoundError("tool", "x");
  expect(toStatus(new RpcError("rpc.method_not_found", "x", { cause }), true)).toBe(200);
});
