import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { processorMsOf } from "../../packages/client/src/child/child.ts";

describe.skipIf(process.platform !== "linux")("the processor time of a tree of processes", () => {
  test("grows while a grandchild works, and counts one that has ended", async () => {
    const burn = "const until = process.cpuUsage().user + 100000; while (process.cpuUsage().user < until);";
    const parent = `require("node:child_process").spawnSync(process.execPath, ["-e", ${JSON.stringify(burn)}]); process.stdin.resume();`;
    const child = spawn(process.execPath, ["-e", parent], { stdio: ["pipe", "ignore", "ignore"] });
    const ended = once(child, "exit");
    try {
      await expect.poll(() => processorMsOf(child.pid ?? 0) ?? 0).toBeGreaterThanOrEqual(100);
    } finally {
      child.stdin.end();
      await ended;
    }
    expect(processorMsOf(child.pid ?? 0)).toBeUndefined();
  });
});
