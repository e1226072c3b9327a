import { expect, test } from "vitest";
import { parseEnvFile } from "./env-file.ts";
import { parseConfigValue } from "./parse-config.ts";

function parse(text: string): { readonly [name: string]: string } {
  return parseEnvFile(text, (line, why) => {
    throw new Error(`line ${line} ${why}`);
  });
}

test("an env file has names and values, comments, quotes and blank lines", () => {
  const text = `\uFEFF# a comment
PLAIN=value
  export EXPORTED = spaced out  \r
EMPTY=
COMMENTED=value # and why
HASH=a#b
ONLY_COMMENT= # nothing
SINGLE='a # b \\n $HOME'
DOUBLE="a # b\\n\\"c\\"" # why
BACK=\`it's\`
EQUALS=a=b==
NOT_EXPANDED=\${HOME}

`;
  expect(parse(text)).toEqual({
    PLAIN: "value",
    EXPORTED: "spaced out",
    EMPTY: "",
    COMMENTED: "value",
    HASH: "a#b",
    ONLY_COMMENT: "",
    SINGLE: "a # b \\n $HOME",
    DOUBLE: 'a # b\n"c"',
    BACK: "it's",
    EQUALS: "a=b==",
    NOT_EXPANDED: "${HOME}",
  });
});

test("lines that are wrong are reported by their number and left out", () => {
  const wrong: string[] = [];
  const variables = parseEnvFile("A=1\nno\n=x\nB='open\nC=3", (line, why) => wrong.push(`${line} ${why}`));
  expect(variables).toEqual({ A: "1", C: "3" });
  expect(wrong).toEqual([
    "2 is not NAME=VALUE: correct it, or put a # before it",
    "3 is not NAME=VALUE: correct it, or put a # before it",
    "4 has a quote without its pair: close it in the same line",
  ]);
});

test("the last of two values counts, as in a shell", () => {
  expect(parse("A=1\nA=2")).toEqual({ A: "2" });
});

test("an envFile is an issue where nothing can be read", () => {
  const mcpServers = { a: { command: "a", envFile: ".env" } };
  expect(() => parseConfigValue({ mcpServers }, { file: "config", env: {} })).toThrow(
    "config: mcpServers.a.envFile: cannot be read here: write its variables into env",
  );
});
