import { expect, test } from "vitest";
import { toChildEnv } from "./child.ts";

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

test("a name without a value is left out", () => {
  expect(toChildEnv({ HOME: undefined }, { A: undefined, B: "" }, "linux")).toEqual({ B: "" });
});

test.each([
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "all_proxy",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "REQUESTS_CA_BUNDLE",
  "npm_config_registry",
  "NPM_CONFIG_REGISTRY",
  "npm_config_userconfig",
  "npm_config_cafile",
  "PIP_INDEX_URL",
  "UV_INDEX_URL",
  "UV_CACHE_DIR",
  "XDG_CACHE_HOME",
  "XDG_RUNTIME_DIR",
  "DOCKER_HOST",
])("%s is passed on, because launchers cannot reach the network without it", (name) => {
  expect(toChildEnv({ [name]: "https://proxy.test:3128" }, {}, "linux")).toEqual({
    [name]: "https://proxy.test:3128",
  });
});

test.each([
  "NODE_OPTIONS",
  "NODE_AUTH_TOKEN",
  "NPM_TOKEN",
  "npm_config__auth",
  "npm_config_//registry.test/:_authToken",
  "UV_PUBLISH_TOKEN",
  "DOCKER_AUTH_CONFIG",
  "NODE_TLS_REJECT_UNAUTHORIZED",
])("%s is not", (name) => {
  expect(toChildEnv({ [name]: "x" }, {}, "linux")).toEqual({});
});

test("a proxy keeps its user and password, an address of packages with one is not passed on", () => {
  const own = {
    HTTPS_PROXY: "http://ada:secret@proxy.test:3128",
    npm_config_registry: "https://ada:secret@packages.test/npm/",
    PIP_INDEX_URL: "https://token@packages.test/simple",
    UV_INDEX: "https://packages.test/a@1 two=https://ada:secret@packages.test/simple",
    UV_DEFAULT_INDEX: "https://packages.test/@scope/simple",
  };
  expect(toChildEnv(own, {}, "linux")).toEqual({
    HTTPS_PROXY: own.HTTPS_PROXY,
    UV_DEFAULT_INDEX: own.UV_DEFAULT_INDEX,
  });
});
