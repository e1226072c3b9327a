import { expect, test } from "vitest";
import type { ConnectError } from "../../../core/src/errors/index.ts";
import type { StartProgress } from "../../../core/src/mcp/server.ts";
import { type VirtualClock, createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { watchStart } from "./negotiate.ts";

function watch(progress?: () => StartProgress): {
  readonly clock: VirtualClock;
  readonly given: ConnectError[];
  readonly stop: () => void;
} {
  const clock = createVirtualClock();
  const given: ConnectError[] = [];
  const link = { target: "npx some-server", ...(progress === undefined ? {} : { progress }) };
  const stop = watchStart(link, { clock, timeoutMs: 1000, maxTotalMs: 5500 }, (reason) => given.push(reason));
  return { clock, given, stop };
}

test("a server that cannot be seen at work has the time-out and no more", async () => {
  const { clock, given } = watch();
  await clock.advance(999);
  expect(given).toEqual([]);
  await clock.advance(1);
  expect(given[0]).toMatchObject({ reason: "no answer to initialize within 1000 ms", kind: "no_answer" });
  expect(clock.sleeping).toBe(0);
});

test.each([
  ["writes to its standard error stream", { stderrBytes: 1, processorMs: 0 }],
  ["uses the processor", { stderrBytes: 0, processorMs: 100 }],
])("a server that %s gets more time, until it has had all of it", async (_, step) => {
  let steps = 0;
  const { clock, given } = watch(() => {
    steps++;
    return { stderrBytes: steps * step.stderrBytes, processorMs: steps * step.processorMs };
  });
  await clock.advance(5499);
  expect(given).toEqual([]);
  await clock.advance(1);
  expect(given[0]?.reason).toBe("no answer to initialize within 5500 ms, although it was at work");
});

test("a server that stops working is given up one time-out later", async () => {
  let processorMs = 0;
  const { clock, given } = watch(() => ({ stderrBytes: 0, processorMs }));
  processorMs = 400;
  await clock.advance(1000);
  // What a program uses to do nothing is not progress.
  processorMs = 420;
  await clock.advance(999);
  expect(given).toEqual([]);
  await clock.advance(1);
  expect(given[0]?.reason).toBe("no answer to initialize within 1000 ms");
});

test("a server that answered is no longer watched", async () => {
  const { clock, given, stop } = watch();
  stop();
  await clock.advance(10_000);
  expect(given).toEqual([]);
  expect(clock.sleeping).toBe(0);
});
