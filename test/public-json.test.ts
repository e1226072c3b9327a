// What programs read of us: JSON of commands, of the admin API and of the audit. A member that is renamed, added or lost changes a file in
// test/public-json/, and so is seen in a review. `npx vitest run --project journeys test/public-json.test.ts -u` writes them again.

import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { adminSocket, askAdmin } from "../packages/junctor/src/cli/serve/admin-client.ts";
import { type CliGateway, startCliGateway } from "./gateway/support/cli-gateway.ts";
import { deadServer } from "./gateway/support/servers.ts";
import { junctor } from "./support/junctor-bin.ts";
import { until } from "./support/until.ts";

const { version } = JSON.parse(
  readFileSync(new URL("../packages/junctor/package.json", import.meta.url), "utf8"),
) as { readonly version: string };
const folder = mkdtempSync(join(tmpdir(), "junctor-json-"));
const config = join(folder, "mcp.json");
const audit = join(folder, "audit.jsonl");
const echo = fileURLToPath(new URL("fixtures/gateway-echo.mjs", import.meta.url));
const key = "the-long-key-of-ada-0123456789";
let gateway: CliGateway;

beforeAll(async () => {
  const mcpServers = { echo: { command: process.execPath, args: [echo] }, dead: deadServer };
  const keys = { ada: { sha256: createHash("sha256").update(key).digest("hex"), groups: ["eng"] } };
  const rules = [{ deny: ["echo__storm"], unless: "'ops' in caller.groups" }];
  const section = { admin: { port: 0 }, audit, keys, rules };
  writeFileSync(config, JSON.stringify({ mcpServers, junctor: section }), { mode: 0o600 });
  gateway = startCliGateway(config, "--port", "0");
  const url = `http://127.0.0.1:${await gateway.port}/mcp`;
  const { code, stderr } = await junctor([
    "call",
    "echo__echo",
    "--server",
    url,
    "--header",
    `Authorization: Bearer ${key}`,
  ]);
  if (code !== 0) throw new Error(`junctor call ended with code ${String(code)}: ${stderr}`);
});

afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (path: string): Promise<unknown> => askAdmin(adminSocket(gateway.process.pid ?? 0), "GET", path);

/** Members for people. What they say is not fixed, and has its own tests. */
const sentences = new Set(["advice", "message", "reason", "said", "trouble"]);

/** Values that differ from run to run. Members stay in the order of their names, whatever order they were written in. */
function mask(value: unknown): unknown {
  if (typeof value === "number") return "NUMBER";
  if (typeof value === "string") return maskText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(mask);
    const areNumbers = items.length > 0 && items.every((item) => item === "NUMBER" || item === null);
    return areNumbers ? ["NUMBER"] : items;
  }
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(
    members.map(([name, member]) => [name, sentences.has(name) && member !== "" ? "TEXT" : mask(member)]),
  );
}

function maskText(text: string): string {
  return (
    text
      .replaceAll(folder, "FOLDER")
      .replaceAll(process.execPath, "NODE")
      .replaceAll(process.version, "VERSION")
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b/g, "UUID")
      .replaceAll(/\b[0-9a-f]{16,64}\b/g, "HASH")
      .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "DATE")
      .replaceAll(/127\.0\.0\.1:\d+/g, "HOST")
      .replaceAll(/key=[\w-]+/g, "key=KEY")
      // How each minute of a day was: the last ones depend on when it is asked.
      .replaceAll(/^[-a-z]{96}$/g, "DAY")
      .replaceAll(version, "0.0.0")
  );
}

const hold = (name: string, value: unknown): Promise<void> =>
  expect(`${JSON.stringify(mask(value), undefined, 2)}\n`).toMatchFileSnapshot(`public-json/${name}.txt`);

/** Reads until all of it is told: what was said of servers in the last seconds comes late, and less is said of one while it is started. */
async function readAtRest(read: () => Promise<unknown>, ...signs: readonly string[]): Promise<unknown> {
  let value: unknown;
  const isAtRest = async (): Promise<boolean> => {
    const text = JSON.stringify((value = await read()));
    return signs.every((sign) => text.includes(sign));
  };
  await until(isAtRest);
  return value;
}

const run = async (...args: readonly string[]): Promise<unknown> => {
  const { stdout } = await junctor([...args, "--json"]);
  return stdout
    .trim()
    .split(/\n(?=\{)/)
    .map((line) => JSON.parse(line) as unknown);
};

test("junctor status --json", async () => {
  await hold("status", await readAtRest(() => run("status", "--config", config), "nextTryAt", "recent"));
});

test.each([
  ["check", ["--config", config]],
  ["tools", ["--config", config, "--no-daemon"]],
  ["cost", ["--config", config, "--no-daemon"]],
  ["why", ["ada", "echo__storm", "--config", config]],
])("junctor %s --json", async (name, args) => hold(name, await run(name, ...args)));

test("GET /api/servers", async () => {
  await hold("api-servers", await readAtRest(() => ask("/api/servers"), "nextTryAt", "recent"));
});

test("GET /api/problems", async () => {
  await hold("api-problems", await readAtRest(() => ask("/api/problems"), "dead"));
});

test.each(["status", "catalog", "callers", "calls", "sessions", "parked", "charts"])(
  "GET /api/%s",
  async (name) => hold(`api-${name}`, await ask(`/api/${name}`)),
);

test("the audit", async () => {
  const lines = readFileSync(audit, "utf8").trim().split("\n");
  await hold(
    "audit",
    lines.map((line) => JSON.parse(line) as unknown),
  );
});
