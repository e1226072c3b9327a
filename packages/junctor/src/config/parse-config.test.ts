import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { type GatewayConfig, placementOf } from "./config.ts";
import type { ServerLaunch } from "./entry-rows.ts";
import { parseConfig, parseConfigValue } from "./parse-config.ts";

const key = "0123456789abcdefXYZ";
const env = {
  HOME: "/home/me",
  GITHUB_TOKEN: "ghp_secret_token",
  API_BASE: "https://api.example.com",
  KEY: key,
};
const parse = (text: string): GatewayConfig => parseConfig(text, { file: "mcp.json", env, folder: "/etc/x" });
const fromValue = (value: unknown): GatewayConfig => parseConfigValue(value, { file: "config", env });

const launchesOf = (config: GatewayConfig): { readonly [name: string]: ServerLaunch } =>
  Object.fromEntries(config.servers.map(({ name, launch }) => [name, launch]));
const command = (command: string, args: readonly string[] = [], env = {}): ServerLaunch => ({
  kind: "command",
  command,
  args,
  env,
  cwd: undefined,
});
const http = (url: string, headers = {}, transport: "auto" | "sse" = "auto"): ServerLaunch => ({
  kind: "http",
  url,
  headers,
  transport,
});

describe("a file works unchanged that was written for", () => {
  test("Claude Desktop", () => {
    const config = parse(`{
      "globalShortcut": "Ctrl+Space",
      "mcpServers": {
        "filesystem": {
          "command": "npx",
          "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"]
        },
        "memory": { "command": "docker", "args": ["run", "-i", "--rm", "mcp/memory"], "env": { "DEBUG": "1" } }
      }
    }`);
    expect(config.warnings).toEqual([]);
    expect(launchesOf(config)).toEqual({
      filesystem: command("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"]),
      memory: command("docker", ["run", "-i", "--rm", "mcp/memory"], { DEBUG: "1" }),
    });
  });

  test("Claude Code", () => {
    const config = parse(`{
      "mcpServers": {
        "api": {
          "type": "http",
          "url": "\${API_BASE:-https://other.example.com}/mcp",
          "headers": { "Authorization": "Bearer \${GITHUB_TOKEN}" }
        },
        "asana": { "type": "sse", "url": "https://mcp.asana.com/sse" },
        "db": { "type": "stdio", "command": "npx", "args": ["db", "\${DSN:-sqlite://}"], "env": {}, "timeout": 600000 }
      }
    }`);
    expect(config.warnings).toEqual([]);
    expect(launchesOf(config)).toEqual({
      api: http("https://api.example.com/mcp", { Authorization: "Bearer ghp_secret_token" }),
      asana: http("https://mcp.asana.com/sse", {}, "sse"),
      db: command("npx", ["db", "sqlite://"]),
    });
    expect(config.secrets).toEqual(["Bearer ghp_secret_token"]);
    expect(config.ownSecrets).toEqual({ api: ["ghp_secret_token"] });
  });

  test("Cursor", () => {
    const config = parse(`{
      "mcpServers": {
        "local": {
          "type": "stdio",
          "command": "python",
          "args": ["\${workspaceFolder}/tools/mcp_server.py"],
          "env": { "TOKEN": "\${env:GITHUB_TOKEN}", "HOME_DIR": "\${userHome}" }
        },
        "remote": { "url": "https://example.com/mcp", "auth": { "CLIENT_ID": "x", "scopes": ["read"] } }
      }
    }`);
    expect(config.warnings).toEqual([]);
    expect(launchesOf(config)).toEqual({
      local: command("python", ["/etc/x/tools/mcp_server.py"], {
        TOKEN: "ghp_secret_token",
        HOME_DIR: "/home/me",
      }),
      remote: http("https://example.com/mcp"),
    });
  });

  test("VS Code", () => {
    const config = parse(`{
      // Asked for once
      "inputs": [{ "type": "promptString", "id": "token", "password": true }],
      "servers": {
        "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "gallery": true, "version": "0.13" },
        "playwright": {
          "command": "npx", "args": ["-y", "@microsoft/mcp-server-playwright"],
          "env": { "PORT": 3000, "NOTHING": null },
          "dev": { "watch": "build/**", "debug": { "type": "node" } },
          "sandboxEnabled": true,
        },
      },
    }`);
    expect(config.warnings).toEqual([]);
    expect(launchesOf(config)).toEqual({
      github: http("https://api.githubcopilot.com/mcp/"),
      playwright: command("npx", ["-y", "@microsoft/mcp-server-playwright"], { PORT: "3000" }),
    });
  });

  test("Windsurf, Gemini, Cline and others", () => {
    const config = parse(`{
      "mcpServers": {
        "windsurf": { "serverUrl": "https://a.example/mcp", "disabledTools": ["x"] },
        "gemini": { "httpUrl": "https://b.example/mcp", "timeout": 5000, "trust": false, "includeTools": ["y"] },
        "cline": { "url": "https://c.example/mcp", "type": "streamableHttp", "autoApprove": [], "disabled": false },
        "roo": { "type": "streamable-http", "url": "https://d.example/mcp", "alwaysAllow": ["z"] },
        "old": { "transport": "sse", "url": "https://e.example/sse" },
        "copilot": { "type": "local", "command": "srv", "args": [], "tools": ["*"] },
        "off": { "disabled": true, "command": "\${NOT_SET}", "comand": 1 },
        "off too": { "enabled": false }
      }
    }`);
    expect(config.warnings).toEqual([]);
    expect(launchesOf(config)).toEqual({
      windsurf: http("https://a.example/mcp"),
      gemini: http("https://b.example/mcp"),
      cline: http("https://c.example/mcp"),
      roo: http("https://d.example/mcp"),
      old: http("https://e.example/sse", {}, "sse"),
      copilot: command("srv"),
    });
  });

  test("both kinds of program, in the order of the file", () => {
    const config = parse(`{
      "servers": { "c": { "command": "c" } },
      "mcpServers": { "b": { "command": "b" }, "@scope/my server": { "command": "a" } }
    }`);
    expect(config.servers.map(({ name, prefix }) => [name, prefix])).toEqual([
      ["c", "c"],
      ["b", "b"],
      ["@scope/my server", "scope-my-server"],
    ]);
  });
});

