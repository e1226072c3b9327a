import { describe, expect, test } from "vitest";
import { invocation } from "../invocation/index.ts";
import { describeCommand, describeProgram } from "./terminal/command.ts";
import { commandNames, flagsOf, rowOf } from "./terminal/commands.ts";

test("the help of the program names every command once, and fits a terminal", () => {
  const lines = describeProgram().split("\n");
  const named = lines.flatMap((line) => /^ {2}([a-z, ]+?) {2}/.exec(line)?.[1]?.split(", ") ?? []);
  expect(named.toSorted()).toEqual(commandNames.toSorted());
  expect(lines.filter(({ length }) => length > 80)).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(30);
  for (const title of ["Every day", "Your config", "One server", "What runs"])
    expect(lines).toContain(`${title}:`);
  expect(lines).toContain(`Where junctor is not in the PATH, type ${invocation} COMMAND.`);
});

describe("the help of a command", () => {
  test.each(commandNames)("%s fits a terminal, and has an example", (name) => {
    const help = describeCommand(name);
    expect(help.split("\n").filter(({ length }) => length > 80)).toEqual([]);
    expect(rowOf(name)?.examples ?? []).not.toEqual([]);
    for (const flag of Object.keys(flagsOf(rowOf(name)!))) expect(help).toContain(`--${flag}`);
  });

  test("says what the exit code 1 means where it means something", () => {
    expect(describeCommand("call")).toContain("\nExit code 1: the tool says that it failed\n");
  });
});

test("no two commands are meant by the same wrong word", () => {
  const words = commandNames.flatMap((name) => rowOf(name)?.guesses?.split(" ") ?? []);
  expect(new Set(words).size).toBe(words.length);
  expect(words.filter((word) => rowOf(word) !== undefined)).toEqual([]);
});
