import { expect, test } from "vitest";
import { nothingDeclared } from "../../../core/src/mcp/extension.ts";
import { newestModernRevision, toRelayable } from "../../../core/src/mcp/revision.ts";
import { parseConfigValue } from "../config/parse-config.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { Audience } from "./audience.ts";
import { LineQueue } from "./line-queue.ts";
import { OwnLines } from "./own-lines.ts";
import type { PooledLine } from "./pooled-line.ts";

const declares = toRelayable({}, newestModernRevision);

/** The audience of one session of a caller. */
const sessionOf = (holder: string): Audience => ({
  owner: {},
  holder,
  era: "legacy",
  declares,
  extensions: nothingDeclared,
});

/** Lines over HTTP, of which there may be 256 in all. They are idle unless a test says otherwise. */
function create(): OwnLines {
  const clock = createVirtualClock();
  const [config] = parseConfigValue(
    { mcpServers: { up: { url: "http://127.0.0.1:9" } } },
    { file: "config", env: {} },
  ).servers;
  let opened = 0;
  return new OwnLines({
    config: config!,
    clock,
    create: (audience) => {
      const line = { client: undefined, [Symbol.asyncDispose]: () => Promise.resolve() };
      return { audience, line, inUse: 0, usedAt: ++opened, sessions: new Set() } as unknown as PooledLine;
    },
  });
}

test("a caller with many sessions loses its own idle lines, and no other's", () => {
  const lines = create();
  const modest = lines.open(sessionOf("modest"))!;
  for (let count = 0; count < 1000; count++) expect(lines.open(sessionOf("greedy"))).toBeDefined();
  expect(lines.all).toContain(modest);
  expect(lines.all.length).toBeLessThanOrEqual(256);
});

test("a caller that keeps all its lines busy leaves room for another", () => {
  const lines = create();
  let opened = 0;
  for (
    let line = lines.open(sessionOf("greedy"));
    line !== undefined;
    line = lines.open(sessionOf("greedy"))
  ) {
    line.inUse = 1;
    opened++;
  }
  expect(opened).toBe(205);
  for (let count = 0; count < 20; count++) expect(lines.open(sessionOf("modest"))).toBeDefined();
});

test("at the limit the caller with most makes room for the others", () => {
  const lines = create();
  for (let count = 0; count < 205; count++) lines.open(sessionOf("greedy"));
  for (let caller = 0; caller < 100; caller++)
    expect(lines.open(sessionOf(`caller ${caller}`))).toBeDefined();
  const left = lines.all.filter(({ audience }) => audience.holder === "greedy");
  expect(left).toHaveLength(156);
});

test("one caller's waiting calls leave room for another's", async () => {
  const queue = new LineQueue<string, string>("up", createVirtualClock(), () => () => {});
  const signal = new AbortController().signal;
  const waits = Array.from({ length: 1000 }, () => queue.wait("any", signal, "greedy"));
  const settled = Promise.allSettled(waits);
  const other = queue.wait("any", signal, "modest");
  queue.serve(() => "line");
  await expect(other).resolves.toBe("line");
  const refused = (await settled).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(200);
  // What waited no longer counts.
  const again = queue.wait("any", signal, "greedy");
  queue.serve(() => "line");
  await expect(again).resolves.toBe("line");
});
