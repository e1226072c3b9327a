import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { getLanguageService, TextDocument } from "vscode-json-languageservice";
import { createFindings } from "../../packages/junctor/src/config/findings.ts";
import { parseJsonc } from "../../packages/junctor/src/config/jsonc.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { createConfigSchema } from "../../packages/junctor/src/config/schema.ts";
import { serverRows } from "../../packages/junctor/src/config/server-rows.ts";
import { root } from "../source-graph.ts";
import { runs } from "../support/runs.ts";

const schema = createConfigSchema();
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false, strictTypes: false });
for (const keyword of ["markdownDescription", "deprecationMessage", "allowComments", "allowTrailingCommas"])
  ajv.addKeyword(keyword);
const validate = ajv.compile(schema);

const isRefusedBySchema = (config: unknown): boolean => !validate(config);

const key = "0123456789abcdefXYZ";
const env = { KEY: key, SECRET: "gims-do-not-show-me", TOKEN: "abc" };

function isRefusedByParser(config: unknown): boolean {
  try {
    parseConfigValue(config, { file: "f", env, folder: "/etc/x", readText: () => "" });
    return false;
  } catch {
    return true;
  }
}

describe("every config of the project validates", () => {
  const pages = ["README.md", ...filesBelow("docs", ".md"), ...filesBelow("examples", ".md")];
  const ofPages = pages.flatMap((page) => {
    const blocks = readFileSync(join(root, page), "utf8").matchAll(/^```jsonc?\n([^]*?)^```/gm);
    return [...blocks].flatMap(([, text = ""], index) => {
      const value = tryParse(text);
      return isConfig(value) ? [[`${page}, block ${index + 1}`, value] as const] : [];
    });
  });
  const files = [...filesBelow("deploy", ".json"), "proof/field/servers.json"].flatMap((file) => {
    const value = tryParse(readFileSync(join(root, file), "utf8"));
    return isConfig(value) ? [[file, value] as const] : [];
  });

  test("there are some", () => expect(ofPages.length + files.length).toBeGreaterThan(20));

  test.each([...ofPages, ...files])("%s", (_, config) => {
    validate(config);
    expect(validate.errors ?? []).toEqual([]);
  });
});

/** One of everything, with the values that a person would write. */
const full = {
  mcpServers: {
    a: { command: "node", args: ["a.mjs"], env: { A: "${TOKEN}", B: 1 }, cwd: ".", type: "stdio" },
    b: { url: "https://example.com/mcp", headers: { "X-A": "${SECRET}" }, disabledTools: ["x"] },
  },
  junctor: {
    $schema: "./junctor.schema.json",
    servers: {
      a: {
        start: "lazy",
        sharing: "perSession",
        instances: 1,
        prefix: "aa",
        timeoutMs: 1000,
        maxConnections: 4,
        idleStopMs: 1000,
        allow: ["x*"],
        tools: { x: { name: "y", hide: false } },
        maxResultTokens: { "*": 1000 },
        audit: { arguments: true },
        sandbox: { network: true, read: ["./x"], memoryMb: 64 },
        extensions: { "com.example/x": { methods: ["com.example/*"] } },
      },
      b: { oauth: { clientId: "x", clientSecret: "${SECRET}", scopes: ["a"] }, credentials: "shared" },
    },
    defaults: { startTimeoutMs: 1000, deny: ["z"] },
    separator: "__",
    keys: { ada: { env: "KEY", groups: ["g"], profiles: ["p"] } },
    issuers: {
      corp: { issuer: "https://id.example.com", scopes: ["a"], audience: ["x"], implies: { a: ["b"] } },
    },
    rules: [
      { deny: ["x"], when: "true" },
      { scope: "a", tools: ["*"] },
    ],
    profiles: { p: { allow: ["a*"], tools: "search", budget: 1, pin: ["x"], rename: { a: "b" } } },
    middleware: ["./a.mjs"],
    audit: { file: "a.jsonl", keep: 1, onFailure: "open" },
    limits: { callsPerMinute: 1, strict: true, tools: { "*": { callTimeoutMs: 1 } } },
    perCaller: { calls: 1, unreadBytes: 2048 },
    idempotency: { keepMs: 1000, file: "x" },
    redact: ["email"],
    http: {
      port: 1,
      publicUrl: "https://a.example.com/mcp",
      tls: { cert: "a", key: "b" },
      allowedHosts: ["a"],
    },
    admin: { port: 1, key: { env: "KEY" } },
    traces: { endpoint: "http://a", headers: { a: "b" }, percent: 1 },
    accessLog: { file: "x", keep: 1 },
    log: { level: "info" },
    daemon: { idleMs: 1 },
    firstListMs: 1,
    maxStarts: 1,
    remember: true,
    lock: { mode: "warn", skip: ["prompts"] },
    store: "redis://a",
    trunk: { host: "10.0.0.1", port: 1 },
    drainMs: 1,
  },
};

test("a config with one of everything is taken by both", () => {
  validate(full);
  expect(validate.errors ?? []).toEqual([]);
  expect(() => parseConfigValue(full, { file: "f", env, folder: "/etc/x" })).not.toThrow();
});

/** The places of a value, each as the keys that lead there. */
function placesOf(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => placesOf(inner, [...path, name]))];
}

function replaced(value: unknown, [name, ...rest]: readonly string[], by: unknown): unknown {
  if (name === undefined) return by;
  const inner = replaced((value as { readonly [key: string]: unknown })[name], rest, by);
  return Array.isArray(value)
    ? value.map((each: unknown, index) => (String(index) === name ? inner : each))
    : { ...(value as object), [name]: inner };
}

