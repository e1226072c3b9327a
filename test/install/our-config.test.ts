import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { addServers } from "../../packages/junctor/src/install/our-config.ts";

/** The name that a server of a client gets in a config. */
function nameIn(config: object, name: string): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "junctor-our-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "junctor.json");
  writeFileSync(path, JSON.stringify(config));
  return addServers(path, "cursor", new Map([[name, { command: "other" }]])).names.get(name);
}

const server = { command: "one" };

test.each<[what: string, junctor: object, known: string, added: string, name: string]>([
  ["the usual separator, which its name has", {}, "a-b", "a__b", "a__b-cursor"],
  ["another separator", { separator: "." }, "a-b", "a__b", "a__b"],
  ["a separator that a known name has", { separator: "." }, "a.b", "a-b", "a-b-cursor"],
  ["the prefix of another server", { servers: { a: { prefix: "b" } } }, "a", "b", "b-cursor"],
  ["a server without a prefix", { servers: { a__b: { prefix: false } } }, "a__b", "a-b", "a-b"],
])("a server keeps its name unless its prefix is taken: %s", (_, junctor, known, added, name) => {
  expect(nameIn({ mcpServers: { [known]: server }, junctor }, added)).toBe(name);
});
