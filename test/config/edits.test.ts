// For every setting, on a gateway that runs: an edit does what the row says, in both directions.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createReload, type Reload } from "../../packages/junctor/src/cli/serve/follow-config.ts";
import { parseConfigFile } from "../../packages/junctor/src/config/config-file.ts";
import type { GatewayConfig } from "../../packages/junctor/src/config/config.ts";
import { gatewayRows } from "../../packages/junctor/src/config/gateway-rows.ts";
import type { Rows } from "../../packages/junctor/src/config/rows.ts";
import { serverRows } from "../../packages/junctor/src/config/server-rows.ts";
import { type RunningGateway, startGateway } from "../../packages/junctor/src/gateway/index.ts";
import { connectForTest } from "../../packages/junctor/src/testing/index.ts";
import { isAlive } from "../support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-edits-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "mcp.json");
const pids = join(folder, "pids");

/** A legacy server in one file, without anything to import: it starts in no time. The tool `wait` answers after so many milliseconds. */
const program = `
require("node:fs").appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n");
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const answers = {
    initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "wait", inputSchema: { type: "object" } }] }),
    ping: () => ({}),
  };
  if (id === undefined) return;
  if (method === "tools/call") {
    setTimeout(() => say({ id, result: { content: [{ type: "text", text: "done" }] } }), params.arguments?.ms ?? 0);
  } else if (method in answers) say({ id, result: answers[method]() });
  else say({ id, error: { code: -32601, message: "unknown" } });
}).on("close", () => process.exit());
`;
const script = join(folder, "server.cjs");
writeFileSync(script, program);

type Fields = { readonly [key: string]: unknown };

/** For each setting two values. Where the row narrows, the second one takes something away. `with` is what else it needs. */
const ofServer: {
  readonly [key: string]: { readonly values: readonly [unknown, unknown]; readonly with?: Fields };
} = {
  start: { values: ["eager", "lazy"] },
  sharing: { values: ["shared", "perSession"] },
  era: { values: ["modern", "legacy"] },
  instances: { values: [2, 1] },
  placement: { values: ["single", "each"] },
  workspace: { values: ["auto", "each"] },
  prefix: { values: ["one", "other"] },
  startTimeoutMs: { values: [30_000, 40_000] },
  maxStartMs: { values: [600_000, 500_000] },
  timeoutMs: { values: [300_000, 200_000] },
  maxTotalMs: { values: [1_800_000, 900_000] },
  answerWithinMs: { values: [30_000, 20_000] },
  maxConnections: { values: [8, 4], with: { sharing: "perSession" } },
  idleStopMs: { values: [600_000, 500_000], with: { start: "lazy" } },
  allow: { values: [["w*", "x*"], ["w*"]] },
  deny: { values: [["x"], ["x", "y"]] },
  tools: { values: [{}, { x: { hide: true } }] },
  group: { values: ["About s.", "All about s."] },
  trustHints: { values: [true, false] },
  maxResultTokens: { values: [1000, 2000] },
  audit: { values: [{ arguments: false }, { arguments: true }] },
  record: { values: [true, false] },
  sandbox: { values: [false, { network: true }] },
  tasks: { values: ["hold", "relay"] },
  extensions: { values: [{}, { "com.example/x": { methods: [], resultTypes: [] } }] },
  oauth: { values: [{ clientId: "a" }, { clientId: "b" }] },
  credentials: { values: ["shared", "perCaller"] },
};

