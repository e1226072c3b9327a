import { describe, expect, test } from "vitest";
import { createDaemonHome, notedServers } from "../support/daemon-home.ts";

const elicitation = { elicitation: {} };

describe.runIf(process.platform === "linux")("questions through the daemon", () => {
  test("go to the client whose call asks, and to no other", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const fronts = [home.attach(), home.attach(), home.attach()] as const;
    const [ada, bob, mute] = fronts;
    await Promise.all([ada.shake(elicitation), bob.shake(elicitation), mute.shake()]);
    const calls = [ada.call("a__ask"), bob.call("a__ask")];
    for (const [front, name] of [
      [ada, "Ada"],
      [bob, "Bob"],
    ] as const) {
      const { id } = await front.take(({ method }) => method === "elicitation/create");
      front.send({ jsonrpc: "2.0", id, result: { action: "accept", content: { name } } });
    }
    expect(await Promise.all(calls)).toEqual(["Ada", "Bob"]);
    // A client that cannot be asked is not asked.
    expect(await mute.call("a__ask")).not.toMatch(/Ada|Bob/);
    expect(mute.frames.filter(({ method }) => method === "elicitation/create")).toEqual([]);
  });

  test("are taken back when the daemon is killed, and the call ends", async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake(elicitation);
    const call = front.call("a__ask");
    const { id } = await front.take(({ method }) => method === "elicitation/create");
    const [daemon = 0] = home.daemons();
    process.kill(daemon, "SIGKILL");
    expect(await call).toContain("outcome_unknown");
    const { params } = await front.take(({ method }) => method === "notifications/cancelled");
    expect(params).toMatchObject({ requestId: id });
    // The answer has no reader any more, and the client goes on.
    front.send({ jsonrpc: "2.0", id, result: { action: "accept", content: { name: "late" } } });
    expect(await front.call("a__note", { key: "next" })).toBe("next");
  });
});
