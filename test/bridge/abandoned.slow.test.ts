// Calls whose callers never come back with an answer. The full number, as in the promise of the bridge:
//
//   JUNCTOR_BRIDGE_ABANDONED=10000 npx vitest run test/bridge/abandoned.slow.test.ts

import { join } from "node:path";
import { expect, test } from "vitest";
import { runNode } from "../support/child.ts";
import { fixture, startUpstream } from "./support/upstream.ts";

const count = Number(process.env["JUNCTOR_BRIDGE_ABANDONED"] ?? 1000);

interface Report {
  readonly parked: number;
  readonly warmUp: number;
  readonly refused: number;
  readonly lost: number;
  readonly cancelled: number;
  readonly heapBefore: number;
  readonly heapParked: number;
  readonly heapExpired: number;
  readonly why?: string;
  readonly heapAfter: number;
}

test(
  `${count} abandoned calls are all cancelled and leave nothing behind`,
  { timeout: 300_000 },
  async () => {
    await using upstream = await startUpstream("legacy", "http");
    const { url } = upstream.entry as { readonly url: string };
    const log = join(upstream.folder, "log");
    const run = await runNode("--expose-gc", fixture("bridge-abandoned.mjs"), String(count), url, log);
    expect(run.stderr).toBe("");
    const report = JSON.parse(run.stdout) as Report;
    console.log(report);
    expect(report).toMatchObject({ parked: count, refused: 0, lost: 2, cancelled: count + report.warmUp });
    expect(upstream.events().filter((line) => line.startsWith("run "))).toHaveLength(count + report.warmUp);
    expect(report.heapAfter).toBeLessThan(report.heapBefore * 1.2);
  },
);
