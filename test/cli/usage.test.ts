// `junctor usage` and `junctor top`, of a gateway that runs in a process of its own.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { deadServer, statefulServer } from "../gateway/support/servers.ts";
import { bin } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-usage-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const config = join(folder, "mcp.json");
writeFileSync(config, JSON.stringify({ mcpServers: { store: statefulServer(), dead: deadServer } }));

const run = (
  ...args: readonly string[]
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } =>
  spawnSync(process.execPath, [bin, ...args], { encoding: "utf8" });

test("calls are watched while a gateway runs, and counted after it ended", async () => {
  expect(run("usage").stdout).toContain("No call was counted in the last 7d");
  {
    await using gateway = startCliGateway(config, "--port", "0");
    const server = `http://127.0.0.1:${await gateway.port}/mcp`;
    await expect.poll(() => run("status").stdout).toMatch(/store +up/);
    for (let count = 0; count < 2; count++)
      expect(run("call", "store__count", "--server", server).status).toBe(0);
    const shown = run("top", "--once").stdout;
    expect(shown).toMatch(/^1 server is in trouble\. 1 of 2 up/);
    expect(shown).toMatch(/store__count +2 +0/);
    expect(shown).not.toContain("\x1b");
    await expect.poll(() => run("top", "--once").stdout).toMatch(/^dead: it ended|^dead: .+\n/m);
    expect(JSON.parse(run("top", "--json").stdout)).toMatchObject({
      tools: [{ name: "store__count", calls: 2 }],
    });
    gateway.process.kill("SIGTERM");
    await expect.poll(() => run("usage").stdout).toContain("store__count");
  }
  expect(run("usage").stdout).toMatch(/TOOL +CALLS +FAILED .*\nstore__count +2 +0 /);
  const { rows } = JSON.parse(run("usage", "--by", "server", "--since", "24h", "--json").stdout) as {
    readonly rows: readonly object[];
  };
  expect(rows).toMatchObject([{ name: "store", calls: 2, failed: 0 }]);
  expect(run("usage", "--by", "caller").stdout).toMatch(/^CALLER.*\njunctor\S* .*2 +0 /);
});

test.each([
  [["--by", "colour"], "--by needs one of caller, tool, server"],
  [["--since", "31d"], "--since needs hours or days, at most 30d"],
  [["--since", "soon"], "--since needs hours or days, at most 30d"],
])("usage %s is refused with what to write", (args, message) => {
  const { status, stderr } = run("usage", ...args);
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(message) as string });
});

test("top says when no gateway runs", () => {
  expect(run("top").stderr).toContain("junctor serve starts one");
});
