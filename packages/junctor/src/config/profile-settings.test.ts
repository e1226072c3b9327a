import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { parseConfig, parseConfigValue } from "./parse-config.ts";

const section = (text: string): string => `{ "mcpServers": { "x": { "command": "a" } }, "junctor": ${text} }`;

/** The text about a config, without the name of the file. */
function complaintOf(text: string): string {
  try {
    parseConfig(text, { file: "f", env: {} });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(/^f(?::\d+:\d+)?: /gm, "");
    throw error;
  }
  return "nothing is wrong";
}

test("what a profile may say is taken, and what it leaves out is filled in", () => {
  const all = {
    allow: ["x.a*"],
    deny: ["x.ab"],
    instructions: "Look, and do not touch.",
    rename: { "x.ac": "c" },
    pin: ["c"],
    tools: "auto",
    budget: 5000,
    maxResultTokens: { "x.*": 2000 },
  };
  const keys = { al: { sha256: "ab".repeat(32), profiles: ["all"] } };
  const { profiles, keys: read } = parseConfigValue(
    { mcpServers: {}, junctor: { profiles: { all, bare: {} }, keys } },
    { file: "f", env: {} },
  );
  const bare = { allow: [], deny: [], rename: {}, pin: [], tools: "all", budget: 10_000 };
  expect(profiles).toEqual([
    { name: "all", ...all },
    { name: "bare", ...bare, instructions: undefined, maxResultTokens: undefined },
  ]);
  expect(read[0]?.profiles).toEqual(["all"]);
});

test("instructions that clients would cut are a warning", () => {
  const instructions = "x".repeat(3000);
  const { warnings } = parseConfigValue(
    { mcpServers: {}, junctor: { profiles: { long: { instructions } } } },
    { file: "f", env: {} },
  );
  expect(warnings[0]?.message).toContain("the first 2048 only");
});

describe("a profile", () => {
  test.each([
    [
      section('{ "profiles": { "a/b": {} } }'),
      'junctor.profiles["a/b"]: cannot be the name of a profile: write 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first',
    ],
    [
      section('{ "profiles": { "x": {} } }'),
      "junctor.profiles.x: is the name of a server too: choose another, as both would be served at one path",
    ],
    [
      section('{ "profiles": { "y": { "allow": [] } } }'),
      'junctor.profiles.y.allow: is empty: leave it out to allow all, or write "deny": ["*"] to allow nothing',
    ],
    [
      section('{ "profiles": [] }'),
      'junctor.profiles: must be an object, not an array: write "profiles": { "review": { "allow": ["github__*"] } }',
    ],
    [
      section('{ "profiles": { "y": { "tools": "serach" } } }'),
      'junctor.profiles.y.tools: must be one of "all", "search", "auto": did you mean "search"?',
    ],
    [
      section('{ "profiles": { "y": { "rename": { "a": "b c" } } } }'),
      "junctor.profiles.y.rename.a: cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -",
    ],
    [
      section('{ "profiles": { "y": { "rename": { "a": "c", "b": "c" } } } }'),
      "junctor.profiles.y.rename.b: is the new name of a too: write another",
    ],
    [
      section('{ "profiles": { "y": { "rename": { "a": "call_tool" } } } }'),
      "junctor.profiles.y.rename.a: is the name of a tool of the gateway's own: write another",
    ],
    [
      section('{ "profiles": { "y": { "maxResultTokens": 10 } } }'),
      "junctor.profiles.y.maxResultTokens: must be a whole number from 500 to 10000000: write 10000",
    ],
    [
      section('{ "profiles": { "y": { "instructions": " " } } }'),
      'junctor.profiles.y.instructions: is empty: write "Use the tools of github for everything about code."',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});
