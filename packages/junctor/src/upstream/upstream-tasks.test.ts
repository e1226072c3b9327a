import { expect, test } from "vitest";
import type { Client } from "../../../client/src/client/client.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { TaskState } from "../../../core/src/provider/task.ts";
import { createMemoryTasks } from "../../../server/src/registry/memory-tasks.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { PooledLine } from "./pooled-line.ts";
import { TaskLines } from "./task-lines.ts";
import { createUpstreamTasks } from "./upstream-tasks.ts";

const taskOf = (ref: string): TaskState => ({
  ref,
  status: "working",
  createdAt: 0,
  updatedAt: 0,
  ttlMs: null,
  pollMs: 0,
});

test("a caller that watches many tasks has a server asked 100 times a second, and delays no other caller", async () => {
  const clock = createVirtualClock();
  const looks = { greedy: 0, modest: 0 };
  const client = {
    tasks: {
      get: (ref: string) => {
        looks[ref.startsWith("g") ? "greedy" : "modest"]++;
        return taskOf(ref);
      },
    },
  } as unknown as Client;
  const lines = new TaskLines({ server: "it", pool: { keep: () => () => {} }, clock });
  const tasks = createUpstreamTasks({
    server: "it",
    clock,
    lines,
    use: (_ref, _context, use) => use(client),
    useAt: (_at, _context, use) => use(client),
    isProcess: false,
    hosted: createMemoryTasks({ clock }),
    toFailure: (error) => error,
  });
  const stops: (() => void)[] = [];
  for (let count = 0; count < 1000; count++)
    stops.push(await tasks.watch!(`m:g${count}`, createCallContext({ caller: "greedy" }), () => {}));
  stops.push(await tasks.watch!("m:m", createCallContext({ caller: "modest" }), () => {}));
  Object.assign(looks, { greedy: 0, modest: 0 });
  await clock.advance(60_000);
  expect(looks.greedy).toBeGreaterThan(3000);
  expect(looks.greedy).toBeLessThanOrEqual(60 * 100);
  expect(looks.modest).toBeGreaterThan(250);
  for (const stop of stops) stop();
  await clock.advance(60_000);
  expect(clock.sleeping).toBe(0);
});

test("a caller with many tasks leaves room for another caller's, and for the lines of them", async () => {
  let kept = 0;
  const release = (): void => void kept--;
  const pool = {
    keep: () => {
      kept++;
      return release;
    },
  };
  const lines = new TaskLines({ server: "it", pool, clock: createVirtualClock() });
  const line = {} as PooledLine;
  const begin = async (ref: string, caller: string): Promise<void> => {
    const task = taskOf(ref);
    await lines.call(createCallContext({ caller }), async () => ({ kind: "task", task }));
    lines.keep(task, line);
  };
  while (lines.refusal(createCallContext({ caller: "greedy" })) === undefined)
    await begin(`g${lines.size}`, "greedy");
  expect(lines.size).toBeLessThan(1024);
  await begin("m", "modest");
  expect(lines.find("m")).toBe(line);
  lines[Symbol.dispose]();
  expect(kept).toBe(0);
});

test("tasks of a process that has ended do not count", async () => {
  const lines = new TaskLines({
    server: "it",
    pool: { keep: () => () => {} },
    clock: createVirtualClock(),
  });
  const context = createCallContext({ caller: "ada" });
  const line = { client: {} } as PooledLine;
  while (lines.refusal(context) === undefined) {
    const task = taskOf(`t${lines.size}`);
    await lines.call(context, async () => ({ kind: "task", task }));
    lines.keep(task, line);
  }
  line.client = {} as Client;
  expect(lines.refusal(context)).toBeUndefined();
  expect(lines.size).toBe(0);
});
