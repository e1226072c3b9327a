// A signal to `npx junctor` ends everything it started, and nothing else does.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { familyOf } from "./gateway/support/cli-gateway.ts";
import { statefulServer } from "./gateway/support/servers.ts";
import { bin, junctor } from "./support/junctor-bin.ts";
import { isAlive } from "./support/processes.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-npx-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user" }));
  writeFileSync(join(folder, "mcp.json"), JSON.stringify({ mcpServers: { one: statefulServer() } }));
  mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
  symlinkSync(bin, join(folder, "node_modules", ".bin", "junctor"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const serve = ["junctor", "serve", "--config", "mcp.json", "--port", "0"];

/** A program in a session of its own, as a service manager gives it, once its gateway is up. */
async function start(
  program: string,
  args: readonly string[],
): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(program, args, { cwd: folder, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  await expect.poll(() => output).toContain("1 of 1 server is up");
  return child as ChildProcess & { readonly pid: number };
}

interface Shown {
  readonly pid: number;
  readonly uptimeMs: number;
}

/** What the gateway says of itself, once it has run for so long. */
async function lookAfter(uptimeMs: number): Promise<Shown> {
  let shown: Shown | undefined;
  await expect
    .poll(async () => {
      const { stdout } = await junctor(["status", "--json", "--config", join(folder, "mcp.json")]);
      shown = JSON.parse(stdout) as Shown;
      return shown.uptimeMs;
    })
    .toBeGreaterThanOrEqual(uptimeMs);
  return shown!;
}

describe.runIf(process.platform === "linux")("npx junctor serve", () => {
  test.each<readonly [NodeJS.Signals, "npx" | "the whole group"]>([
    ["SIGTERM", "npx"],
    ["SIGHUP", "npx"],
    ["SIGTERM", "the whole group"],
    ["SIGINT", "the whole group"],
  ])("leaves nothing behind after %s to %s", async (signal, aim) => {
    const npx = await start("npx", serve);
    const exited = once(npx, "exit");
    const family = familyOf(npx.pid);
    process.kill(aim === "npx" ? npx.pid : -npx.pid, signal);
    await exited;
    await expect.poll(() => family.left()).toEqual([]);
  });

  // It looks for npm four times a second, so that after two seconds of its own it would have been ended.
  test("goes on when the shell that started npx is gone", async () => {
    const shell = await start("sh", ["-c", `npx ${serve.join(" ")} & wait`]);
    const exited = once(shell, "exit");
    const family = familyOf(shell.pid);
    process.kill(shell.pid, "SIGKILL");
    await exited;
    const { pid, uptimeMs } = await lookAfter(0);
    expect(await lookAfter(uptimeMs + 2000)).toMatchObject({ pid });
    process.kill(-shell.pid, "SIGTERM");
    await expect.poll(() => family.left()).toEqual([]);
  });

  test("goes on when npx runs a script that leaves it in the background", async () => {
    const npx = await start("npx", ["-c", `${serve.join(" ")} & sleep 2`]);
    if (npx.exitCode === null) await once(npx, "exit");
    const { pid, uptimeMs } = await lookAfter(0);
    expect(await lookAfter(uptimeMs + 2000)).toMatchObject({ pid });
    const family = familyOf(pid);
    process.kill(pid, "SIGTERM");
    await expect.poll(() => [pid, ...family.left()].filter(isAlive)).toEqual([]);
  });
});
