import { describe, expect, test } from "vitest";
import { commands, groups } from "./program.ts";
import { describeCommand, describeProgram } from "./terminal/command.ts";
import { invocation } from "./terminal/invocation.ts";

test("the help of the program names every command once, and fits a terminal", () => {
  const lines = describeProgram(groups).split("\n");
  const named = Object.values(groups).flatMap((group) =>
    Object.keys(group).flatMap((names) => names.split(", ")),
  );
  expect(named.toSorted()).toEqual(Object.keys(commands).toSorted());
  expect(lines.filter(({ length }) => length > 80)).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(30);
  expect(lines).toEqual(expect.arrayContaining(Object.keys(groups).map((title) => `${title}:`)));
  expect(lines).toContain(`Where junctor is not in the PATH, type ${invocation} COMMAND.`);
});

describe("the help of a command fits a terminal, and has an example", () => {
  test.each(Object.keys(commands))("%s", async (name) => {
    const command = await commands[name]!();
    expect(command.name).toBe(name);
    expect(
      describeCommand(command)
        .split("\n")
        .filter(({ length }) => length > 80),
    ).toEqual([]);
    expect(command.examples ?? []).not.toEqual([]);
  });
});
