// The wall clock is set by a day, forward and back, while calls are underway: nothing is delayed and nothing expires.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { type ChangingServers, makeChangingServers, toTool } from "../support/changing-server.ts";
import { type CliGateway, startCliGateway } from "./support/cli-gateway.ts";

const preload = new URL("../fixtures/jumping-date.mjs", import.meta.url).href;
const asking = fileURLToPath(new URL("../fixtures/bridge-upstream.mjs", import.meta.url));
const plain = { inputSchema: { type: "object" } };

let servers: ChangingServers;
let gateway: CliGateway;
let url: URL;

beforeAll(async () => {
  servers = makeChangingServers();
  const limited = [0, 1, 2, 3].map((round) => `limited${round}`);
  servers.offer("notes", {
    tools: [toTool("echo"), ...["wait", "exit", ...limited].map((name) => ({ name, ...plain }))],
  });
  const tools = Object.fromEntries(limited.map((name) => [`notes__${name}`, { callsPerMinute: 1 }]));
  servers.write({
    mcpServers: {
      notes: servers.entry("notes"),
      asking: { command: process.execPath, args: [asking, "--serves", "legacy"] },
    },
    junctor: { audit: "audit.jsonl", limits: { callTimeoutMs: 600_000, tools } },
  });
  process.env["NODE_OPTIONS"] = `--import ${preload}`;
  gateway = startCliGateway(servers.config, "--port", "0");
  delete process.env["NODE_OPTIONS"];
  url = new URL(`http://127.0.0.1:${await gateway.port}/mcp`);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  servers[Symbol.dispose]();
});

const settings = (): readonly unknown[] => gateway.log.flatMap(({ hours }) => hours ?? []);

/** Sets the wall clock of the gateway. */
async function setClock(): Promise<void> {
  const before = settings().length;
  gateway.process.kill("SIGUSR2");
  await expect.poll(() => settings().length).toBe(before + 1);
}

async function call(client: Client, tool: string, args: object = {}): Promise<string> {
  const { content } = await client.callTool(tool, args);
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Everything that has a time limit, begun before `jump` and ended after it. */
async function goThrough(round: number, jump: () => Promise<void>): Promise<unknown> {
  rmSync(`${servers.path}/notes.json.go`, { force: true });
  const elicit = async (): Promise<{ action: "accept"; content: { nonce: string } }> => {
    // The call is parked meanwhile: its caller is a modern one.
    await jump();
    return { action: "accept", content: { nonce: "n" } };
  };
  await using client = await connect(url, { handlers: { elicit } });
  await using legacy = await connect(url, { era: "legacy", revision: "2025-11-25" });
  await legacy.listTools();
  const waiting = call(client, "notes__wait");
  const limited = await call(client, `notes__limited${round}`);
  const parked = await call(client, "asking__ask", { nonce: "n", rounds: [["form"]] });
  const refused = await call(client, `notes__limited${round}`);
  const session = await call(legacy, "notes__echo", { text: "x" });
  expect(Number(/(\d+) s\.$/.exec(refused)?.[1])).toBeLessThanOrEqual(60);
  writeFileSync(`${servers.path}/notes.json.go`, "");
  return { waiting: await waiting, limited, parked, refused: refused.replace(/\d+ s\.$/, "N s."), session };
}

/** A server that fails to start is tried again: the clock is set while the gateway waits to do so. */
async function restart(jump: () => Promise<void>): Promise<string> {
  await using client = await connect(url);
  const failures = (): number => gateway.log.filter(({ msg }) => msg.startsWith("notes is down")).length;
  const before = failures();
  writeFileSync(`${servers.path}/notes.json.down`, "");
  await client.callTool("notes__exit").catch(() => {});
  await expect.poll(failures).toBeGreaterThan(before);
  await jump();
  rmSync(`${servers.path}/notes.json.down`);
  let said = "";
  await expect
    .poll(async () => (said = await call(client, "notes__echo", { text: "x" }).catch(String)))
    .toBe("echo");
  return said;
}

test.skipIf(process.platform === "win32")("a wall clock that is set makes no difference", async () => {
  const undisturbed = await goThrough(0, async () => {});
  expect(undisturbed).toEqual({
    waiting: "wait",
    limited: "limited0",
    parked: '[[{"action":"accept","content":{"nonce":"n"}}]]',
    refused: "No more than 1 call a minute of notes__limited0 is allowed. Try again in N s.",
    session: "echo",
  });
  const named = (round: number): unknown =>
    JSON.parse(JSON.stringify(undisturbed).replaceAll("limited0", `limited${round}`));
  expect(await goThrough(1, setClock)).toEqual(named(1));
  expect(await restart(setClock)).toBe("echo");
  expect(await goThrough(2, setClock)).toEqual(named(2));
  expect(settings()).toEqual([25, -25, 0]);
  // Dates follow the wall clock; durations do not.
  const records = readFileSync(`${servers.path}/audit.jsonl`, "utf8").split("\n").filter(Boolean);
  const parsed = records.map(
    (line) => JSON.parse(line) as { readonly time: string; readonly durationMs?: number },
  );
  const days = new Set(parsed.map(({ time }) => time.slice(0, 10)));
  expect(days.size).toBeGreaterThanOrEqual(3);
  for (const { durationMs = 0 } of parsed) {
    expect(durationMs).toBeGreaterThanOrEqual(0);
    expect(durationMs).toBeLessThan(3_600_000);
  }
});
