import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { createDaemonHome, type DaemonHome, notedServers } from "../support/daemon-home.ts";
import { bin, junctorOnTerminal } from "../support/junctor-bin.ts";
import { isAlive } from "../support/processes.ts";

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
    expect((await home.junctor("restart", "a")).stdout).toBe("a is up\n");
    expect(home.daemons()).toEqual([first]);

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
    expect((await home.junctor("restart", "a")).stderr).toContain(`${first} (the daemon of ${home.config})`);
    const byPid = await home.junctor("restart", "a", "--pid", String(gateway.pid));
    expect(byPid.stdout).toBe("a is up\n");

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

test.runIf(process.platform === "linux")(
  "restart NAME starts one server of the daemon again for every client, and leaves the others alone",
  async () => {
    await using home = createDaemonHome({
      mcpServers: {
        ...notedServers(["a", "b"]),
        ...notedServers(["own"], { env: { TOKEN: "${TOKEN:-none}" } }),
      },
    });
    // Two gateways of the daemon, because the launch of one server differs; the others are shared.
    const fronts = ["one", "two"].map((TOKEN) => home.attach({ env: { TOKEN } }));
    const pidsOf = (server: string): Promise<readonly string[]> =>
      Promise.all(fronts.map((front) => front.call(`${server}__pid`)));
    await Promise.all(fronts.map((front) => front.shake()));
    const [a, b, own] = [await pidsOf("a"), await pidsOf("b"), await pidsOf("own")];
    expect(new Set(a).size).toBe(1);

    expect(await home.junctor("restart", "a")).toMatchObject({ code: 0, stdout: "a is up\n" });
    const next = await pidsOf("a");
    expect(new Set(next).size).toBe(1);
    expect(next).not.toEqual(a);
    await expect.poll(() => isAlive(Number(a[0]))).toBe(false);
    expect([await pidsOf("b"), await pidsOf("own")]).toEqual([b, own]);

    expect(await home.junctor("restart", "own")).toMatchObject({ code: 0, stdout: "own is up\n" });
    const others = await pidsOf("own");
    expect(new Set([...own, ...others]).size).toBe(4);
    expect(await home.junctor("restart", "ab")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the daemon has no server "ab"; did you mean a?') as string,
    });
  },
);

test.runIf(process.platform === "linux")(
  "the daemon has the admin page, which restarts a server",
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const before = await front.call("a__pid");
    const { pageUrl = "" } = JSON.parse((await home.junctor("status", "--json")).stdout) as {
      pageUrl?: string;
    };
    const page = new URL(pageUrl);
    const headers = { authorization: `Bearer ${page.hash.replace("#key=", "")}` };
    expect(await (await fetch(page)).text()).toContain("<html");
    expect((await fetch(new URL("/api/status", page))).status).toBe(401);
    const status = (await (await fetch(new URL("/api/status", page), { headers })).json()) as object;
    expect(status).toMatchObject({ config: home.config, servers: { up: 1 } });
    const calls = await (await fetch(new URL("/api/calls", page), { headers })).text();
    expect(calls).toContain('"tool":"a__pid"');
    const restart = await fetch(new URL("/api/servers/a/restart", page), {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: "{}",
    });
    expect(await restart.json()).toMatchObject({ name: "a", status: "up" });
    expect(await front.call("a__pid")).not.toBe(before);
    // A key is shown to a person at a terminal, and written to no file.
    expect((await home.junctor("status")).stdout).not.toContain("#key=");
    const seen = await junctorOnTerminal(["status"], { env: home.env });
    expect(seen.stdout).toContain(`See it: ${pageUrl}`);
  },
);

test.runIf(process.platform === "linux")(
  "a config without the admin API has no page in the daemon, and a port that is taken stops no client",
  async () => {
    await using silent = createDaemonHome({
      mcpServers: notedServers(["a"]),
      junctor: { admin: false },
    });
    const front = silent.attach();
    await front.shake();
    expect((await silent.junctor("status", "--json")).stdout).not.toContain("pageUrl");

    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]), junctor: { admin: { port } } });
    const other = home.attach();
    await other.shake();
    expect(await other.call("a__pid")).toMatch(/^\d+$/);
    const { pageUrl = "" } = JSON.parse((await home.junctor("status", "--json")).stdout) as {
      pageUrl?: string;
    };
    expect(new URL(pageUrl).port).not.toBe(String(port));
    taken.close();
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
