import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "./config.ts";
import { parseConfigValue } from "./parse-config.ts";

const parse = (entry: object): GatewayConfig =>
  parseConfigValue({ mcpServers: { a: { command: "a", ...entry } } }, { file: "config", env: {} });
const filtersOf = (
  entry: object,
): readonly [only: readonly string[] | undefined, without: readonly string[]] => {
  const [server] = parse(entry).servers;
  return [server?.onlyTools, server?.withoutTools ?? []];
};

describe("a filter of another client is applied:", () => {
  test.each([
    [{ disabledTools: ["x", "y"] }, undefined, ["x", "y"]],
    [{ excludeTools: ["x"] }, undefined, ["x"]],
    [{ disabled_tools: ["x"], excludedTools: ["y"] }, undefined, ["x", "y"]],
    [{ includeTools: ["x"] }, ["x"], []],
    [{ enabledTools: ["x", "y"], disabledTools: ["y"] }, ["x", "y"], ["y"]],
    [{ enabled_tools: ["x"] }, ["x"], []],
    [{ allowedTools: ["x", "y"], tools: ["y", "z"] }, ["y"], []],
    [{ tools: ["*"] }, undefined, []],
    [{ tools: ["*"], includeTools: ["x"] }, ["x"], []],
    [{ tools: [] }, [], []],
    [{ disabledTools: ["*"] }, [], []],
    [{ disabledTools: [] }, undefined, []],
    [{ autoApprove: ["x"], alwaysAllow: ["y"] }, undefined, []],
  ])("%j", (entry, only, without) => {
    const [foundOnly, foundWithout] = filtersOf(entry);
    expect([foundOnly, foundWithout]).toEqual([only, without]);
    expect(parse(entry).warnings).toEqual([]);
  });
});

describe("a filter that cannot be applied as its owner means it is reported:", () => {
  const instead = 'write "junctor": { "servers": { "NAME": { "allow": […], "deny": […] } } }';
  test.each([
    [{ disabledTools: "x" }, `disabledTools: is not a list of names and is not applied here: ${instead}`],
    [{ disabledTools: [1] }, `disabledTools: is not a list of names and is not applied here: ${instead}`],
    [{ tools: { x: true } }, `tools: is not a list of names and is not applied here: ${instead}`],
    [{ disabledTools: ["del_*"] }, `disabledTools: has "del_*", which is taken as an exact name: ${instead}`],
    [{ disabledPrompts: ["x"] }, `disabledPrompts: is not applied here: ${instead}`],
    [{ toolFilter: {} }, `toolFilter: is not applied here: ${instead}`],
  ])("%j", (entry, warning) => {
    const warnings = parse(entry).warnings.map(({ path, message }) => `${path}: ${message}`);
    expect(warnings).toEqual([`mcpServers.a.${warning}`]);
  });
});

test("filters of a server that is switched off are not looked at", () => {
  expect(parse({ disabled: true, toolFilter: {} }).warnings).toEqual([]);
});
