// `junctor trust` shows what servers offer, asks, and writes the lock.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { type ChangingServers, makeChangingServers, toTool } from "../support/changing-server.ts";
import { junctor, junctorOnTerminal, type Run } from "../support/junctor-bin.ts";

const hasScript = spawnSync("script", ["--version"]).status === 0;

let servers: ChangingServers;
beforeEach(() => {
  servers = makeChangingServers();
  servers.offer("one", { instructions: "Be brief.", tools: [toTool("search")] });
  servers.offer("two", { tools: [toTool("search")], resources: [{ uri: "notes://a", name: "a" }] });
  servers.write({
    mcpServers: { one: servers.entry("one"), two: servers.entry("two") },
    junctor: { lock: "enforce" },
  });
});
afterEach(() => servers[Symbol.dispose]());

const trust = (...args: readonly string[]): Promise<Run> =>
  junctor(["trust", "--config", servers.config, ...args]);
const lockText = (): string => readFileSync(servers.lock, "utf8");

test("without a terminal or --yes it shows what waits, and writes nothing", async () => {
  const { code, stdout, stderr } = await trust();
  expect(stdout).toContain("  + instructions new");
  expect(stdout).toContain("  + resource notes://a new");
  expect(stderr).toContain("nothing is approved: 4 definitions wait");
  expect([code, existsSync(servers.lock)]).toEqual([1, false]);
});

test("a definition that says itself what stands for a secret is not approved", async () => {
  servers.offer("one", { tools: [toTool("search", "Takes [secret]."), toTool("other")] });
  const { code, stderr } = await trust("--yes");
  expect(stderr).toContain("one: search cannot be approved: it contains [secret]");
  expect([code, lockText().includes("Takes"), lockText().includes("other")]).toEqual([1, false, true]);
});

test("what was approved is served; a change is shown, held back, and served once it is approved", async () => {
  expect((await trust("--yes")).code).toBe(0);
  const list = async (): Promise<string> => (await junctor(["tools", "--config", servers.config])).stdout;
  expect(await list()).toMatch(/one__search[^]*two__search/);
  const unchanged = lockText();
  servers.offer("one", { instructions: "Be brief.", tools: [toTool("search", "Does\u001b[2J evil.")] });
  expect(await list()).not.toContain("one__search");
  const check = await junctor(["check", "--config", servers.config]);
  expect(check.stdout).toContain("one: 1 definition is not approved, and held back: search (changed).");
  const shown = await trust();
  expect(shown.stdout).toBe(
    [
      "one",
      "  ~ tool search changed",
      "      description",
      '        - "Does search."',
      String.raw`        + "Does\u001b[2J evil."`,
      "",
    ].join("\n"),
  );
  expect([shown.code, lockText()]).toEqual([1, unchanged]);
  expect((await trust("-y")).code).toBe(0);
  expect(await list()).toContain("one__search");
  const again = await trust();
  expect([again.code, again.stdout]).toEqual([0, ""]);
});

test("servers that are not named, cannot be listed, or are off keep what was approved; those that are gone lose it", async () => {
  await trust("--yes");
  const before = JSON.parse(lockText()) as { servers: { [name: string]: unknown } };
  servers.offer("one", { tools: [] });
  servers.offer("two", { tools: [] });
  expect((await trust("two", "--yes")).code).toBe(0);
  const named = JSON.parse(lockText()) as typeof before;
  expect(named.servers["one"]).toEqual(before.servers["one"]);
  expect(named.servers["two"]).toBeUndefined();
  const broken = { command: process.execPath, args: ["-e", "process.exit(1)"] };
  servers.offer("two", { tools: [toTool("find")] });
  await trust("two", "--yes");
  servers.write({ mcpServers: { one: broken, three: servers.entry("two") } });
  const { code, stdout, stderr } = await trust("--yes", "--timeout", "20");
  expect(stderr).toContain("one could not be listed, and stays as it was approved");
  expect(stdout).toMatch(/^three\n {2}\+ tool find new\n[^]*\ntwo\n {2}- tool find gone\n$/);
  expect(code).toBe(1);
  const last = JSON.parse(lockText()) as typeof before;
  expect(Object.keys(last.servers)).toEqual(["one", "three"]);
  expect(last.servers["one"]).toEqual(before.servers["one"]);
});

