import { describe, expect, test } from "vitest";
import { toErrorBody } from "../rpc/message.ts";
import * as ours from "./index.ts";

const { BrandedError, NotFoundError, RpcError, ScopeError, ToolError } = ours;

/** The module once more, as a user's module may have it from another copy of the package. */
async function copyOf(path: string): Promise<Record<string, unknown>> {
  return (await import(/* @vite-ignore */ `${path}?copy`)) as Record<string, unknown>;
}

type Thrower = new (...args: readonly unknown[]) => Error & { readonly code: string };

const files = ["./wire-errors.ts", "./request-errors.ts", "./setup-errors.ts"];

/** What makes an error of a class whose first argument is not simply a text. */
const argumentsOf: { readonly [name: string]: readonly unknown[] } = {
  ScopeError: [["files:read"]],
  NotFoundError: ["tool", "x"],
  RpcError: ["rpc.internal", "x"],
  UpstreamError: ["lost", "x", { server: "a", delivery: "not_sent" }],
  ValidationError: ["tool", "arguments", [], "x"],
  ConfigError: ["file", []],
  JsonError: ["json.depth", 0, "x"],
  ToolError: ["x"],
};

describe("an error of ours is known by its brand", () => {
  test.each(files)("also where it comes from another copy of %s", async (file) => {
    const copy = await copyOf(file);
    const names = Object.keys(copy).filter((name) => name.endsWith("Error"));
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const Own = (ours as unknown as Record<string, Thrower>)[name] as Thrower;
      const Other = copy[name] as Thrower;
      const error = new Other(...(argumentsOf[name] ?? ["a", "b", "c"]));
      expect(Other).not.toBe(Own);
      expect(Object.getPrototypeOf(error)).not.toBe(Own.prototype);
      expect(error).toBeInstanceOf(Own);
      expect(error).toBeInstanceOf(BrandedError);
      expect(error.name).toBe(name);
      const others = Object.values(ours).filter(
        (each) => typeof each === "function" && each.name.endsWith("Error"),
      );
      expect(others.filter((each) => error instanceof (each as Thrower))).toEqual(
        expect.arrayContaining([BrandedError, Own]),
      );
      expect(others.filter((each) => error instanceof (each as Thrower))).toHaveLength(2);
    }
  });

  test("one of others is not, whatever its code is", () => {
    const withCode = (code: string): Error => Object.assign(new Error("secret"), { code });
    expect(withCode("rpc.quota_exceeded")).not.toBeInstanceOf(RpcError);
    expect(withCode("rpc.internal")).not.toBeInstanceOf(RpcError);
    expect(withCode("tool.failed")).not.toBeInstanceOf(ToolError);
    expect(withCode("provider.not_found")).not.toBeInstanceOf(NotFoundError);
    expect(withCode("provider.not_found")).not.toBeInstanceOf(BrandedError);
  });

  test("a class that a user derives has instances of its own", () => {
    class CityError extends ToolError {}
    expect(new CityError("x")).toBeInstanceOf(ToolError);
    expect(new CityError("x")).toBeInstanceOf(CityError);
    expect(new ToolError("x")).not.toBeInstanceOf(CityError);
  });

  test("one that lacks the fields that our code relies on is not ours", () => {
    const broken = Object.defineProperty(new ScopeError(["a"]), "scopes", { value: "a" });
    expect(broken).not.toBeInstanceOf(ScopeError);
    expect(Object.defineProperty(new ToolError("x"), "message", { value: 1 })).not.toBeInstanceOf(ToolError);
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
