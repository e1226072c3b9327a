// The tables of settings and the code that reads them: neither has what the other lacks.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { issuerRows, keyRows, profileRows, ruleRows } from "../../packages/junctor/src/config/access-rows.ts";
import { entryRows } from "../../packages/junctor/src/config/entry-rows.ts";
import { gatewayRows } from "../../packages/junctor/src/config/gateway-rows.ts";
import type { Rows } from "../../packages/junctor/src/config/rows.ts";
import { serverRows } from "../../packages/junctor/src/config/server-rows.ts";
import { root } from "../source-graph.ts";

const source = join(root, "packages/junctor/src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
);
const read = (file: string): string => readFileSync(join(source, file), "utf8");
const isOfRoom = (file: string): boolean => file.startsWith("config/");
// What makes a sandbox lies in the room and uses its settings.
const outside = files.filter((file) => !isOfRoom(file) || file === "config/sandbox.ts").map(read);

/** Rows, and those of the objects in them, by their paths. */
function pathsOf(rows: Rows, path: string): readonly string[] {
  return Object.entries(rows).flatMap(([key, { type }]) => {
    const at = `${path}.${key}`;
    return [at, ...pathsOf(type.rows ?? {}, at)];
  });
}

// What the config room itself makes of these is read outside under another name: a launch, a hash, the kind of a rule.
const made = new Set([
  "entry",
  "keys.env",
  "admin.key.env",
  "rules.allow",
  "rules.deny",
  "rules.scope",
  "rules.tools",
]);

const settings = [
  ...pathsOf(serverRows, "servers"),
  ...pathsOf(gatewayRows as Rows, ""),
  ...pathsOf(keyRows, "keys"),
  ...pathsOf(profileRows, "profiles"),
  ...pathsOf(issuerRows, "issuers"),
  ...pathsOf(ruleRows as Rows, "rules"),
].map((path) => path.replace(/^\./, ""));

test.each(settings.filter((path) => !made.has(path)))(
  "%s is read by code outside of the config room",
  (path) => {
    const key = path.split(".").at(-1) ?? "";
    // `config.key`, or `key` taken out of an object.
    const use = new RegExp(`\\.${key}\\b|[{,]\\s*(?:\\.\\.\\.)?${key}\\s*[,:}=]`);
    // An object that is passed on whole is read in another package.
    const parent = path.split(".").at(-2) ?? "";
    const isPassedOn = ["tls", "serverCard", "perCaller", "trunk", "introspection", "login"].includes(parent);
    const packages = isPassedOn ? ["server", "client", "core", "junctor"] : ["junctor"];
    const texts = packages.flatMap((name) => (name === "junctor" ? outside : sourcesOf(name)));
    expect(texts.some((text) => use.test(text))).toBe(true);
  },
);

describe("the config room", () => {
  const known = new Set([
    ...settings.flatMap((path) => path.split(".")),
    ...Object.keys(entryRows),
    "mcpServers",
    "servers",
    "junctor",
    "defaults",
  ]);

  test.each(files.filter(isOfRoom))("%s reads no key that is in no row", (file) => {
    const keys = [...read(file).matchAll(/\b(?:get|has)\("([\w$]+)"\)/g)].map(([, key]) => key);
    expect(keys.filter((key) => !known.has(key ?? ""))).toEqual([]);
  });
});

function sourcesOf(name: string): readonly string[] {
  const folder = join(root, "packages", name, "src");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => readFileSync(join(folder, file), "utf8"));
}