const key = (digit: string): Fields => ({ sha256: digit.repeat(64) });
const ofGateway: { readonly [key: string]: readonly [unknown, unknown] } = {
  separator: ["__", "-"],
  keys: [{ a: key("1"), b: key("2") }, { a: key("1") }],
  issuers: [
    { one: { issuer: "https://one.example.com" }, two: { issuer: "https://two.example.com" } },
    { one: { issuer: "https://one.example.com" } },
  ],
  rules: [[], [{ deny: ["x"] }]],
  profiles: [{ p: { allow: ["a*", "b*"] } }, { p: { allow: ["a*"] } }],
  allow: [["w*", "o*", "s*"], ["s*"]],
  deny: [["x"], ["x", "y"]],
  middleware: [[], ["./middleware.mjs"]],
  audit: [undefined, "audit.jsonl"],
  limits: [{ callsPerMinute: 1000 }, { callsPerMinute: 500 }],
  perCaller: [{ calls: 100 }, { calls: 50 }],
  idempotency: [{}, { keepMs: 2000 }],
  redact: [[], ["email"]],
  drafts: [[], ["groups"]],
  http: [{ port: 7000 }, { port: 7001 }],
  admin: [{ port: 7002 }, { port: 7003 }],
  traces: [undefined, { percent: 50 }],
  accessLog: [undefined, "access.jsonl"],
  log: [{ level: "info" }, { level: "debug" }],
  daemon: [{ idleMs: 1000 }, { idleMs: 2000 }],
  firstListMs: [20_000, 10_000],
  maxStarts: [4, 8],
  history: [true, false],
  remember: [true, false],
  lock: [undefined, "warn"],
  store: ["redis://a.example.com", "redis://b.example.com"],
  trunk: [
    { host: "10.0.0.1", port: 1 },
    { host: "10.0.0.1", port: 2 },
  ],
  drainMs: [1000, 2000],
};
writeFileSync(join(folder, "middleware.mjs"), "export default { beforeCall() {} };");

let gateway: RunningGateway;
let reload: Reload;
let applied: GatewayConfig;
let atStart: GatewayConfig;
const warnings: string[] = [];
const note = (_: object, text: string): void => void warnings.push(text);
const log = { debug: () => {}, info: () => {}, warn: note, error: note, level: "info" };

const base = (server: Fields = {}, junctor: Fields = {}): Fields => ({
  mcpServers: { s: { command: process.execPath, args: [script] } },
  junctor: { http: { publicUrl: "https://a.example.com/mcp" }, ...junctor, servers: { s: server } },
});
const save = (config: Fields): void => writeFileSync(file, JSON.stringify(config));
const started = (): readonly number[] => readFileSync(pids, "utf8").trim().split("\n").map(Number);
const server = () => applied.servers.find(({ name }) => name === "s");

/** Takes a config whole, and waits until its server runs. */
async function agreeOn(config: Fields): Promise<void> {
  save(config);
  expect(await reload.agree()).toBeUndefined();
  const isStarting = (): boolean => gateway.status().some(({ status }) => status === "starting");
  await expect.poll(isStarting).toBe(false);
  warnings.length = 0;
}

