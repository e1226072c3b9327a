// `junctor status`, `logs` and `restart` of a gateway that runs in a process of its own.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { deadServer, statefulServer } from "../gateway/support/servers.ts";
import { bin } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-status-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const config = join(folder, "mcp.json");
writeFileSync(config, JSON.stringify({ mcpServers: { store: statefulServer(), dead: deadServer } }));

const run = (
  ...args: readonly string[]
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } =>
  spawnSync(process.execPath, [bin, ...args], { encoding: "utf8" });

interface Shown {
  readonly servers: readonly { readonly name: string; readonly status: string; readonly restarts: number }[];
}

test("a running gateway is shown, its log is read, and one of its servers is restarted", async () => {
  expect(run("status").stderr).toContain("junctor serve starts one");
  await using gateway = startCliGateway(config, "--port", "0");
  await gateway.port;
  await expect.poll(() => run("status").stdout).toMatch(/store +up/);
  const shown = run("status");
  expect(shown.stdout).toMatch(/dead +(down|starting)/);
  expect(shown.stdout).toContain(`process ${gateway.process.pid}`);
  expect(run("logs", "--level", "warn").stdout).toContain("dead is down");
  expect(run("restart", "store")).toMatchObject({ status: 0, stdout: "store is up\n" });
  const { servers } = JSON.parse(run("status", "--json", "--config", config).stdout) as Shown;
  expect(servers.find(({ name }) => name === "store")).toMatchObject({ status: "up", restarts: 1 });
  expect(run("restart", "nobody").stderr).toContain("there are store, dead");
  expect(run("restart").stderr).toContain("write the name of one server");
  expect(run("status", "--pid", "1").status).toBe(2);
});
