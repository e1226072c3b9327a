import { expect, test } from "vitest";
import { killTree, planKill } from "../../packages/client/src/child/child.ts";

test("on POSIX the whole group gets the signal", () => {
  expect(planKill(42, "SIGTERM", "linux")).toEqual({ kind: "signal", pid: -42, signal: "SIGTERM" });
  expect(planKill(42, "SIGKILL", "darwin")).toEqual({ kind: "signal", pid: -42, signal: "SIGKILL" });
});

test("on Windows the tree is ended by force, because console programs cannot be asked", () => {
  const args = ["/pid", "42", "/T", "/F"];
  expect(planKill(42, "SIGTERM", "win32")).toEqual({ kind: "command", command: "taskkill", args });
});

test("what is gone already is not an error", () => {
  expect(() => killTree(2 ** 22 - 3, "SIGKILL")).not.toThrow();
  expect(() => killTree(undefined, "SIGKILL")).not.toThrow();
});
