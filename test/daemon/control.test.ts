import { expect, test } from "vitest";
import { createDaemonHome, notedServers } from "../support/daemon-home.ts";

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
