import { expect, test } from "vitest";
import type { Client } from "../../../client/src/client/client.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { emptyListing } from "../../../core/src/provider/listing.ts";
import type { Outcome, Provider, Task } from "../../../core/src/provider/provider.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { PooledConnection } from "./pool.ts";
import { TaskConnections, UpstreamTasks } from "./tasks.ts";
import { offersAll } from "./upstream.ts";

const taskOf = (ref: string): Task => ({
  ref,
  createdAt: 0,
  updatedAt: 0,
  ttlMs: null,
  pollMs: 0,
});

const workingOf = (ref: string): Outcome & { readonly task: Task } => ({
  kind: "working",
  task: taskOf(ref),
});

test("a caller that watches many tasks has a server asked 100 times a second, and delays no other caller", async () => {
  const clock = createVirtualClock();
  const looks = { greedy: 0, modest: 0 };
  const client = {
    list: () => emptyListing,
    offers: () => offersAll,
    call: ({ ref = "" }) => {
      looks[ref.startsWith("g") ? "greedy" : "modest"]++;
      return workingOf(ref);
    },
  } satisfies Provider as unknown as Client;
  const connections = new TaskConnections({ server: "it", pool: { keep: () => () => {} }, clock });
  const tasks = new UpstreamTasks({
    server: "it",
    clock,
    connections,
    use: async (_ref, _context, use) => use(client),
    useAt: async (_at, _context, use) => use(client),
    isProcess: false,
    hosted: {
      list: () => emptyListing,
      call: () => Promise.reject(new Error("no tasks")),
      offers: () => offersAll,
    },
    toFailure: (error) => error,
  });
  const watch = async (ref: string, caller: string): Promise<() => void> =>
    tasks.watch({ part: "tools", name: "x", ref }, createCallContext({ caller }), () => {});
  const stops: (() => void)[] = [];
  for (let count = 0; count < 1000; count++) stops.push(await watch(`m:g${count}`, "greedy"));
  stops.push(await watch("m:m", "modest"));
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
    const working = workingOf(ref);
    await connections.call(createCallContext({ caller }), async () => working);
    connections.keep(working.task, connection);
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
  const connection: { client: Client } & Partial<PooledConnection> = { client: {} as Client };
  while (connections.refusal(context) === undefined) {
    const working = workingOf(`t${connections.size}`);
    await connections.call(context, async () => working);
    connections.keep(working.task, connection as PooledConnection);
  }
  connection.client = {} as Client;
  expect(connections.refusal(context)).toBeUndefined();
  expect(connections.size).toBe(0);
});
