import { describe, expect, test } from "vitest";
import { toErrorBody } from "../rpc/message.ts";
import { NotFoundError } from "./not-found-error.ts";
import { RpcError } from "./rpc-error.ts";
import { ToolError } from "./tool-error.ts";

/** The module once more, as a user's module may have it from another copy of the package. */
async function copyOf(path: string): Promise<Copies> {
  return (await import(/* @vite-ignore */ `${path}?copy`)) as Copies;
}

interface Copies {
  readonly RpcError: typeof RpcError;
  readonly ToolError: typeof ToolError;
  readonly NotFoundError: typeof NotFoundError;
}

describe("an error of ours is known by its brand", () => {
  test("those of another copy of the package are ours", async () => {
    const rpc = await copyOf("./rpc-error.ts");
    const tool = await copyOf("./tool-error.ts");
    const missing = await copyOf("./not-found-error.ts");
    expect(rpc.RpcError).not.toBe(RpcError);
    expect(new rpc.RpcError("rpc.internal", "x")).toBeInstanceOf(RpcError);
    expect(new tool.ToolError("x")).toBeInstanceOf(ToolError);
    expect(new missing.NotFoundError("tool", "x")).toBeInstanceOf(NotFoundError);
  });

  test("those of others are not, whatever their codes are", () => {
    const withCode = (code: string): Error => Object.assign(new Error("secret"), { code });
    expect(withCode("rpc.quota_exceeded")).not.toBeInstanceOf(RpcError);
    expect(withCode("rpc.internal")).not.toBeInstanceOf(RpcError);
    expect(withCode("tool.failed")).not.toBeInstanceOf(ToolError);
    expect(withCode("provider.not_found")).not.toBeInstanceOf(NotFoundError);
  });

  test("each class knows its own only", () => {
    expect(new ToolError("x")).not.toBeInstanceOf(RpcError);
    expect(new RpcError("rpc.internal", "x")).not.toBeInstanceOf(ToolError);
  });

  test("the brand is not seen when an error is printed", () => {
    expect(Object.getOwnPropertySymbols(new RpcError("rpc.internal", "x"))).toEqual([]);
  });
});

test.each([NaN, Infinity, 1.5, 2 ** 60])("the code %s leaves as that of an internal error", (rpcCode) => {
  expect(toErrorBody(new RpcError("rpc.other", "odd", { rpcCode }))).toEqual({
    code: -32603,
    message: "odd",
  });
});
