import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createDaemonHome, notedServers } from "../support/daemon-home.ts";
import type { Run } from "../support/junctor-bin.ts";

const answered = /^junctor: the daemon \(process \d+\) answers; --no-daemon starts the servers here$/m;

describe.runIf(process.platform === "linux")("while the daemon of a config runs", () => {
  test("tools, call, cost, resources, prompts and skills ask it, and start no server", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a", "b"]) });
    const front = home.attach();
    await front.shake();
    const pid = await front.call("a__pid");
    const ask = (...words: readonly string[]): Promise<Run> =>
      home.junctor(...words, "--config", home.config);
    const call = await ask("call", "a__pid");
    expect(call.stderr).toMatch(answered);
    expect(call.stdout.trim()).toBe(pid);
    for (const command of ["tools", "cost", "resources", "prompts", "skills"]) {
      const shared = await ask(command);
      const own = await ask(command, "--no-daemon");
      expect([command, shared.code, shared.stdout]).toEqual([command, own.code, own.stdout]);
      expect(shared.stderr).toMatch(answered);
      expect(own.stderr).not.toContain("daemon");
    }
    expect((await ask("call", "a__pid", "--no-daemon")).stdout.trim()).not.toBe(pid);
  });

  test("a command brings its own variables and project to it", async () => {
    await using home = createDaemonHome({
      mcpServers: notedServers(["a"], { env: { TOKEN: "${TOKEN:-none}" } }),
    });
    const front = home.attach({ env: { TOKEN: "of-the-client" } });
    await front.shake();
    expect(await front.call("a__value", { name: "TOKEN" })).toBe("of-the-client");
    const own = await home.junctor("call", "a__value", "name=TOKEN", "--config", home.config);
    expect(own.stderr).toMatch(answered);
    expect(own.stdout).toBe("none\n");
  });

  test("a command does without it while an edit of the config waits, and uses it once the edit is taken", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    home.write({ mcpServers: notedServers(["a", "b"]) });
    const waiting = await home.junctor("call", "b__pid", "--config", home.config);
    expect(waiting).toMatchObject({ code: 0 });
    expect(waiting.stderr).toContain("is not used: it does not use the config as it is now");
    expect(await home.junctor("reload", "--yes")).toMatchObject({ code: 0 });
    const taken = await home.junctor("call", "b__pid", "--config", home.config);
    expect(taken.stderr).toMatch(answered);
    expect(taken.stdout.trim()).toBe(await front.call("b__pid"));
    // What an edit takes away needs nobody's word.
    home.write({ mcpServers: notedServers(["b"]) });
    const less = await home.junctor("tools", "--config", home.config);
    expect(less.stderr).toMatch(answered);
    expect(less.stdout).not.toContain("a__");
  });

  test("a list names the servers that are down there, and a call to one of them starts it here", async () => {
    await using home = createDaemonHome({
      mcpServers: {
        ...notedServers(["a"]),
        broken: { command: process.execPath, args: ["-e", "process.exit(3)"] },
      },
    });
    const front = home.attach();
    await front.shake();
    await front.call("a__pid");
    await expect
      .poll(async () => (await home.junctor("status")).stdout, { interval: 100 })
      .toContain("exited with code 3");
    const list = await home.junctor("tools", "--config", home.config);
    expect(list.stderr).toMatch(answered);
    expect(list.stderr).toContain("junctor: warning: broken is missing:");
    expect(list.stdout).toContain("a__pid");
    const call = await home.junctor("call", "broken__x", "--config", home.config);
    expect(call.stderr).toMatch(/is not used: broken is (?:down|starting) there/);
    expect(call.stderr).toContain("code 3");
  });
});

test("a command leaves no folder behind where no daemon ever ran", async () => {
  await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
  const { code, stderr } = await home.junctor("tools", "--config", home.config);
  expect([code, stderr.includes("daemon")]).toEqual([0, false]);
  expect(existsSync(join(home.folder, ".junctor", "run"))).toBe(false);
});
