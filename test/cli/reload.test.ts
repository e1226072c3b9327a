// An edit of the config that a tool made starts nothing before a person agrees.
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { stateFolder } from "../../packages/junctor/src/config/user-files.ts";
import { type CliGateway, startCliGateway } from "../gateway/support/cli-gateway.ts";
import { demoServer, junctor } from "../support/junctor-bin.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-reload-"));
  file = join(folder, "mcp.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

const snoop = fileURLToPath(new URL("../fixtures/snoop-server.mjs", import.meta.url));
const files = { command: process.execPath, args: [snoop] };
const mark = (name: string): string => join(folder, name);
const isStarted = (name: string): boolean => existsSync(mark(name));

/** A server that leaves a mark when it is started. */
function marking(name: string): object {
  const script = `require("node:fs").writeFileSync(${JSON.stringify(mark(name))}, "");
    require("node:child_process").spawn(process.execPath, ${JSON.stringify(demoServer.slice(1))}, { stdio: "inherit" });`;
  return { command: process.execPath, args: ["-e", script] };
}

function toConfig(servers: object, section: object = {}): string {
  return JSON.stringify({ mcpServers: { files, ...servers }, junctor: section });
}

async function start(...args: readonly string[]): Promise<CliGateway> {
  writeFileSync(file, toConfig({}));
  const gateway = startCliGateway(file, "--port", "0", ...args);
  await gateway.port;
  return gateway;
}

/** Edits the config by a call of a tool. */
async function editByTool(gateway: CliGateway, text: string): Promise<void> {
  await using client = await connect(new URL(`http://127.0.0.1:${await gateway.port}/mcp`));
  await client.callTool("files__write", { path: file, text });
}

const socketOf = (gateway: CliGateway): string =>
  join(stateFolder(), "gateways", `${gateway.process.pid}.sock`);
const waitsFor = (gateway: CliGateway): readonly unknown[] =>
  gateway.log.flatMap(({ waiting }) => waiting ?? []);

describe("a server that a tool wrote into the config", () => {
  test("is not started, and is when a person runs junctor reload", async () => {
    await using gateway = await start();
    await editByTool(gateway, toConfig({ evil: marking("evil") }, { deny: ["x__*"] }));
    await expect.poll(() => waitsFor(gateway)).toEqual([expect.stringMatching(/^evil \(new: /)]);
    // The rest of the edit was applied before that was logged.
    expect(gateway.log.map(({ msg }) => msg)).toContain("the config was read again");
    expect(isStarted("evil")).toBe(false);

    const byServer = await junctor(["reload"], { env: { JUNCTOR_GUARD: "a mark" } });
    expect([byServer.code, byServer.stderr]).toEqual([2, expect.stringContaining("cannot agree for you")]);
    const elsewhere = await junctor(["reload", "--config", join(folder, "other.json")]);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining("no gateway of yours")]);
    expect(isStarted("evil")).toBe(false);

    const unasked = await junctor(["reload", "--config", file]);
    expect([unasked.code, unasked.stderr]).toEqual([1, expect.stringContaining("and --yes takes it")]);
    expect(isStarted("evil")).toBe(false);
    const { code, stdout, stderr } = await junctor(["reload", "--config", file, "--yes"]);
    expect([code, stdout]).toEqual([0, `${file}: taken\n`]);
    expect(stderr).toContain("  evil (new: ");
    await expect.poll(() => isStarted("evil")).toBe(true);
    expect((await junctor(["reload", "--config", file])).stdout).toBe(`${file}: nothing waits\n`);

    const socket = socketOf(gateway);
    expect([statSync(dirname(socket)).mode & 0o777, statSync(socket).mode & 0o777]).toEqual([0o700, 0o600]);
    gateway.process.kill("SIGKILL");
    await gateway.exited;
    expect((await junctor(["reload"])).stderr).toContain("no gateway of yours runs with a config");
    expect(existsSync(socket)).toBe(false);
  });

  test("is started on SIGHUP, which does not stop a gateway without a terminal", async () => {
    await using gateway = await start("--reload", "off");
    writeFileSync(file, toConfig({ more: marking("more") }));
    gateway.process.kill("SIGHUP");
    await expect.poll(() => isStarted("more")).toBe(true);
    gateway.process.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(existsSync(socketOf(gateway))).toBe(false);
  });
});

test("--reload takes one of three words", async () => {
  const { code, stderr } = await junctor(["serve", "--reload", "always"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--reload needs one of safe, trust, off")]);
});