const a = { command: "a" };

test("what is left out is filled in", () => {
  expect(fromValue({ mcpServers: { a } })).toEqual({
    servers: [
      {
        name: "a",
        launch: command("a"),
        start: "eager",
        sharing: "shared",
        era: "modern",
        instances: 1,
        placement: undefined,
        workspace: "auto",
        prefix: "a",
        startTimeoutMs: 30_000,
        maxStartMs: 600_000,
        timeoutMs: 300_000,
        maxTotalMs: 1_800_000,
        answerWithinMs: 30_000,
        maxConnections: 8,
        idleStopMs: undefined,
        allow: [],
        deny: [],
        tools: {},
        onlyTools: undefined,
        withoutTools: [],
        group: undefined,
        trustHints: false,
        maxResultTokens: undefined,
        audit: {},
        tasks: "hold",
        record: false,
        extensions: {},
        oauth: undefined,
        credentials: "shared",
      },
    ],
    disabled: [],
    separator: "__",
    keys: [],
    profiles: [],
    issuers: [],
    rules: [],
    allow: [],
    deny: [],
    middleware: [],
    audit: undefined,
    limits: {},
    perCaller: {},
    idempotency: { keepMs: 3_600_000, maxKeys: 65_536, maxBytes: 67_108_864, file: undefined },
    redact: [],
    drafts: [],
    http: { allowedHosts: [], allowedOrigins: [], corsOrigins: [] },
    admin: undefined,
    traces: undefined,
    accessLog: undefined,
    log: { level: "info" },
    daemon: { idleMs: 900_000 },
    firstListMs: 20_000,
    maxStarts: undefined,
    store: undefined,
    trunk: undefined,
    drainMs: 600_000,
    history: true,
    remember: true,
    secrets: [],
    ownSecrets: {},
    warnings: [],
  });
});

