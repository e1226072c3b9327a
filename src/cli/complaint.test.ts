import { expect, test } from "vitest";
import { ValidationError } from "../errors/validation-error.ts";
import { toComplaint } from "./complaint.ts";

test.each([
  ["/from", "from"],
  ["/tags/0", "tags[0]"],
  ["/options/deep/1/name", "options.deep[1].name"],
  ["/a~1b~0c", "a/b~c"],
  ["/~01", "~1"],
  ["/", '""'],
  ["", "the arguments"],
])("an argument that does not fit is named as it was typed: %j is %s", (path, name) => {
  const issues = [{ path, message: "must be string" }];
  const error = new ValidationError("tool", "arguments", issues, `Invalid arguments: ${path} must be string`);
  expect(toComplaint(error)).toEqual({ text: `junctor: tool: ${name} must be string\n`, exitCode: 2 });
});

test("all that does not fit is on one line", () => {
  const issues = [
    { path: "/a", message: "must be string" },
    { path: "/b", message: "must be number" },
  ];
  const error = new ValidationError("tool", "arguments", issues, "…");
  expect(toComplaint(error).text).toBe("junctor: tool: a must be string; b must be number\n");
});
