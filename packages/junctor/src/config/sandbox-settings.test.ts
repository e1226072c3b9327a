import { expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import type { GatewayConfig } from "./config.ts";
import { parseConfigValue } from "./parse-config.ts";

const mcpServers = { x: { command: "a" }, web: { url: "https://example.com/mcp" } };

function parse(sandbox: unknown, defaults: object = {}): GatewayConfig {
  const junctor = { defaults, servers: { x: { sandbox } } };
  return parseConfigValue({ mcpServers, junctor }, { file: "/cfg/mcp.json", env: {}, folder: "/cfg" });
}

const sandboxOf = (config: GatewayConfig, name = "x"): unknown =>
  config.servers.find((server) => server.name === name)?.sandbox;

const closed = { network: false, read: [], write: [] };

test("a sandbox is closed but for what is named, with paths relative to the config", () => {
  expect(sandboxOf(parse(true))).toEqual(closed);
  const given = { network: true, read: ["data/"], write: ["/notes"], memoryMb: 512, processes: 64 };
  expect(sandboxOf(parse(given))).toEqual({ ...given, read: ["/cfg/data"] });
});

test("defaults are for all servers with a command that do not say otherwise", () => {
  const defaults = { sandbox: true };
  expect(sandboxOf(parse(undefined, defaults))).toEqual(closed);
  expect(sandboxOf(parse(false, defaults))).toBeUndefined();
  expect(sandboxOf(parse(undefined, defaults), "web")).toBeUndefined();
});

test("a server that could write its config is a warning", () => {
  const warned = (write: string): readonly string[] =>
    parse({ write: [write] }).warnings.map(({ path, message }) => `${path} ${message}`);
  const text = "junctor.servers.x.sandbox.write lets the server write this config: name a folder beside it";
  expect([warned("."), warned("/"), warned("./notes"), warned("/c")]).toEqual([[text], [text], [], []]);
});

test.each([
  ["yes", "sandbox: must be an object, not a string"],
  [{ net: true }, "sandbox.net: is not known here"],
  [{ network: "no" }, "sandbox.network: must be true or false, not a string"],
  [{ read: "./data" }, "sandbox.read: must be an array of strings, not a string"],
  [{ write: [""] }, "sandbox.write[0]: is empty"],
  [{ memoryMb: 1 }, "sandbox.memoryMb: must be a whole number from 16 to 1048576"],
  [{ processes: 0 }, "sandbox.processes: must be a whole number from 1 to 100000"],
  [{ write: ["a"], read: ["a/b"] }, "sandbox: names /cfg/a/b, which lies in a folder that it may write"],
  [{ write: ["a", "a/b"] }, "sandbox: names /cfg/a/b, which lies in a folder that it may write"],
])("%j is refused", (sandbox, message) => {
  expect(() => parse(sandbox)).toThrow(ConfigError);
  expect(() => parse(sandbox)).toThrow(`junctor.servers.x.${message}`);
});

test("a sandbox that cannot be made disables its server", () => {
  const findSandboxProblem = (): string => "there is no bwrap";
  const junctor = { defaults: { sandbox: true } };
  const { servers, disabled } = parseConfigValue(
    { mcpServers, junctor },
    { file: "f", env: {}, findSandboxProblem },
  );
  expect(servers.map(({ name }) => name)).toEqual(["web"]);
  expect(disabled.map(({ name, reason }) => [name, reason])).toEqual([["x", "there is no bwrap"]]);
});
