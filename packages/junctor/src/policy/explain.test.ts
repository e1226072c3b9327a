import { expect, test } from "vitest";
import { parseConfigValue } from "../config/parse-config.ts";
import { explainAccess } from "./explain.ts";
import { compileRules } from "./rules.ts";

const sha256 = "a".repeat(64);
const config = parseConfigValue(
  {
    mcpServers: { notes: { command: "unused" }, post: { command: "unused", args: [] } },
    junctor: {
      deny: ["*__drop"],
      keys: {
        ada: { sha256 },
        bob: { sha256: "b".repeat(64), profiles: ["reading", "mail"] },
        eve: { sha256: "c".repeat(64), profiles: ["closed"] },
      },
      profiles: { reading: { allow: ["*__read"] }, mail: { allow: ["post__*"] }, closed: {} },
      rules: [{ deny: ["notes__*"], profiles: ["closed"] }],
    },
  },
  { file: "test", env: {} },
);

test.each([
  ["ada", "notes__read", "allow", undefined, "nothing in the config is against it"],
  ["bob", "notes__read", "allow", "junctor.keys.bob.profiles", "but only at /mcp/reading"],
  ["bob", "post__send", "allow", "junctor.keys.bob.profiles", "but only at /mcp/mail"],
  ["bob", "post__read", "allow", "junctor.keys.bob.profiles", "but only at /mcp/reading and /mcp/mail"],
  [
    "bob",
    "notes__write",
    "deny",
    "junctor.keys.bob.profiles",
    "limited to /mcp/reading and /mcp/mail, where this is not",
  ],
  ["bob", "post__drop", "deny", "junctor.deny", "denies it"],
  ["eve", "notes__read", "deny", "junctor.rules[0]", "the rule denies it"],
  ["eve", "post__read", "allow", "junctor.keys.eve.profiles", "but only at /mcp/closed"],
])("%s and %s: %s by %s", async (name, tool, decision, setting, reason) => {
  const explained = explainAccess(config, await compileRules(config, "test"), { name }, tool);
  expect(explained).toMatchObject({ decision, setting });
  expect(explained.reason).toContain(reason);
});
