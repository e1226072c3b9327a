import { expect, test } from "vitest";
import { nothingDeclared } from "../../../core/src/mcp/extension.ts";
import { newestModernRevision, toRelayable } from "../../../core/src/mcp/revision.ts";
import { parseConfigValue } from "../config/parse-config.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { CallerGroup } from "./caller-groups.ts";
import { ConnectionQueue, OwnConnections, type PooledConnection } from "./pool.ts";

const declares = toRelayable({}, newestModernRevision);

/** The group of one session of a caller. */
const sessionOf = (holder: string): CallerGroup => ({
  owner: {},
  holder,
  era: "legacy",
  declares,
  extensions: nothingDeclared,
});

/** Connections over HTTP, of which there may be 256 in all. They are idle unless a test says otherwise. */
function create(): OwnConnections {
  const clock = createVirtualClock();
  const [config] = parseConfigValue(
    { mcpServers: { up: { url: "http://127.0.0.1:9" } } },
    { file: "config", env: {} },
  ).servers;
  let opened = 0;
  return new OwnConnections({
    config: config!,
    configNow: () => config!,
    clock,
    create: (group) => {
      const connection = { client: undefined, [Symbol.asyncDispose]: () => Promise.resolve() };
      return {
        group,
        connection,
        inUse: 0,
        usedAt: ++opened,
        sessions: new Set(),
      } as unknown as PooledConnection;
    },
  });
}

test("a caller with many sessions loses its own idle connections, and no other's", () => {
  const connections = create();
  const modest = connections.open(sessionOf("modest"))!;
  for (let count = 0; count < 1000; count++) expect(connections.open(sessionOf("greedy"))).toBeDefined();
  expect(connections.all).toContain(modest);
  expect(connections.all.length).toBeLessThanOrEqual(256);
});

test("a caller that keeps all its connections busy leaves room for another", () => {
  const connections = create();
  let opened = 0;
  for (
    let connection = connections.open(sessionOf("greedy"));
    connection !== undefined;
    connection = connections.open(sessionOf("greedy"))
  ) {
    connection.inUse = 1;
    opened++;
  }
  expect(opened).toBe(205);
  for (let count = 0; count < 20; count++) expect(connections.open(sessionOf("modest"))).toBeDefined();
});

test("at the limit the caller with most makes room for the others", () => {
  const connections = create();
  for (let count = 0; count < 205; count++) connections.open(sessionOf("greedy"));
  for (let caller = 0; caller < 100; caller++)
    expect(connections.open(sessionOf(`caller ${caller}`))).toBeDefined();
  const left = connections.all.filter(({ group }) => group.holder === "greedy");
  expect(left).toHaveLength(156);
});

test("one caller's waiting calls leave room for another's", async () => {
  const queue = new ConnectionQueue<string, string>("up", createVirtualClock(), () => () => {});
  const signal = new AbortController().signal;
  const waits = Array.from({ length: 1000 }, () => queue.wait("any", signal, "greedy"));
  const settled = Promise.allSettled(waits);
  const other = queue.wait("any", signal, "modest");
  queue.serve(() => "connection");
  await expect(other).resolves.toBe("connection");
  const refused = (await settled).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(200);
  // Calls that waited before no longer count.
  const again = queue.wait("any", signal, "greedy");
  queue.serve(() => "connection");
  await expect(again).resolves.toBe("connection");
});