test("a gateway that runs takes a new lock from a person, and not by itself", async () => {
  await trust("--yes");
  servers.offer("one", { instructions: "Be brief.", tools: [toTool("search", "Does more.")] });
  await using gateway = startCliGateway(servers.config, "--port", "0");
  const url = new URL(`http://127.0.0.1:${await gateway.port}/mcp`);
  const list = async (): Promise<readonly string[]> => {
    await using client = await connect(url);
    return (await client.listTools()).map(({ name }) => name);
  };
  expect(await list()).toEqual(["two__search"]);
  await trust("--yes");
  // As a tool would that may write the config: the edit is used, the lock is not read.
  servers.write({
    mcpServers: { one: servers.entry("one"), two: servers.entry("two") },
    junctor: { lock: "off", deny: ["x"] },
  });
  await expect.poll(() => gateway.log.flatMap(({ waiting }) => waiting ?? [])).toEqual(["junctor.lock"]);
  expect(await list()).toEqual(["two__search"]);
  servers.write({
    mcpServers: { one: servers.entry("one"), two: servers.entry("two") },
    junctor: { lock: "enforce" },
  });
  const { stdout } = await junctor(["reload", "--yes", "--config", servers.config]);
  expect(stdout).toContain("taken");
  expect(await list()).toEqual(["one__search", "two__search"]);
});

test("the forms that a server lists to callers of both eras are approved together", async () => {
  const registry = createRegistry();
  registry.register("count", { output: { type: "array" } }, () => ({ structuredContent: [1] }));
  await using http = await listenHttp(createServer(registry, { name: "both", version: "1.0.0" }), {
    port: 0,
  });
  servers.write({ mcpServers: { both: { url: http.url } }, junctor: { lock: "enforce" } });
  expect((await trust("--yes")).code).toBe(0);
  expect(JSON.parse(lockText())).toMatchObject({ servers: { both: { tools: { count: [{}, {}] } } } });
  await using gateway = startCliGateway(servers.config, "--port", "0");
  const url = new URL(`http://127.0.0.1:${await gateway.port}/mcp`);
  for (const revision of ["2026-07-28", "2025-11-25"] as const) {
    await using client = await connect(url, { revision });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["both__count"]);
    await client.callTool("both__count");
  }
});

test("a damaged lock is written again once everything in it was shown; a newer one is not", async () => {
  await trust("--yes");
  const good = lockText();
  writeFileSync(servers.lock, good.replace("Be brief.", "Be evil."));
  const { code, stdout, stderr } = await trust("--yes");
  expect(stderr).toContain("was edited since junctor trust wrote it");
  expect(stdout).toContain("  + instructions new");
  expect([code, lockText()]).toEqual([0, good]);
  writeFileSync(servers.lock, '{ "version": 99 }');
  const newer = await trust("--yes");
  expect(newer.stderr).toContain("has version 99, and this Junctor knows 1: update Junctor");
  expect([newer.code, lockText()]).toEqual([2, '{ "version": 99 }']);
});

test("secrets of the config are not written, and what has one can be approved", async () => {
  const token = "tok3n-0f-the-server";
  servers.offer("one", { tools: [toTool("search", `Searches as ${token}.`)] });
  const one = { ...servers.entry("one"), env: { TOKEN: token } };
  servers.write({ mcpServers: { one }, junctor: { lock: "enforce" } });
  const { stdout } = await trust("--yes");
  expect(stdout + lockText()).not.toContain(token);
  expect((await junctor(["tools", "--config", servers.config])).stdout).toContain("one__search");
});

test.skipIf(process.getuid?.() === 0 || process.platform === "win32")(
  "a lock that cannot be written leaves the old one",
  async () => {
    await trust("--yes");
    const before = lockText();
    servers.offer("one", {});
    chmodSync(servers.path, 0o500);
    const { code, stderr } = await trust("--yes");
    chmodSync(servers.path, 0o700);
    expect([code, lockText()]).toEqual([3, before]);
    expect(stderr).toContain("EACCES");
  },
);

test.skipIf(process.platform === "win32")("a lock that every user may write is refused", async () => {
  writeFileSync(servers.lock, "");
  chmodSync(servers.lock, 0o666);
  const { code, stderr } = await junctor(["tools", "--config", servers.config]);
  expect(stderr).toContain(`${servers.lock} may be written by every user`);
  expect(code).toBe(2);
});

test("a server of a gateway cannot approve", async () => {
  const { code, stderr } = await junctor(["trust", "--yes", "--config", servers.config], {
    env: { JUNCTOR_GUARD: "a mark" },
  });
  expect(stderr).toContain("a server of a gateway cannot approve for you");
  expect([code, existsSync(servers.lock)]).toEqual([2, false]);
});

test("a name that is not a server is refused", async () => {
  const { code, stderr } = await trust("thre");
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('has no server "thre" that is in use; it has one, two'),
  ]);
});

describe.runIf(hasScript)("at a terminal", () => {
  test.each([
    ["n", 1],
    ["y", 0],
  ])("the answer %s decides", async (key, exitCode) => {
    let isAsked = false;
    const { code } = await junctorOnTerminal(["trust", "--config", servers.config], {
      onOutput: (output, child) => {
        if (isAsked || !output.includes("Approve 4 definitions? (y/N): ")) return;
        isAsked = true;
        child.stdin?.write(`${key}\n`);
      },
    });
    expect([isAsked, code, existsSync(servers.lock)]).toEqual([true, exitCode, exitCode === 0]);
  });
});
