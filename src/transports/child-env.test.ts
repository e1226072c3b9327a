import { expect, test } from "vitest";
import { toChildEnv } from "./child-env.ts";

test("only names on the list are passed on, and what the user names", () => {
  const own = {
    PATH: "/bin",
    HOME: "/root",
    AWS_SECRET_ACCESS_KEY: "s",
    NODE_OPTIONS: "--inspect",
    path: "x",
  };
  expect(toChildEnv(own, { API_KEY: "mine", PATH: "/mine" }, "linux")).toEqual({
    PATH: "/mine",
    HOME: "/root",
    API_KEY: "mine",
  });
});

test("on Windows names are compared without case, and keep theirs", () => {
  const own = {
    Path: "C:\\bin",
    SystemRoot: "C:\\Windows",
    ComSpec: "cmd.exe",
    PATHEXT: ".EXE",
    Secret: "s",
  };
  expect(toChildEnv(own, {}, "win32")).toEqual({
    Path: "C:\\bin",
    SystemRoot: "C:\\Windows",
    ComSpec: "cmd.exe",
    PATHEXT: ".EXE",
  });
});

test("a value that is a shell function is not passed on", () => {
  expect(toChildEnv({ TERM: "() { :; }; echo" }, {}, "linux")).toEqual({});
});

test("a name without a value is none", () => {
  expect(toChildEnv({ HOME: undefined }, { A: undefined, B: "" }, "linux")).toEqual({ B: "" });
});
