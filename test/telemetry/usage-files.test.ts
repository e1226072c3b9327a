// Counters by hour on disk: written as a whole, bounded, and readable after a crash.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readUsage, UsageFiles } from "../../packages/junctor/src/telemetry/usage-files.ts";

const hour = 3_600_000;
const now = Date.UTC(2026, 10, 19, 4, 30);
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-usage-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const group = (given: object = {}): Parameters<UsageFiles["add"]>[0][number] => ({
  caller: "ada",
  server: "files",
  tool: "files__read",
  calls: 2,
  failed: 1,
  sumMs: 30,
  mostMs: 20,
  bytesIn: 100,
  bytesOut: 1000,
  lastAt: 0,
  durations: [],
  ...given,
});

test("two processes and several hours are summed, by the time that is asked for", () => {
  const [one, other] = [new UsageFiles(folder, "aa"), new UsageFiles(folder, "bb")];
  one.add([group()], now - 5 * hour);
  one.add([group()], now);
  one.add([group({ mostMs: 50 })], now);
  one.write();
  other.add([group(), group({ caller: undefined })], now);
  other.write();
  expect(readUsage(folder, now - hour / 4)).toMatchObject([
    { caller: "ada", calls: 6, failed: 3, sumMs: 90, mostMs: 50, bytesOut: 3000 },
    { caller: "unnamed", calls: 2 },
  ]);
  expect(readUsage(folder, now - 24 * hour)[0]).toMatchObject({ calls: 8 });
});

test("what was not written yet is all that a crash loses", () => {
  const files = new UsageFiles(folder, "aa");
  files.add([group()], now);
  files.write();
  files.add([group()], now);
  expect(readUsage(folder, now)[0]).toMatchObject({ calls: 2 });
  const again = new UsageFiles(folder, "cc");
  again.add([group()], now);
  again.write();
  expect(readUsage(folder, now)[0]).toMatchObject({ calls: 4 });
});

test("damaged, foreign and huge files are passed over", () => {
  const files = new UsageFiles(folder, "aa");
  files.add([group()], now);
  files.write();
  const damaged: readonly (readonly [string, string])[] = [
    ["2026-11-19T04-ab-1.json", '{"rows":[["ada","files"'],
    ["2026-11-19T04-ab-2.json", '{"rows":[["ada","files","x",1,0,1,1,1,"many"],[1,2,3,4,5,6,7,8,9]]}'],
    ["2026-11-19T04-ab-3.json", "x".repeat(2 * 1024 ** 2)],
    ["2026-11-19T04-ab-4.json", "null"],
    ["notes.txt", "hello"],
  ];
  for (const [name, text] of damaged) writeFileSync(join(folder, name), text);
  expect(readUsage(folder, now)).toHaveLength(1);
});

test("files of more than 30 days ago are removed, others and foreign ones stay", () => {
  const files = new UsageFiles(folder, "aa");
  files.add([group()], now - 31 * 24 * hour);
  files.add([group()], now - 29 * 24 * hour);
  writeFileSync(join(folder, "notes.txt"), "mine");
  files.add([group()], now);
  files.write();
  expect(readdirSync(folder)).toHaveLength(3);
  expect(readUsage(folder, 0)[0]).toMatchObject({ calls: 4 });
});

test("a clock that is set back loses no hour", () => {
  const files = new UsageFiles(folder, "aa");
  files.add([group()], now);
  files.add([group()], now - hour);
  files.add([group()], now);
  files.write();
  expect(readUsage(folder, now - 2 * hour)[0]).toMatchObject({ calls: 6 });
});

test("callers that make up names share a row beyond 1,000", () => {
  const files = new UsageFiles(folder, "aa");
  files.add(
    Array.from({ length: 1500 }, (_, index) => group({ caller: `c${index}`, calls: 1 })),
    now,
  );
  files.write();
  const rows = readUsage(folder, now);
  expect(rows).toHaveLength(1001);
  expect(rows.find(({ caller }) => caller === "_other")).toMatchObject({ calls: 500 });
});