beforeAll(async () => {
  save(base());
  applied = parseConfigFile(file, readFileSync(file, "utf8"), {});
  atStart = applied;
  gateway = await startGateway(applied, { log, file, unnamed: "trusted" });
  await gateway.ready;
  const apply: RunningGateway["apply"] = async (config, keepsModules) => {
    await gateway.apply(config, keepsModules);
    applied = config;
  };
  const parse = (text: string): GatewayConfig => parseConfigFile(file, text, {});
  reload = createReload({
    file,
    config: applied,
    isTrusted: true,
    choice: "safe",
    gateway: { apply },
    host: "127.0.0.1",
    log,
    parse,
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test("every setting is tried", () => {
  expect(Object.keys(ofServer)).toEqual(Object.keys(serverRows));
  expect(Object.keys(ofGateway)).toEqual(Object.keys(gatewayRows));
});

describe.each(Object.entries(serverRows as Rows))("a server's %s", (name, { consent, effect }) => {
  const { values, with: more } = ofServer[name]!;
  const configOf = (value: unknown): Fields => {
    const config = base({ ...more, [name]: value }) as { readonly mcpServers: Fields };
    if (name !== "credentials") return config;
    return { ...config, mcpServers: { s: { url: "http://127.0.0.1:9/mcp" } } };
  };

  test.each([
    ["there", values[0], values[1], true],
    ["and back", values[1], values[0], false],
  ] as const)(
    `is treated as ${typeof consent === "string" ? consent : "narrowing"}, ${effect}: %s`,
    async (_, from, to, isLess) => {
      await agreeOn(configOf(from));
      const isOff = (): boolean => server() === undefined;
      const wasOff = isOff();
      const before = server()?.[name as "start"];
      const pid = started().at(-1)!;
      const starts = started().length;
      save(configOf(to));
      await reload.look();
      const mayBeTaken = consent === "free" || (typeof consent !== "string" && isLess);
      const { waiting } = reload.inspect();
      if (mayBeTaken) expect(waiting).toEqual([]);
      else if (!wasOff) {
        expect(waiting).toEqual([expect.stringContaining(name === "sandbox" ? "s" : `s.${name}`)]);
        expect(server()?.[name as "start"]).toEqual(before);
        expect(started()).toHaveLength(starts);
      }
      expect(await reload.agree()).toBeUndefined();
      if (name === "credentials" || wasOff || isOff()) return;
      expect(server()?.[name as "start"]).toEqual(
        parseConfigFile(file, JSON.stringify(configOf(to)), {}).servers[0]?.[name as "start"],
      );
      if (effect === "server") await expect.poll(() => started().length > starts || !isAlive(pid)).toBe(true);
      else expect([started().length, isAlive(pid)]).toEqual([starts, true]);
      // Nothing of a server needs another gateway.
      expect(warnings.filter((text) => text.includes("next start"))).toEqual([]);
    },
  );
});

describe.each(Object.entries(gatewayRows as Rows))("the gateway's %s", (name, { consent, effect }) => {
  const [first, second] = ofGateway[name]!;
  const configOf = (value: unknown): Fields =>
    base({}, name === "http" ? { http: value } : value === undefined ? {} : { [name]: value });

  test.each([
    ["there", first, second, name !== "log"],
    ["and back", second, first, name === "log"],
  ] as const)(
    `is treated as ${typeof consent === "string" ? consent : "narrowing"}, ${effect}: %s`,
    async (_, from, to, isLess) => {
      await agreeOn(base({}, name === "keys" ? { keys: { z: key("9") } } : {}));
      await agreeOn(configOf(from));
      const starts = started().length;
      save(configOf(to));
      await reload.look();
      // More in the log hides nothing; less of it may.
      const narrows = name === "log" ? to === second : isLess;
      const mayBeTaken = consent === "free" || (typeof consent !== "string" && narrows);
      const { waiting } = reload.inspect();
      expect(waiting).toEqual(mayBeTaken ? [] : [`junctor.${name}`]);
      if (!mayBeTaken && consent === "asks")
        expect(applied[name as "allow"]).toEqual(
          parseConfigFile(file, JSON.stringify(configOf(from)), {})[name as "allow"],
        );
      if (waiting.length > 0) expect(await reload.agree()).toBeUndefined();
      expect(applied[name as "allow"]).toEqual(
        parseConfigFile(file, JSON.stringify(configOf(to)), {})[name as "allow"],
      );
      const named = warnings.filter(
        (text) => text.includes(`junctor.${name}`) && text.includes("next start"),
      );
      // It is named where it differs from what the gateway was started with.
      const differs = !isDeepStrictEqual(applied[name as "allow"], atStart[name as "allow"]);
      if (effect === "gateway" && differs) expect(named).not.toEqual([]);
      else expect(named).toEqual([]);
      expect(started()).toHaveLength(starts);
    },
  );
});

describe("what counts at once is read by the code that runs", () => {
  const callFor = async (ms: number): Promise<string> => {
    await using client = await connectForTest(gateway.server);
    const result = await client.callTool("s__wait", { ms }).catch((error: unknown) => String(error));
    return JSON.stringify(result);
  };

  test.each(["timeoutMs", "maxTotalMs"])("%s", async (name) => {
    await agreeOn(base());
    expect(await callFor(300)).toContain("done");
    const [pid] = started().slice(-1);
    save(base({ [name]: 50 }));
    await reload.look();
    expect(await callFor(2000)).toMatch(/50 ms/);
    save(base({ [name]: 60_000 }));
    await reload.look();
    expect(await callFor(300)).toContain("done");
    expect(started().at(-1)).toBe(pid);
  });

  test("start, and idleStopMs", async () => {
    await agreeOn({ mcpServers: {} });
    await agreeOn(base({ start: "lazy" }));
    const starts = started().length;
    save(base({ start: "eager" }));
    await reload.look();
    await expect.poll(() => started().length).toBe(starts + 1);
    const pid = started().at(-1)!;
    await expect.poll(() => gateway.status().map(({ status }) => status)).toEqual(["up"]);
    save(base({ start: "lazy", idleStopMs: 50 }));
    await reload.look();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("log.level, and perCaller", async () => {
    await agreeOn(base());
    save(base({}, { log: { level: "debug" }, perCaller: { parked: 3, calls: 2 } }));
    await reload.look();
    expect([log.level, gateway.perCaller.parked, gateway.perCaller.calls]).toEqual(["debug", 3, 2]);
    await agreeOn(base());
    expect([log.level, gateway.perCaller.parked, gateway.perCaller.calls]).toEqual([
      "info",
      undefined,
      undefined,
    ]);
  });
});
