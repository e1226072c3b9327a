import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { createGlobs, type NameTest } from "../../../server/src/middleware/allow-list.ts";
import type { GatewayConfig } from "./config.ts";
import { toAgreedPart } from "./edits.ts";
import { parseConfigValue } from "./parse-config.ts";

const env = { TOKEN: "token-0123456789", EVE: "0123456789abcdef-eve", ADA: "0123456789abcdef-ada" };
const parse = (value: object): GatewayConfig => parseConfigValue(value, { file: "test", env });

const mcpServers = {
  files: { command: "files", args: ["notes"], env: { A: "1" }, cwd: "/notes" },
  web: { url: "https://example.com/mcp", headers: { A: "1" } },
};
const junctor = {
  servers: {
    files: {
      deny: ["write_*"],
      allow: ["read_*", "write_*"],
      sharing: "perSession",
      sandbox: true,
      tools: { erase: { hide: true } },
    },
  },
  keys: { ada: { env: "ADA", allow: ["files__*"], deny: ["files__x"] }, bob: { sha256: "b".repeat(64) } },
  profiles: { review: { allow: ["files__read_*"], deny: ["files__read_x"], instructions: "Look." } },
  deny: ["*delete*"],
  audit: "audit.jsonl",
  middleware: ["./guard.mjs"],
  limits: { callsPerMinute: 60, callTimeoutMs: 1000, tools: { "web__*": { callsPerMinute: 5 } } },
  redact: ["jwt", "/secret-\\w+/"],
};
const agreed = parse({ mcpServers, junctor });
const { files, web } = mcpServers;

interface Edit {
  readonly mcpServers?: object;
  readonly junctor?: object;
}
const edit = (changes: Edit): ReturnType<typeof toAgreedPart> =>
  toAgreedPart(parse({ mcpServers, junctor, ...changes }), agreed, env);
const ofFiles = (settings: object): Edit => ({
  junctor: { ...junctor, servers: { files: { ...junctor.servers.files, ...settings } } },
});
const ofGateway = (settings: object): Edit => ({ junctor: { ...junctor, ...settings } });
const ofServers = (servers: object): Edit => ({ mcpServers: { ...mcpServers, ...servers } });

const ofReview = (settings: object): Edit =>
  ofGateway({ profiles: { review: { ...junctor.profiles.review, ...settings } } });

