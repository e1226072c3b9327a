import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { toCanonicalJson, writeLock } from "../../packages/junctor/src/lock/lock-file.ts";
import { openPins, type Pins } from "../../packages/junctor/src/lock/pins.ts";
import { silentLog } from "../../packages/junctor/src/log/log.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-pins-"));
afterAll(() => rmSync(folder, { recursive: true }));

const count = 10_000;
const toTools = (version: number): { name: string; inputSchema: { type: "object" } }[] =>
  Array.from({ length: count }, (_, index) => {
    return { name: `t${index}`, description: `Version ${version}.`, inputSchema: { type: "object" } };
  });
const toLists = (tools: ReturnType<typeof toTools>): Parameters<Pins["admit"]>[1] => {
  return { tools, prompts: [], resources: [], templates: [] };
};

test("10,000 definitions are compared in slices, each once, and no more when a caller looks", async () => {
  const file = join(folder, "junctor.lock");
  writeLock(
    file,
    new Map([["s", new Map([["tools", new Map(toTools(1).map((tool) => [tool.name, tool]))]])]]),
  );
  let compared = 0;
  const toJson = (_: unknown, item: unknown): string => {
    compared++;
    return toCanonicalJson(item);
  };
  const pins = openPins(
    { mode: "enforce", file, skip: [] },
    { log: silentLog, toJson, isExempt: () => false },
  );
  const tools = toTools(1);
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await pins?.prepare("s", "tools", tools);
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(90);
  expect(compared).toBe(count);
  const admitted = pins?.admit("s", toLists(tools)).tools;
  expect(admitted).toBe(tools);
  expect(pins?.admit("s", toLists(tools)).tools).toBe(admitted);
  // One of them changes: the others are not compared again.
  const next = toTools(1).with(7, { ...toTools(2)[7]! });
  expect(pins?.admit("s", toLists(next)).tools).toHaveLength(count - 1);
  expect(compared).toBe(count + 1);
});