test("everything that may be said is taken", () => {
  const server = {
    start: "lazy",
    sharing: "perSession",
    era: "modern",
    instances: 1,
    placement: "each",
    workspace: "auto",
    prefix: false,
    startTimeoutMs: 1,
    maxStartMs: 9,
    timeoutMs: 2,
    maxTotalMs: 3,
    answerWithinMs: 30_000,
    maxConnections: 4,
    idleStopMs: 5,
    allow: ["read_*"],
    deny: ["read_x"],
    tools: { read_y: { name: "y", description: "Reads y.", hide: false }, constructor: { hide: true } },
    group: "All of a.",
    trustHints: true,
    maxResultTokens: { read_y: 20_000, "*": 500 },
    audit: { arguments: false },
    tasks: "relay",
    record: true,
    extensions: { "com.example/maps": { methods: ["com.example/*"], resultTypes: ["com.example/chart"] } },
    oauth: {
      clientId: "id",
      clientSecret: "shown to one",
      issuer: "https://id.example.com",
      scopes: ["read"],
      resource: false,
      grant: "client_credentials",
    },
    credentials: "shared",
  };
  const junctor = {
    separator: ".",
    allow: ["a.*"],
    deny: ["a.z"],
    middleware: ["./m.mjs"],
    audit: { file: "audit.jsonl", maxBytes: 2048, keep: 0, keepDays: 7, onFailure: "open", arguments: true },
    limits: { callsPerMinute: 60, strict: true, tools: { "a.*": { callTimeoutMs: 1000, strict: false } } },
    perCaller: {
      calls: 1,
      streams: 2,
      sessions: 3,
      subscriptions: 4,
      completionsPerMinute: 7,
      parked: 5,
      unreadBytes: 4096,
    },
    drafts: ["groups"],
    idempotency: { keepMs: 1000, maxKeys: 4, maxBytes: 1024, file: "calls.once" },
    redact: ["email", "/sk-\\w+/gi"],
    http: {
      host: "::1",
      port: 0,
      allowedHosts: ["mcp.example.com:8443", "[::1]:80"],
      allowedOrigins: ["vscode-webview://x"],
      corsOrigins: ["https://app.example.com"],
      publicUrl: "http://127.0.0.1:7780/mcp",
    },
    admin: { host: "::1", port: 0, allowedHosts: ["admin.example.com"] },
    traces: { endpoint: "http://127.0.0.1:4318/v1/traces", headers: { a: "b" }, percent: 1, service: "edge" },
    accessLog: "stderr",
    log: { level: "trace" },
    daemon: { idleMs: 60_000 },
    firstListMs: 0,
    maxStarts: 64,
    lock: { mode: "warn", file: "pins.lock", skip: ["resources"] },
    store: "rediss://:guess-me-not@cache.example.com:6380/1",
    trunk: { host: "0.0.0.0", port: 7790, advertise: "10.0.0.5" },
    drainMs: 1000,
  };
  const keys = {
    al: { env: "KEY", allow: ["a.*"] },
    bo: { sha256: "AB".repeat(32), deny: ["*"] },
  };
  const sha256 = createHash("sha256").update(key).digest("hex");
  const config = fromValue({
    mcpServers: { a },
    junctor: { ...junctor, keys, history: false, remember: false, servers: { a: server } },
  });
  expect(config).toEqual({
    ...junctor,
    history: false,
    remember: false,
    servers: [{ name: "a", launch: command("a"), onlyTools: undefined, withoutTools: [], ...server }],
    disabled: [],
    profiles: [],
    keys: [
      { name: "al", sha256, allow: ["a.*"], deny: [] },
      { name: "bo", sha256: "ab".repeat(32), allow: [], deny: ["*"] },
    ],
    issuers: [],
    rules: [],
    ownSecrets: {},
    secrets: [junctor.store, key, "guess-me-not", "shown to one"].toSorted((a, b) => b.length - a.length),
    warnings: [],
  });
});