const hostile: readonly (readonly [what: string, changes: Edit, waits: string])[] = [
  ["a wider profile", ofReview({ allow: ["*"] }), "junctor.profiles"],
  ["a profile that denies less", ofReview({ deny: [] }), "junctor.profiles"],
  ["hints that are believed", ofFiles({ trustHints: true }), "files.trustHints"],
  ["another name in a profile", ofReview({ rename: { files__read_a: "b" } }), "junctor.profiles"],
  ["other instructions", ofReview({ instructions: "${TOKEN}" }), "junctor.profiles"],
  [
    "another command",
    ofServers({ files: { ...files, command: "sh" } }),
    "files (command: sh notes (in /notes) (sets A))",
  ],
  [
    "other arguments",
    ofServers({ files: { ...files, args: ["/"] } }),
    "files (args: files / (in /notes) (sets A))",
  ],
  [
    "a variable",
    ofServers({ files: { ...files, env: { NODE_OPTIONS: "x" } } }),
    "files (env NODE_OPTIONS, env A: files notes (in /notes) (sets NODE_OPTIONS))",
  ],
  [
    "another folder",
    ofServers({ files: { ...files, cwd: "/" } }),
    "files (cwd: files notes (in /) (sets A))",
  ],
  ["a new server", ofServers({ x: { command: "sh", args: ["-c", "id"] } }), "x (new: sh -c id)"],
  [
    "a new URL",
    ofServers({ x: { url: "http://e.example/?k=${TOKEN}" } }),
    "x (new: http://e.example/?k=[secret])",
  ],
  [
    "another URL",
    ofServers({ web: { ...web, url: "http://e.example/" } }),
    "web (url: http://e.example/ (sends A))",
  ],
  ["a header", ofServers({ web: { ...web, headers: {} } }), "web (headers A: https://example.com/mcp)"],
  [
    "an older transport",
    ofServers({ web: { ...web, type: "sse" } }),
    "web (transport: https://example.com/mcp (sends A))",
  ],
  [
    "a command for a URL",
    ofServers({ web: { command: "sh" } }),
    "web (kind, command, args, url, headers A, transport: sh)",
  ],
  ["no deny", ofFiles({ deny: [] }), "files.deny"],
  ["a wider allow", ofFiles({ allow: ["*"] }), "files.allow"],
  ["an allow that looks narrower", ofFiles({ allow: ["?ead_*"] }), "files.allow"],
  ["a shared process", ofFiles({ sharing: "shared" }), "files.sharing"],
  ["a name with a secret", ofFiles({ prefix: "${TOKEN}" }), "files.prefix"],
  ["a shown tool", ofFiles({ tools: {} }), "files.tools"],
  [
    "a description",
    ofFiles({ tools: { erase: { hide: true }, a: { description: "${TOKEN}" } } }),
    "files.tools",
  ],
  ["no record of arguments", ofFiles({ audit: { arguments: false } }), "files.audit"],
  ["more processes", ofFiles({ instances: 2 }), "files.instances"],
  ["more processes of callers", ofFiles({ maxConnections: 1000 }), "files.maxConnections"],
  ["less of a sandbox", ofFiles({ sandbox: { network: true } }), "files.sandbox"],
  ["no keys", ofGateway({ keys: {} }), "junctor.keys"],
  ["a new key", ofGateway({ keys: { ...junctor.keys, eve: { env: "EVE" } } }), "junctor.keys"],
  ["only another key", ofGateway({ keys: { ada: { env: "EVE" } } }), "junctor.keys"],
  ["a key with more", ofGateway({ keys: { ...junctor.keys, ada: { env: "ADA" } } }), "junctor.keys"],
  ["no audit", ofGateway({ audit: undefined }), "junctor.audit"],
  ["an audit elsewhere", ofGateway({ audit: "/root/.bashrc" }), "junctor.audit"],
  ["another module", ofGateway({ middleware: ["./guard.mjs", "./evil.mjs"] }), "junctor.middleware"],
  ["no module", ofGateway({ middleware: [] }), "junctor.middleware"],
  ["another separator", ofGateway({ separator: "-" }), "junctor.separator"],
  ["no limits", ofGateway({ limits: {} }), "junctor.limits"],
  ["a higher limit", ofGateway({ limits: { ...junctor.limits, callsPerMinute: 61 } }), "junctor.limits"],
  [
    "a limit that replaces the general one",
    ofGateway({
      limits: { ...junctor.limits, tools: { ...junctor.limits.tools, "*": { callTimeoutMs: 2000 } } },
    }),
    "junctor.limits",
  ],
  [
    "such a limit where a tool has another",
    ofGateway({
      limits: { ...junctor.limits, tools: { "web__*": { callsPerMinute: 5, callTimeoutMs: 2000 } } },
    }),
    "junctor.limits",
  ],
  ["no redaction", ofGateway({ redact: [] }), "junctor.redact"],
  ["an expression", ofGateway({ redact: [...junctor.redact, "/(a+)+$/"] }), "junctor.redact"],
];

/** What decides over a call or a process. */
const rulesOf = (config: GatewayConfig): unknown => ({ ...config, disabled: [], secrets: [], warnings: [] });

test.each(hostile)("%s waits, and nothing of it is used", (_what, changes, waits) => {
  const { config, waiting } = edit(changes);
  expect(waiting).toEqual([waits]);
  expect(rulesOf(config)).toEqual(rulesOf(agreed));
});

