import { expect, test } from "vitest";
import { parseConfigValue } from "../config/parse-config.ts";
import { explainAccess } from "./explain.ts";
import { compileRules } from "./rules.ts";
import { findDeadRules } from "./unmatched-rules.ts";

const http = { publicUrl: "https://mcp.example.com/mcp" };
const issuers = { corp: { issuer: "https://id.example.com", scopes: ["mcp:use"] } };
const sha256 = "ab".repeat(32);

async function deadOf(
  rules: readonly object[],
  junctor: object = { http, issuers },
): Promise<readonly string[]> {
  const config = parseConfigValue({ mcpServers: {}, junctor: { ...junctor, rules } }, { file: "f", env: {} });
  return findDeadRules(config, await compileRules(config, "f")).map(
    ({ path, message }) => `${path} ${message}`,
  );
}

test.each([
  [
    { deny: ["a"], when: "false" },
    "junctor.rules[0] never applies: its condition `when` is false for every caller",
  ],
  [
    { allow: ["a"], unless: "1 < 2" },
    "junctor.rules[0] never applies: its condition `unless` is true for every caller",
  ],
])("%j can never apply", async (rule, message) => {
  expect(await deadOf([rule])).toEqual([message]);
});

test("an allow can never apply where other rules deny all of it", async () => {
  const rules = [{ allow: ["a__x*", "a__y"] }, { deny: ["a__*"] }];
  expect(await deadOf(rules)).toEqual([
    "junctor.rules[0] never applies: other rules deny everything that it allows",
  ]);
  expect(await deadOf([{ allow: ["a__x"] }, { deny: ["a__*"], unless: "'b' in caller.groups" }])).toEqual([]);
});

test("rules about groups and scopes can never apply where no caller has any", async () => {
  const rules = [
    { deny: ["a"], when: "'x' in caller.groups" },
    { scope: "s", tools: ["b"] },
  ];
  expect(await deadOf(rules, { keys: { ada: { sha256 } } })).toEqual([
    'junctor.rules[0] never applies: no caller of this config has groups; they come from tokens, or from "keys"',
    "junctor.rules[1] can never be met: no caller of this config has the scope s",
  ]);
  expect(await deadOf(rules, { keys: { ada: { sha256, groups: ["x"], scopes: ["s"] } } })).toEqual([]);
  expect(await deadOf(rules)).toEqual([]);
});

test("the setting that decides over a caller and a name is found in the order of the gateway", async () => {
  const junctor = {
    http,
    issuers,
    keys: { ada: { sha256, allow: ["files__*"], deny: ["*secret*"], groups: ["eng"] } },
    deny: ["*__drop"],
    servers: { files: { deny: ["format"], tools: { wipe: { hide: true } } } },
    rules: [
      { allow: ["*"], when: "'eng' in caller.groups" },
      { scope: "mcp:write", tools: ["*__write"] },
    ],
  };
  const mcpServers = { files: { command: "files" } };
  const config = parseConfigValue({ mcpServers, junctor }, { file: "f", env: {} });
  const rules = await compileRules(config, "f");
  const ada = { name: "ada", groups: ["eng"] };
  const why = (caller: Parameters<typeof explainAccess>[2], name: string): string => {
    const { decision, setting = "-" } = explainAccess(config, rules, caller, name);
    return `${decision} ${setting}`;
  };
  expect(why({ name: "eve" }, "files__read")).toBe("deny -");
  expect(why(ada, "files__format")).toBe("deny junctor.servers.files");
  expect(why(ada, "files__wipe")).toBe("deny junctor.servers.files");
  expect(why(ada, "files__drop")).toBe("deny junctor.deny");
  expect(why(ada, "files__secret_read")).toBe("deny junctor.keys.ada.deny");
  expect(why(ada, "other__read")).toBe("deny junctor.keys.ada.allow");
  expect(why(ada, "files__read")).toBe("allow junctor.rules[0]");
  expect(why(ada, "files__write")).toBe("step_up junctor.rules[1]");
  expect(why({ name: "corp:1" }, "files__read")).toBe("deny junctor.rules");
  expect(why({ name: "corp:1", groups: ["eng"] }, "files__read")).toBe("allow junctor.rules[0]");
});