test("a server runs once in all replicas when it is a process that callers share, else in each", () => {
  const place = (entry: object, settings: object = {}, defaults: object = {}): readonly string[] =>
    fromValue({ mcpServers: { a: entry }, junctor: { servers: { a: settings }, defaults } }).servers.map(
      placementOf,
    );
  const http = { url: "https://example.com/mcp" };
  expect(place(a)).toEqual(["single"]);
  expect(place(a, { sharing: "exclusive" })).toEqual(["each"]);
  expect(place(a, { sharing: "perSession" })).toEqual(["each"]);
  expect(place(a, { sharing: "perSession" }, { placement: "single" })).toEqual(["each"]);
  expect(place(a, { placement: "each" })).toEqual(["each"]);
  expect(place(http)).toEqual(["each"]);
  expect(place(http, { placement: "single" })).toEqual(["single"]);
});

test("the URL of a store may come from the environment, and is not shown", () => {
  const config = parseConfigValue(
    { mcpServers: {}, junctor: { store: "${STORE}" } },
    { file: "f", env: { STORE: "redis://ada:lovelace@cache" } },
  );
  expect(config.store).toBe("redis://ada:lovelace@cache");
  expect(config.secrets).toEqual(["redis://ada:lovelace@cache", "lovelace"]);
});

test("a lock is beside the config unless the config says where", () => {
  const read = (lock: unknown): unknown =>
    parseConfigValue({ mcpServers: {}, junctor: { lock } }, { file: "f", env: {}, folder: "/etc/mcp" }).lock;
  expect(read("enforce")).toEqual({ mode: "enforce", file: "/etc/mcp/junctor.lock", skip: [] });
  expect(read({ mode: "warn", file: "a/b.lock" })).toMatchObject({ file: "/etc/mcp/a/b.lock" });
  expect([read("off"), read(undefined), read({ mode: "off" })]).toEqual([undefined, undefined, undefined]);
});

test("a group is not used without the draft", () => {
  const junctor = { servers: { a: { group: "All of a." } }, profiles: { p: { group: "All." } } };
  const message = 'is not used: write "junctor": { "drafts": ["groups"] } too';
  expect(fromValue({ mcpServers: { a }, junctor }).warnings).toEqual([
    { path: "junctor.servers.a.group", message },
    { path: "junctor.profiles.p.group", message },
  ]);
  const drafts = ["groups"];
  expect(fromValue({ mcpServers: { a }, junctor: { ...junctor, drafts } }).warnings).toEqual([]);
});

test("what a server's audit wants is not used while there is no audit", () => {
  const servers = { a: { audit: { arguments: true } } };
  const { warnings } = fromValue({ mcpServers: { a }, junctor: { servers } });
  expect(warnings).toEqual([
    {
      path: "junctor.servers.a.audit",
      message: 'is not used while there is no audit: write "junctor": { "audit": "audit.jsonl" }',
    },
  ]);
  expect(fromValue({ mcpServers: { a }, junctor: { servers, audit: "a.jsonl" } }).warnings).toEqual([]);
});

test("variables may stand in the junctor section, for numbers too", () => {
  const section = { audit: "${HOME}/audit.jsonl", http: { port: "${PORT:-7780}" } };
  const config = parse(JSON.stringify({ mcpServers: {}, junctor: section }));
  expect(config.audit).toEqual({ file: "/home/me/audit.jsonl" });
  expect(config.http.port).toBe(7780);
});

test("secrets are found in headers, URLs, variables and arguments, and ordinary values are not", () => {
  const config = fromValue({
    mcpServers: {
      one: {
        url: "https://a.example/mcp/9f8e7d6c5b4a?apiKey=key-in-url&v=2&team=inventory",
        headers: { A: "Basic dXNlcjpwdw==", B: "short", Accept: "application/json" },
      },
      two: {
        command: "two",
        args: ["${GITHUB_TOKEN}", "--password", "open-sesame", "--secret=Z9-y8-X7-w6-V5", "--port", "123456"],
        env: { MYSQL_HOST: "127.0.0.1", MYSQL_PASSWORD: "mysql-root", LONG: "a long value", FLAG: "true" },
      },
    },
  });
  expect(config.secrets).toEqual(["Basic dXNlcjpwdw==", "9f8e7d6c5b4a", "dXNlcjpwdw=="]);
  expect(config.ownSecrets).toEqual({
    one: ["key-in-url"],
    two: ["ghp_secret_token", "Z9-y8-X7-w6-V5", "open-sesame", "mysql-root"],
  });
});