const places = placesOf(full).filter((path) => path.length > 1);

test("a wrong value at any of its places is refused by the parser, and by the schema nearly always", () => {
  const wrong = places.flatMap((path) => {
    const config = replaced(full, path, { "?": [[]] });
    return isRefusedByParser(config) ? [config] : [];
  });
  expect(wrong.length).toBeGreaterThan(60);
  const seen = wrong.filter(isRefusedBySchema);
  expect(seen.length / wrong.length).toBeGreaterThan(0.9);
});

test("a misspelt or unknown setting is refused by both, wherever it stands", () => {
  const objects = places.filter((path) => path[0] === "junctor" && path.length <= 4);
  const refused = objects.flatMap((path) => {
    const config = replaced(full, [...path.slice(0, -1), `${path.at(-1)}x`], 1);
    return isRefusedBySchema(config) ? [isRefusedByParser(config)] : [];
  });
  expect(refused.length).toBeGreaterThan(60);
  expect(new Set(refused)).toEqual(new Set([true]));
});

test("what the schema refuses the parser refuses too", () => {
  const values = fc.oneof(
    fc.constantFrom<unknown>(
      "",
      " ",
      "lazy",
      "${TOKEN}",
      "*",
      "http://a",
      0,
      1,
      -1,
      1.5,
      1e12,
      true,
      false,
      null,
    ),
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom<unknown>(
      {},
      [],
      [null],
      [""],
      ["a"],
      { a: {} },
      { a: null },
      { file: "x" },
      { mode: "off" },
    ),
  );
  fc.assert(
    fc.property(fc.constantFrom(...places), values, fc.option(fc.string()), (path, value, extra) => {
      const at = extra === null ? path : [...path.slice(0, -1), extra];
      const config = replaced(full, at, value);
      if (isRefusedBySchema(config))
        expect([at, value, isRefusedByParser(config)]).toEqual([at, value, true]);
    }),
    { numRuns: runs(3000) },
  );
});

describe("an editor with the schema", () => {
  const service = getLanguageService({
    // What `"$schema"` of a file names.
    schemaRequestService: () => Promise.resolve(JSON.stringify(schema)),
  });
  service.configure({ schemas: [{ uri: "junctor://schema", fileMatch: ["*"], schema }] });
  const open = (text: string) => {
    const at = text.indexOf("|");
    const document = TextDocument.create("file:///mcp.json", "jsonc", 1, text.replace("|", ""));
    return { document, parsed: service.parseJSONDocument(document), position: document.positionAt(at) };
  };

  test("offers every setting of a server, each with its sentence", async () => {
    const { document, parsed, position } = open('{ "junctor": { "servers": { "files": { | } } } }');
    const { items = [] } = (await service.doComplete(document, position, parsed)) ?? {};
    expect(items.map(({ label }) => label).toSorted()).toEqual(Object.keys(serverRows).toSorted());
    for (const { documentation } of items) expect(JSON.stringify(documentation).length).toBeGreaterThan(20);
  });

  test.each(["mcpServers", "servers"])("offers the keys of an entry of %s", async (section) => {
    const { document, parsed, position } = open(`{ "${section}": { "files": { | } } }`);
    const { items = [] } = (await service.doComplete(document, position, parsed)) ?? {};
    expect(items.map(({ label }) => label)).toEqual(
      expect.arrayContaining(["command", "args", "url", "envFile"]),
    );
  });

  test("offers the words of a choice", async () => {
    const { document, parsed, position } = open('{ "junctor": { "servers": { "files": { "start": | } } } }');
    const { items = [] } = (await service.doComplete(document, position, parsed)) ?? {};
    expect(items.map(({ label }) => label)).toEqual(expect.arrayContaining(['"eager"', '"lazy"']));
  });

  test.each([
    ['{ "junctor": { "servers": { "files": { "strat": "lazy" } } } }', "strat"],
    ['{ "junctor": { "servers": { "files": { "start": "lasy" } } } }', "lasy"],
    ['{ "junctor": { "htpp": {} } }', "htpp"],
    ['{ "junctor": { "http": { "port": 70000 } } }', "70000"],
    ['{ "junctor": { "http": { "tls": { "cert": "a" } } } }', "tls"],
    ['{ "mcpServers": { "a": { "command": 1 } } }', "1"],
  ])("marks what is wrong in %s", async (text, part) => {
    const { document, parsed } = open(text);
    const marks = await service.doValidation(document, parsed, { schemaValidation: "error" });
    expect(marks.map(({ range }) => document.getText(range)).join()).toContain(part);
  });

  test("marks nothing in a config that is right, with comments and variables", async () => {
    const text = `{
      "$schema": "./junctor.schema.json", // ours
      "mcpServers": { "a": { "command": "a", "autoApprove": ["x"] }, "off": { "disabled": true, "args": 1 } },
      "junctor": { "servers": { "a": { "start": "\${START}", "timeoutMs": "\${MS:-5}" } }, },
    }`;
    const { document, parsed } = open(text);
    expect(await service.doValidation(document, parsed, {})).toEqual([]);
  });
});

function filesBelow(folder: string, end: string): readonly string[] {
  const all = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return all.filter((file) => file.endsWith(end)).map((file) => join(folder, file));
}

function tryParse(text: string): unknown {
  try {
    return parseJsonc(text, createFindings({ file: "f", env: {} }));
  } catch {
    return undefined;
  }
}

function isConfig(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    ("junctor" in value || "mcpServers" in value) &&
    !("jsonrpc" in value)
  );
}