test("of a rule that is exchanged for a looser one, both hold", () => {
  const inServer = edit(ofFiles({ deny: ["write_a*"] }));
  expect([inServer.waiting, inServer.config.servers[0]?.deny]).toEqual([
    ["files.deny"],
    ["write_a*", "write_*"],
  ]);
  const forAll = edit(ofGateway({ deny: ["*delete_all*"] }));
  expect([forAll.waiting, forAll.config.deny]).toEqual([["junctor.deny"], ["*delete_all*", "*delete*"]]);
});

test("of a key that is exchanged, the old one is gone and the new one waits", () => {
  const { config, waiting } = edit(ofGateway({ keys: { ada: { env: "EVE" }, bob: junctor.keys.bob } }));
  expect([waiting, config.keys.map(({ name }) => name)]).toEqual([["junctor.keys"], ["bob"]]);
});

const harmless: readonly (readonly [what: string, changes: Edit])[] = [
  ["a removed server", { mcpServers: { web }, junctor: { ...junctor, servers: {} } }],
  ["a disabled server", ofServers({ web: { ...web, disabled: true } })],
  ["more denied", ofFiles({ deny: ["*"] })],
  ["less allowed", ofFiles({ allow: ["read_a*"] })],
  ["a hidden tool", ofFiles({ tools: { erase: { hide: true }, other: { hide: true } } })],
  ["times", ofFiles({ timeoutMs: 5, maxTotalMs: 10, start: "lazy", idleStopMs: 9, maxConnections: 1 })],
  ["a removed key", ofGateway({ keys: { bob: junctor.keys.bob } })],
  ["a key with less", ofGateway({ keys: { ...junctor.keys, bob: { sha256: "b".repeat(64), deny: ["*"] } } })],
  [
    "a key bound to a profile",
    ofGateway({ keys: { ...junctor.keys, bob: { sha256: "b".repeat(64), profiles: ["review"] } } }),
  ],
  [
    "a profile that is searched",
    ofReview({ tools: "search", pin: ["files__read_a"], budget: 5, maxResultTokens: 900 }),
  ],
  ["a narrower profile", ofReview({ allow: ["files__read_a"], deny: ["files__*"] })],
  ["a new profile", ofGateway({ profiles: { ...junctor.profiles, other: { deny: ["web__*"] } } })],
  ["a removed profile", ofGateway({ profiles: {} })],
  ["more denied for all", ofGateway({ deny: ["*d*"] })],
  ["only some allowed for all", ofGateway({ allow: ["web__*"] })],
  ["a lower limit", ofGateway({ limits: { ...junctor.limits, callsPerMinute: 1 } })],
  ["more redaction", ofGateway({ redact: ["email", ...junctor.redact] })],
  ["how it logs", ofGateway({ log: { level: "debug" } })],
];

test.each(harmless)("%s is used at once", (_what, changes) => {
  const { config, waiting } = edit(changes);
  expect(waiting).toEqual([]);
  expect(config).toEqual(parse({ mcpServers, junctor, ...changes }));
});

test("keys that are brought in are used at once: without them every caller is let in", () => {
  const next = parse({ mcpServers, junctor: { keys: junctor.keys } });
  expect(toAgreedPart(next, parse({ mcpServers }))).toEqual({ config: next, waiting: [] });
});

