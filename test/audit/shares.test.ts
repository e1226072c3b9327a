import { mkdtemp, readdir, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import {
  type AuditFile,
  type AuditFileOptions,
  openAuditFile,
} from "../../packages/junctor/src/audit/audit-file.ts";
import { verifyAudit } from "../../packages/junctor/src/audit/verify.ts";

const maxBytes = 4096;

async function open(
  options: Partial<AuditFileOptions> = {},
): Promise<{ file: AuditFile; folder: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "junctor-shares-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "audit.jsonl");
  const file = await openAuditFile({ path, maxBytes, keep: 3, ...options });
  onTestFinished(() => file[Symbol.asyncDispose]());
  return { file, folder, path };
}

/** Writes a record of a caller as a call does; false when it is refused. */
async function write({ sink, ready }: AuditFile, caller: string): Promise<boolean> {
  try {
    await ready(caller);
  } catch {
    return false;
  }
  await sink({ caller, call: "c", tool: "t".repeat(100) } as AuditRecord);
  return true;
}

async function countWritten(file: AuditFile, caller: string, tries: number): Promise<number> {
  let written = 0;
  for (let count = 0; count < tries; count++) if (await write(file, caller)) written++;
  return written;
}

test("a caller alone may have the whole space, and its own old records make room for new ones", async () => {
  const { file, folder } = await open();
  expect(await countWritten(file, "ada", 200)).toBe(200);
  expect(await readdir(folder)).toHaveLength(4);
});

test("a greedy caller does not rotate away the records of another, and is refused before the other is", async () => {
  const { file, path } = await open();
  expect(await write(file, "ada")).toBe(true);
  const greedy = await countWritten(file, "bot", 500);
  expect(greedy).toBeGreaterThan(10);
  expect(greedy).toBeLessThan(100);
  await expect(file.ready("bot")).rejects.toThrow(
    /bot has used up its share.*raise "keep" or lower "keepDays"/,
  );
  // Whoever has used little of it goes on.
  expect(await countWritten(file, "ada", 5)).toBe(5);
  expect(await countWritten(file, "eve", 5)).toBe(5);
  const { records, faults } = await verifyAudit(path);
  expect({ records, faults }).toEqual({ records: greedy + 11, faults: [] });
});

test("a caller that does not ask is not written down without end either", async () => {
  const { file, folder } = await open();
  const record = (caller: string): AuditRecord =>
    ({ caller, call: "c", tool: "t".repeat(100) }) as AuditRecord;
  await file.sink(record("ada"));
  let written = 0;
  for (let count = 0; count < 300; count++)
    await Promise.resolve(file.sink(record("bot"))).then(
      () => written++,
      () => {},
    );
  expect(written).toBeGreaterThan(20);
  expect(written).toBeLessThan(100);
  expect((await readdir(folder)).length).toBeLessThan(12);
  await file.sink(record("eve"));
});

test("all callers together cannot have more than twice the space", async () => {
  const { file, folder } = await open();
  for (let caller = 0; caller < 300; caller++) await write(file, `caller ${caller}`);
  expect((await readdir(folder)).length).toBeLessThanOrEqual(9);
  expect(await write(file, "one more")).toBe(false);
});

test("files that are old enough make room for every caller", async () => {
  const { file, path } = await open({ keepDays: 2 });
  await write(file, "ada");
  await countWritten(file, "bot", 500);
  expect(await write(file, "bot")).toBe(false);
  await file[Symbol.asyncDispose]();
  const before = Date.now() / 1000 - 3 * 24 * 3600;
  for (const old of [1, 2, 3]) await utimes(`${path}.${old}`, before, before);
  await using again = await openAuditFile({ path, maxBytes, keep: 3, keepDays: 2 });
  expect(await countWritten(again, "bot", 5)).toBe(5);
});

test("without days to keep, what is oldest makes room", async () => {
  const { file, folder } = await open({ keepDays: 0 });
  for (const caller of ["ada", "bot"]) expect(await countWritten(file, caller, 100)).toBe(100);
  expect(await readdir(folder)).toHaveLength(4);
});
