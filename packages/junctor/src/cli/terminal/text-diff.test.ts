import { expect, test } from "vitest";
import { createHideInText } from "./text-diff.ts";

test("secrets are hidden in lines of every format, also where quotes do not match", () => {
  const hide = createHideInText(["sk-plain", 'sk-"quoted"', "sk-it's", "line one\nline two", "short"]);
  expect(hide("+  KEY: sk-plain")).toBe("+  KEY: [secret]");
  expect(hide("+KEY = 'sk-plain'")).toBe("+KEY = '[secret]'");
  expect(hide('-  // the "old one: sk-plain')).toBe('-  // the "old one: [secret]');
  expect(hide('+"KEY": "sk-\\"quoted\\""')).toBe('+"KEY": "[secret]"');
  expect(hide("+KEY: 'sk-it''s'")).toBe("+KEY: '[secret]'");
  expect(hide("+line two")).toBe("+[secret]");
  expect(hide('+"KEY": "line one\\nline two"')).toBe('+"KEY": "[secret]"');
  expect(hide("+short")).toBe("+short");
});