describe("issuers of tokens", () => {
  const http = { publicUrl: "https://mcp.example.com/mcp" };
  const corp = { issuer: "https://id.example.com", scopes: ["a"] };
  const other = { issuer: "https://other.example.com" };
  const withCorp = parse({ mcpServers, junctor: { http, issuers: { corp } } });
  const editIssuers = (issuers: object, more: object = {}): readonly [waiting: unknown, names: unknown] => {
    const next = parse({ mcpServers, junctor: { http, issuers, ...more } });
    const { config, waiting } = toAgreedPart(next, withCorp, env);
    return [waiting, [...config.issuers, ...config.keys].map(({ name }) => name)];
  };

  test.each([
    ["a new one", { corp, other }],
    ["another one", { other }],
    ["none", {}],
    ["fewer scopes", { corp: { issuer: corp.issuer } }],
    ["another audience", { corp: { ...corp, audience: "api://x" } }],
    ["other keys", { corp: { ...corp, jwksUri: "https://evil.example.com" } }],
  ])("%s waits", (_, issuers) => {
    expect(editIssuers(issuers)).toEqual([["junctor.issuers"], ["corp"]]);
  });

  test("one that wants more scopes is used at once", () => {
    expect(editIssuers({ corp: { ...corp, scopes: ["a", "b"] } })).toEqual([[], ["corp"]]);
  });

  test("the first key beside them waits: it is another way in", () => {
    expect(editIssuers({ corp }, { keys: { ada: { env: "ADA" } } })).toEqual([["junctor.keys"], ["corp"]]);
  });
});

test("the first key beside client certificates waits: it is another way in", () => {
  const http = { tls: { cert: "cert.pem", key: "key.pem", clientCa: "ca.pem" } };
  const withCa = parse({ mcpServers, junctor: { http } });
  const next = parse({ mcpServers, junctor: { http, keys: { ada: { env: "ADA" } } } });
  expect(toAgreedPart(next, withCa, env)).toEqual({ config: withCa, waiting: ["junctor.keys"] });
});

test("a new server is shown as disabled, with what to do", () => {
  const { config } = edit(ofServers({ x: { command: "sh", env: { A: "${TOKEN}" } } }));
  expect(config.servers.map(({ name }) => name)).toEqual(["files", "web"]);
  expect(config.disabled.map(({ name }) => name)).toEqual(["x"]);
  expect(config.disabled[0]?.reason).toContain("junctor reload");
});

test("a server that was off at the start waits like a new one", () => {
  const off = parse({ mcpServers: { ...mcpServers, web: { ...web, disabled: true } } });
  expect(toAgreedPart(parse({ mcpServers }), off).waiting).toEqual([
    "web (new: https://example.com/mcp (sends A))",
  ]);
});

test("an edit hides nothing of what it would start, and its values are not looked for in the log", () => {
  const script = `${"x".repeat(5000)}; evil`;
  const env = { A: "another-0123456789", NODE_OPTIONS: script };
  const { config, waiting } = edit(
    ofServers({ long: { command: "sh", args: ["-c", script], env, cwd: "/x" } }),
  );
  expect(waiting).toEqual([`long (new: sh -c "${script}" (in /x) (sets A, NODE_OPTIONS))`]);
  expect(config.secrets).toEqual(agreed.secrets);
});

const plain = parse({ mcpServers });
const glob = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1, maxLength: 4 });
const name = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 5 });
const rules = fc.record({ allow: fc.array(glob, { maxLength: 3 }), deny: fc.array(glob, { maxLength: 3 }) });

test("no edit of globs lets a name pass that the agreed globs stop", () => {
  const withRules = (given: {
    readonly allow: readonly string[];
    readonly deny: readonly string[];
  }): GatewayConfig => ({
    ...plain,
    ...given,
  });
  const mayPass = ({ allow, deny }: GatewayConfig): NameTest =>
    createGlobs(allow.length === 0 ? undefined : allow, deny);
  fc.assert(
    fc.property(rules, rules, fc.array(name, { minLength: 20 }), (one, other, names) => {
      const before = withRules(one);
      const next = withRules(other);
      const { config, waiting } = toAgreedPart(next, before);
      for (const each of names) if (mayPass(config)(each)) expect(mayPass(before)(each)).toBe(true);
      if (waiting.length === 0) expect([config.allow, config.deny]).toEqual([next.allow, next.deny]);
    }),
    { numRuns: runs(3000) },
  );
});
