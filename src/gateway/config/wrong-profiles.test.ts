import { describe, expect, test } from "vitest";
import { ConfigError } from "../../errors/config-error.ts";
import { parseConfig } from "./parse-config.ts";

// Every wrong config, and the one thing that is said about it.

const env = {
  SECRET: "gims-do-not-show-me",
  KEY: "0123456789abcdefXYZ",
  SHORT: "tooshort",
  SPACED: "0123456789 abcdefXYZ",
};
const section = (text: string): string => `{ "mcpServers": { "x": { "command": "a" } }, "junctor": ${text} }`;

/** What is said about a config, line by line, without the name of the file. */
function complaintOf(text: string): string {
  try {
    parseConfig(text, { file: "f", env, folder: "/etc/x" });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(/^f: /gm, "");
    throw error;
  }
  return "nothing is wrong";
}

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
