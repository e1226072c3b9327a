import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createDaemonHome, notedServers } from "../support/daemon-home.ts";
import { isAlive } from "../support/processes.ts";

const linux = process.platform === "linux";

describe.runIf(linux)("junctor attach", () => {
  test("several clients share one daemon and one process of each server", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a", "b"]) });
    const fronts = [home.attach(), home.attach({ args: ["--client", "cursor"] }), home.attach()];
    await Promise.all(fronts.map((front) => front.shake()));
    const pids = await Promise.all(fronts.flatMap((front) => [front.call("a__pid"), front.call("b__pid")]));
    expect(new Set(pids).size).toBe(2);
    for (const pid of pids) expect(pid).toMatch(/^\d+$/);
    await expect.poll(() => home.daemons().length).toBe(1);
  });

  test("eight clients that start at once end up with one daemon", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const fronts = Array.from({ length: 8 }, () => home.attach());
    await Promise.all(fronts.map((front) => front.shake()));
    await expect.poll(() => home.daemons().length).toBe(1);
    const pids = await Promise.all(fronts.map((front) => front.call("a__pid")));
    expect(new Set(pids).size).toBe(1);
    expect(pids[0]).toMatch(/^\d+$/);
  });

  test("a call underway when the daemon is killed ends with outcome_unknown, and is not made again", async () => {
    await using home = createDaemonHome({ mcpServers: {} });
    const journal = join(home.folder, "journal");
    home.write({ mcpServers: notedServers(["a"], { env: { JOURNAL: journal } }) });
    const front = home.attach();
    await front.shake();
    await front.call("a__pid");
    const call = front.call("a__note", { key: "once", ms: 100_000 });
    await expect.poll(() => readOrNothing(journal)).toBe("once\n");
    const [daemon = 0] = home.daemons();
    process.kill(daemon, "SIGKILL");
    expect(JSON.parse(await call)).toMatchObject({
      data: { code: "upstream.lost", delivery: "outcome_unknown" },
    });
    // The session goes on at another daemon, without a handshake of the client.
    expect(await front.call("a__note", { key: "twice" })).toBe("twice");
    expect(readOrNothing(journal)).toBe("once\ntwice\n");
    expect(home.daemons()).not.toContain(daemon);
    const announced = front.frames.map(({ method }) => method);
    expect(announced).toContain("notifications/tools/list_changed");
  });

  test("a daemon that another replaces ends its calls, and its clients go on at the other", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    await front.call("a__pid");
    const call = front.call("a__note", { key: "slow", ms: 1500 });
    const [first = 0] = home.daemons();
    void home.junctor("daemon", "--take-over");
    await expect.poll(() => home.daemons().some((pid) => pid !== first)).toBe(true);
    expect(await front.call("a__note", { key: "at the next" })).toBe("at the next");
    expect(await call).toBe("slow");
    await expect.poll(() => isAlive(first)).toBe(false);
  });

  test("variables come from the client, and clients with other values have other processes", async () => {
    await using home = createDaemonHome({
      mcpServers: {
        ...notedServers(["own"], { env: { TOKEN: "${TOKEN}" } }),
        ...notedServers(["common"]),
      },
    });
    const [one, two] = ["token-one", "token-two"].map((TOKEN) =>
      home.attach({ env: { TOKEN, SECRET: "x" } }),
    );
    if (one === undefined || two === undefined) throw new Error("two fronts");
    await Promise.all([one.shake(), two.shake()]);
    expect(await one.call("own__value", { name: "TOKEN" })).toBe("token-one");
    expect(await two.call("own__value", { name: "TOKEN" })).toBe("token-two");
    expect(await one.call("common__pid")).toBe(await two.call("common__pid"));
    expect(await one.call("common__value", { name: "SECRET" })).toBe("none");
    expect(home.log()).not.toMatch(/token-/);
  });

  test("a server that depends on the project has a process for each, in its folder", async () => {
    await using home = createDaemonHome({
      mcpServers: {
        ...notedServers(["here"], { args: [...argsOf(notedServers(["x"])), "${workspaceFolder}"] }),
        ...notedServers(["common"]),
      },
    });
    const folders = ["p1", "p2"].map((name) => join(home.folder, name));
    for (const folder of folders) mkdirSync(folder);
    const fronts = folders.map((cwd) => home.attach({ cwd }));
    await Promise.all(fronts.map((front) => front.shake()));
    expect(await Promise.all(fronts.map((front) => front.call("here__cwd")))).toEqual(folders);
    const common = await Promise.all(fronts.map((front) => front.call("common__pid")));
    expect(new Set(common).size).toBe(1);
    expect(await fronts[0]?.call("common__cwd")).toBe(home.folder);
    // Claude Desktop is started in the home folder, or in /.
    const homeless = home.attach();
    await homeless.shake();
    expect(await homeless.call("here__cwd")).toContain("Unknown tool");
  });

  test("--profile serves that profile, and one that does not exist is said to be missing", async () => {
    await using home = createDaemonHome({
      mcpServers: notedServers(["a"]),
      junctor: { profiles: { little: { allow: ["a__pid"] } } },
    });
    const front = home.attach({ args: ["--profile", "little"] });
    await front.shake();
    const { result } = (await front.request("tools/list")) as { result?: { tools: readonly object[] } };
    expect(result?.tools).toMatchObject([{ name: "a__pid" }]);
    const wrong = home.attach({ args: ["--profile", "litle"] });
    await wrong.exited;
    expect(wrong.stderr()).toContain('the config has no profile "litle"');
  });

  test("without a daemon the front serves alone, and says so", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    mkdirSync(join(home.folder, ".junctor"), { recursive: true });
    writeFileSync(join(home.folder, ".junctor", "run"), "not a folder");
    const front = home.attach();
    await front.shake();
    expect(await front.call("a__note", { key: "here" })).toBe("here");
    expect(front.stderr()).toContain("there is no daemon, so this process serves alone");
    expect(home.daemons()).toEqual([]);
    await front.leave();
  });

  test("a client that pipes its requests and ends its input gets all answers", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    const shaken = front.shake();
    const call = front.call("a__note", { key: "late", ms: 300 });
    front.process.stdin.end();
    await shaken;
    expect(await call).toBe("late");
    await front.exited;
  });

  test("nothing is left when all clients are gone and the idle time is over", async () => {
    await using home = createDaemonHome({
      mcpServers: notedServers(["a", "b"]),
      junctor: { daemon: { idleMs: 200 } },
    });
    const fronts = [home.attach(), home.attach()];
    await Promise.all(fronts.map((front) => front.shake()));
    await fronts[0]?.call("a__pid");
    await Promise.all(fronts.map((front) => front.leave()));
    await expect.poll(() => home.processes()).toEqual([]);
    expect(home.log()).toContain("no client came");
  });

  test("a socket that was removed is made again, and the clients notice nothing", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const pid = await front.call("a__pid");
    const run = join(home.folder, ".junctor", "run");
    rmSync(run, { recursive: true, force: true });
    mkdirSync(run, { mode: 0o700 });
    expect(await front.call("a__pid")).toBe(pid);
    const next = home.attach();
    await next.shake();
    expect(await next.call("a__note", { key: "again" })).toBe("again");
    await expect.poll(() => home.daemons().length).toBe(1);
  });

  test("a daemon whose folder was removed makes it again, with a key, and is found there", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const pid = await front.call("a__pid");
    const run = join(home.folder, ".junctor", "run");
    rmSync(run, { recursive: true, force: true });
    // Only the daemon makes it again: no front looks for one.
    await expect
      .poll(() => existsSync(run) && readdirSync(run).some((name) => name.startsWith("d-")))
      .toBe(true);
    const next = home.attach();
    await next.shake();
    expect(await next.call("a__pid")).toBe(pid);
    expect(home.daemons()).toHaveLength(1);
  });
});

function argsOf(servers: object): readonly string[] {
  return (servers as { x: { args: readonly string[] } }).x.args;
}

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
