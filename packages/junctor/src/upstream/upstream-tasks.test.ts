import { expect, test } from "vitest";
import type { Client } from "../../../client/src/client/client.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { TaskState } from "../../../core/src/provider/task.ts";
import { createMemoryTasks } from "../../../server/src/registry/memory-tasks.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import { TaskConnections } from "./task-connections.ts";
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
  const connections = new TaskConnections({ server: "it", pool: { keep: () => () => {} }, clock });
  const tasks = createUpstreamTasks({
    server: "it",
    clock,
    connections,
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

test("a caller with many tasks leaves room for another caller's, and for the connections of them", async () => {
  let kept = 0;
  const release = (): void => void kept--;
  const pool = {
    keep: () => {
      kept++;
      return release;
    },
  };
  const connections = new TaskConnections({ server: "it", pool, clock: createVirtualClock() });
  const connection = {} as PooledConnection;
  const begin = async (ref: string, caller: string): Promise<void> => {
    const task = taskOf(ref);
    await connections.call(createCallContext({ caller }), async () => ({ kind: "task", task }));
    connections.keep(task, connection);
  };
  while (connections.refusal(createCallContext({ caller: "greedy" })) === undefined)
    await begin(`g${connections.size}`, "greedy");
  expect(connections.size).toBeLessThan(1024);
  await begin("m", "modest");
  expect(connections.find("m")).toBe(connection);
  connections[Symbol.dispose]();
  expect(kept).toBe(0);
});

test("tasks of a process that has ended do not count", async () => {
  const connections = new TaskConnections({
    server: "it",
    pool: { keep: () => () => {} },
    clock: createVirtualClock(),
  });
  const context = createCallContext({ caller: "ada" });
  const connection = { client: {} } as PooledConnection;
  while (connections.refusal(context) === undefined) {
    const task = taskOf(`t${connections.size}`);
    await connections.call(context, async () => ({ kind: "task", task }));
    connections.keep(task, connection);
  }
  connection.client = {} as Client;
  expect(connections.refusal(context)).toBeUndefined();
  expect(connections.size).toBe(0);
});
