import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { createDaemonHome, type DaemonHome, notedServers } from "../support/daemon-home.ts";
import { bin } from "../support/junctor-bin.ts";

test.runIf(process.platform === "linux")(
  "status, logs, restart and stop work on the daemon, and a client needs no restart",
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const none = await home.junctor("daemon", "status");
    expect(none).toMatchObject({ code: 3, stdout: `no daemon runs for ${home.config}\n` });
    const front = home.attach({ args: ["--client", "zed"] });
    await front.shake();
    await front.call("a__pid");
    const status = await home.junctor("daemon", "status");
    expect(status.stdout).toContain(`zed, process ${front.process.pid}`);
    expect(status.stdout).toContain("a: up, 6 tools");
    const [first] = home.daemons();
    expect(await home.junctor("daemon", "restart")).toMatchObject({ code: 0 });
    await expect.poll(() => home.daemons()).not.toContain(first);
    expect(await front.call("a__note", { key: "after the restart" })).toBe("after the restart");
    expect(await home.junctor("daemon", "stop")).toMatchObject({ code: 0 });
    await expect.poll(() => home.daemons()).toEqual([]);
    // The client did not ask for anything, so nothing runs; now it does.
    expect(await front.call("a__note", { key: "after the stop" })).toBe("after the stop");
    expect((await home.junctor("daemon", "logs")).stdout).toContain("the daemon listens");
    expect(await home.junctor("daemon", "stpo")).toMatchObject({ code: 2 });
  },
);

test.runIf(process.platform === "linux")(
  'status, logs, stop and restart without "daemon" mean the daemon, and tell it from a gateway',
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    expect(await home.junctor("status")).toMatchObject({ code: 2 });
    expect((await home.junctor("stop")).stdout).toBe("no daemon runs\n");
    const front = home.attach({ args: ["--client", "zed"] });
    await front.shake();
    await front.call("a__pid");
    const status = await home.junctor("status");
    expect(status).toMatchObject({ code: 0 });
    expect(status.stdout).toMatch(/^The daemon of .*junctor\.json runs: process \d+/);
    expect(status.stdout).toContain(`zed, process ${front.process.pid}`);
    expect((await home.junctor("logs")).stdout).toContain("the daemon listens");
    expect((await home.junctor("logs", "--level", "error")).stdout).toBe("");
    const [first = 0] = home.daemons();
    expect((await home.junctor("restart", "a")).stderr).toContain("junctor restart, without a name");

    await using gateway = await serve(home);
    const both = await home.junctor("status");
    expect(both.stdout).toContain("The daemon of ");
    expect(both.stdout).toContain(`The gateway of junctor serve (process ${gateway.pid},`);
    const kinds = (await home.junctor("status", "--json")).stdout.trim().split("\n");
    expect(kinds.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual(["daemon", "gateway"]);
    const several = (await home.junctor("logs")).stderr;
    expect(several).toContain(`${first} (the daemon of ${home.config})`);
    expect(several).toContain(`${gateway.pid} (the gateway of ${home.config})`);
    expect((await home.junctor("logs", "--pid", String(first))).stdout).toContain("the daemon listens");
    expect((await home.junctor("restart", "a")).stdout).toBe("a is up\n");

    expect((await home.junctor("restart")).stdout).toMatch(/^the next daemon \(process \d+\) serves/);
    await expect.poll(() => home.daemons()).not.toContain(first);
    const stopped = await home.junctor("stop");
    expect(stopped.stdout).toMatch(/^the daemon \(process \d+\) ends when its calls are done/);
    expect(stopped.stderr).toContain(`process ${gateway.pid}) goes on`);
    await expect.poll(() => home.daemons()).toEqual([]);
  },
);

test.runIf(process.platform === "linux")(
  "logs --follow shows lines to come, and logs shows the log of a daemon that ended",
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const follower = spawn(process.execPath, [bin, "logs", "--follow"], {
      env: { ...process.env, ...home.env },
    });
    let said = "";
    follower.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    await expect.poll(() => said).toContain("the daemon listens");
    await home.junctor("stop");
    await expect.poll(() => said).toContain("the daemon has ended");
    expect(said.match(/the daemon listens/g)).toHaveLength(1);
    const ended = once(follower, "close");
    follower.kill("SIGINT");
    await ended;
    const last = await home.junctor("logs");
    expect(last.stderr).toContain("no daemon runs; this is the log of the last one");
    expect(last.stdout).toContain("the daemon has ended");
  },
);

/** `junctor serve` with the same config, in a process of its own. */
async function serve({ config, env }: DaemonHome): Promise<AsyncDisposable & { readonly pid: number }> {
  const words = [bin, "serve", "--port", "0", "--config", config];
  const child = spawn(process.execPath, words, { env: { ...process.env, ...env } });
  const ended = once(child, "close");
  child.stderr.resume();
  await once(child.stdout, "data");
  return {
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