test("what is odd but not wrong is a warning", () => {
  const config = fromValue({
    mcpServers: {
      a: { command: "npx -y server", colour: 1, headers: {} },
      b: { url: "http://b", env: {} },
    },
    junctor: { servers: { a: { maxConnections: 2, timeoutMs: 4_000_000 } } },
  });
  expect(config.warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    "mcpServers.a.colour: is not known here and is not used: remove it if it is yours",
    "mcpServers.a.headers: is not used: it is for servers with a url",
    'mcpServers.a.command: has spaces in it: write arguments into args, such as "args": ["--port", "1"]',
    "mcpServers.b.env: is not used: it is for servers with a command",
    'junctor.servers.a.maxConnections: is not used while "sharing" is "shared", which has one connection',
    "junctor.servers.a.timeoutMs: is never reached: maxTotalMs is 1800000, which is less",
  ]);
});

test("settings of a server that is switched off are not a mistake", () => {
  const off = { ...a, disabled: true };
  expect(fromValue({ mcpServers: { off }, junctor: { servers: { off: {} } } }).servers).toEqual([]);
});

test("a prefix of its own tells servers apart whose names do not", () => {
  const config = fromValue({
    mcpServers: { "a b": a, "a-b": a, "a/b": a },
    junctor: { servers: { "a b": { prefix: "one" }, "a/b": { prefix: false } } },
  });
  expect(config.servers.map(({ prefix }) => prefix)).toEqual(["one", "a-b", false]);
});

test("everything that is wrong is said at once, a line for each, and no value is shown", () => {
  const text = `{
    "mcpServers": {
      "one": { "comand": "x" },
      "two": { "url": "\${GITHUB_TOKEN}", "headers": { "A": "\${NOT_SET}" } },
      "two": { "url": "\${GITHUB_TOKEN}", "headers": { "A": "\${NOT_SET}", "B": "\${NOT_SET}" } },
    },
    "junctor": { "servers": { "tow": {} }, "audit": "\${NOT_SET}/a", "log": { "level": "\${GITHUB_TOKEN}" } },
  }`;
  let error: unknown;
  try {
    parse(text);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  expect(error).toMatchObject({ name: "ConfigError", code: "config.invalid", file: "mcp.json" });
  expect((error as ConfigError).issues).toHaveLength(6);
  expect((error as ConfigError).message).toBe(
    [
      "mcp.json:5:7: mcpServers.two: is written twice, in lines 4 and 5: keep one of them",
      "mcp.json:3:16: mcpServers.one.comand: is not known here: did you mean command?",
      'mcp.json:5:16: mcpServers.two.url: must begin with http:// or https://: write "https://example.com/mcp"',
      "mcp.json:7:44: junctor.audit: NOT_SET is not set: set it, or write ${NOT_SET:-default}",
      'mcp.json:7:78: junctor.log.level: must be one of "trace", "debug", "info", "warn", "error", "silent"',
      "mcp.json:7:31: junctor.servers.tow: is not the name of a server: did you mean two?",
    ].join("\n"),
  );
});

test("one mistake in a server does not hide another", () => {
  const mcpServers = {
    one: { comand: "x", args: "y", env: [] },
    two: { url: "http://a", command: "b", args: 1, headers: 2 },
    three: { command: "${", args: ["${", "${NO}", "${NO}", "${1} ${2}"] },
  };
  expect(() => fromValue({ mcpServers })).toThrow(
    expect.objectContaining({
      issues: [
        "mcpServers.one.comand",
        "mcpServers.one.args",
        "mcpServers.one.env",
        "mcpServers.two",
        "mcpServers.two.args",
        "mcpServers.two.headers",
        "mcpServers.three.command",
        "mcpServers.three.args[0]",
        "mcpServers.three.args[3]",
        "mcpServers.three.args[3]",
      ].map((path) => ({ path, message: expect.any(String) as string })),
    }),
  );
});
