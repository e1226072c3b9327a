import { expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../../../core/src/async/queue.ts";
import { silentLog } from "../../log/log.ts";
import { createVirtualClock, type VirtualClock } from "../../testing/virtual-clock.ts";
import { type SupervisedWorker, Supervisor, type WorkerEnd } from "./workers.ts";

/** A worker that does what the test says. */
interface PlayedWorker extends SupervisedWorker {
  readonly number: number;
  readonly serves: Deferred<void>["resolve"];
  readonly ends: Deferred<WorkerEnd>["resolve"];
  readonly orders: readonly string[];
}

interface Play {
  readonly clock: VirtualClock;
  readonly supervisor: Supervisor<PlayedWorker>;
  /** All that were started, in this order. */
  readonly started: readonly PlayedWorker[];
}

function play(count: number): Play {
  const clock = createVirtualClock();
  const started: PlayedWorker[] = [];
  const start = (number: number): PlayedWorker => {
    const up = createDeferred<void>();
    const ended = createDeferred<WorkerEnd>();
    const orders: string[] = [];
    const worker: PlayedWorker = {
      number,
      up: up.promise,
      ended: ended.promise,
      serves: up.resolve,
      ends: ended.resolve,
      orders,
      stop: () => void orders.push("stop"),
      kill: () => {
        orders.push("kill");
        ended.resolve({ how: "SIGKILL" });
      },
    };
    started.push(worker);
    return worker;
  };
  const supervisor = new Supervisor({ count, start, clock, log: silentLog, stopMs: 30_000 });
  return { clock, supervisor, started };
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}

const killed: WorkerEnd = { how: "SIGKILL" };
const numbers = ({ started }: Play): readonly number[] => started.map(({ number }) => number);

test("all are up when the last one serves", async () => {
  const { supervisor, started } = play(3);
  started[0]?.serves();
  started[1]?.serves();
  expect(await isSettled(supervisor.allUp)).toBe(false);
  started[2]?.serves();
  expect(await isSettled(supervisor.allUp)).toBe(true);
});

test("a worker that ends is replaced at once, and the others are left alone", async () => {
  const crew = play(3);
  for (const worker of crew.started) worker.serves();
  await crew.clock.advance(60_000);
  crew.started[1]?.ends(killed);
  await crew.clock.advance(0);
  expect(numbers(crew)).toEqual([1, 2, 3, 2]);
  expect(crew.started.map(({ orders }) => orders)).toEqual([[], [], [], []]);
  expect(crew.supervisor.running).toEqual([crew.started[0], crew.started[3], crew.started[2]]);
});

test("one that ends soon after each start is started with a growing delay, and at once again when one has lived", async () => {
  const crew = play(2);
  const { clock, started } = crew;
  for (const worker of started) worker.serves();
  await clock.advance(60_000);
  const delays: number[] = [];
  for (let round = 0; round < 11; round++) {
    const before = started.length;
    started.at(-1)?.ends(killed);
    let waitedMs = 0;
    await clock.advance(0);
    for (; started.length === before; waitedMs += 100) await clock.advance(100);
    delays.push(waitedMs);
  }
  expect(delays).toEqual([0, 0, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
  started.at(-1)?.serves();
  await clock.advance(10_000);
  const before = started.length;
  started.at(-1)?.ends(killed);
  await clock.advance(0);
  expect(started.length).toBe(before + 1);
});

test("a worker that says why it cannot start, before any served, ends all", async () => {
  const { supervisor, started, clock } = play(2);
  const complaint = { text: "junctor: the port is taken\n", exitCode: 3 };
  started[0]?.ends({ how: "exit code 3", complaint });
  expect(await supervisor.failed).toEqual(complaint);
  expect(started[1]?.orders).toEqual(["stop"]);
  const stopped = supervisor.stop();
  expect(await isSettled(stopped)).toBe(false);
  started[1]?.ends({ how: "exit code 0" });
  await stopped;
  expect([started.length, clock.sleeping]).toEqual([2, 0]);
});

test("workers that end without a word, before any served, end all at the fifth time", async () => {
  const { supervisor, started, clock } = play(1);
  for (let round = 0; round < 5; round++) {
    expect(await isSettled(supervisor.failed)).toBe(false);
    started.at(-1)?.ends({ how: "exit code 134" });
    await clock.advance(30_000);
  }
  const text = "junctor: the workers end before they serve (exit code 134)\n";
  expect(await supervisor.failed).toEqual({ text, exitCode: 3 });
  expect(started.length).toBe(5);
});

test("once a worker served, one that cannot start is tried again", async () => {
  const crew = play(2);
  crew.started[0]?.serves();
  await crew.clock.advance(0);
  crew.started[1]?.ends({ how: "exit code 2", complaint: { text: "no", exitCode: 2 } });
  await crew.clock.advance(0);
  expect(numbers(crew)).toEqual([1, 2, 2]);
  expect(await isSettled(crew.supervisor.failed)).toBe(false);
});

test("a worker that does not serve within a minute is killed and replaced", async () => {
  const crew = play(2);
  crew.started[0]?.serves();
  await crew.clock.advance(59_999);
  expect(crew.started[1]?.orders).toEqual([]);
  await crew.clock.advance(1);
  expect(crew.started[1]?.orders).toEqual(["kill"]);
  expect(numbers(crew)).toEqual([1, 2, 2]);
});

test("a stop lets all end, replaces none, and starts none that waits", async () => {
  const { supervisor, started, clock } = play(3);
  for (const worker of started) worker.serves();
  await clock.advance(0);
  for (let round = 0; round < 3; round++) {
    started.at(-1)?.ends(killed);
    await clock.advance(0);
  }
  // Of the third, none runs at the moment: it waits for its next start.
  const before = started.length;
  const stopped = supervisor.stop();
  expect(started.slice(0, 2).map(({ orders }) => orders)).toEqual([["stop"], ["stop"]]);
  started[0]?.ends({ how: "exit code 0" });
  expect(await isSettled(stopped)).toBe(false);
  started[1]?.ends({ how: "exit code 0" });
  await stopped;
  await clock.advance(60_000);
  expect([started.length, clock.sleeping]).toEqual([before, 0]);
});

test("workers that do not end in time are killed", async () => {
  const { supervisor, started, clock } = play(2);
  for (const worker of started) worker.serves();
  await clock.advance(0);
  const stopped = supervisor.stop();
  await clock.advance(30_000);
  await stopped;
  expect(started.map(({ orders }) => orders)).toEqual([
    ["stop", "kill"],
    ["stop", "kill"],
  ]);
});
