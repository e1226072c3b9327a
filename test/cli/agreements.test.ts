import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { isAgreed, rememberAgreement } from "../../packages/junctor/src/cli/config/config-file.ts";

let folder: string;
let store: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-agreements-"));
  vi.stubEnv("XDG_STATE_HOME", folder);
  store = join(folder, "junctor", "agreed-configs.json");
});

function write(name: string): string {
  const file = join(folder, name);
  writeFileSync(file, "");
  return file;
}

test("an agreement is about one file and one text of it", () => {
  const [one, two] = [write("one"), write("two")];
  expect(isAgreed(one, "text")).toBe(false);
  rememberAgreement(one, "text");
  rememberAgreement(two, "other");
  expect([isAgreed(one, "text"), isAgreed(two, "other")]).toEqual([true, true]);
  expect([isAgreed(one, "text "), isAgreed(two, "text")]).toEqual([false, false]);
  rememberAgreement(one, "new");
  expect([isAgreed(one, "new"), isAgreed(one, "text")]).toEqual([true, false]);
});

test("a link is the file it leads to", () => {
  const file = write("file");
  const link = join(folder, "link");
  symlinkSync(file, link);
  rememberAgreement(link, "text");
  expect(isAgreed(file, "text")).toBe(true);
});

test("the oldest agreements are forgotten, and texts are not kept", () => {
  const files = Array.from({ length: 202 }, (_, number) => write(`file ${number}`));
  for (const file of files) rememberAgreement(file, "a secret");
  expect(files.map((file) => isAgreed(file, "a secret")).indexOf(true)).toBe(2);
  expect(readFileSync(store, "utf8")).not.toContain("a secret");
});

test.each(["{", "[]", '{"agreed":1}', '{"agreed":[null,{"path":1}]}'])("%s holds no agreement", (text) => {
  const file = write("file");
  rememberAgreement(file, "text");
  writeFileSync(store, text);
  expect(isAgreed(file, "text")).toBe(false);
  rememberAgreement(file, "text");
  expect(isAgreed(file, "text")).toBe(true);
});

test("a folder in the place of the agreements holds none", () => {
  mkdirSync(store, { recursive: true });
  expect(isAgreed(write("file"), "text")).toBe(false);
});
