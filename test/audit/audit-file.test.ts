import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { AuditError } from "../../packages/core/src/errors/index.ts";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { openAuditFile } from "../../packages/junctor/src/audit/audit-file.ts";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "junctor-audit-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

const record = (call: number): AuditRecord =>
  ({ call: String(call), tool: "t".repeat(call % 50), outcome: "ok" }) as AuditRecord;

async function callsIn(path: string): Promise<readonly number[]> {
  const lines = (await readFile(path, "utf8")).split("\n");
  expect(lines.pop()).toBe("");
  const records = lines.map((line) => JSON.parse(line) as AuditRecord);
  return records.flatMap(({ call }) => (call === undefined ? [] : [Number(call)]));
}

describe("records", () => {
  test("are one line each, in order, readable by the owner alone", async () => {
    const path = join(await folder(), "audit.jsonl");
    await using file = await openAuditFile({ path });
    await Promise.all(Array.from({ length: 100 }, async (_, call) => file.sink(record(call))));
    expect(await callsIn(path)).toEqual(Array.from({ length: 100 }, (_, call) => call));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("are added to what is there", async () => {
    const path = join(await folder(), "audit.jsonl");
    for (const call of [1, 2]) {
      await using file = await openAuditFile({ path });
      await file.sink(record(call));
    }
    expect(await callsIn(path)).toEqual([1, 2]);
  });

  test("are all on disk when the file is closed, waited for or not", async () => {
    const path = join(await folder(), "audit.jsonl");
    const file = await openAuditFile({ path });
    for (let call = 0; call < 50; call++) void file.sink(record(call));
    await file[Symbol.asyncDispose]();
    await file[Symbol.asyncDispose]();
    expect(await callsIn(path)).toHaveLength(50);
    await expect(file.sink(record(51))).rejects.toThrow(AuditError);
  });
});

describe("a file that is full", () => {
  test("makes room, and no record is lost, torn or written twice", async () => {
    const here = await folder();
    const path = join(here, "audit.jsonl");
    const total = 400;
    await using file = await openAuditFile({ path, maxBytes: 4000, keep: 100 });
    await Promise.all(Array.from({ length: total }, async (_, call) => file.sink(record(call))));
    const names = await readdir(here);
    expect(names.length).toBeGreaterThan(5);
    const numbers = names.map((name) => Number(name.split(".")[2] ?? 0)).toSorted((a, b) => b - a);
    const calls: number[] = [];
    for (const number of numbers) {
      const file = number === 0 ? path : `${path}.${number}`;
      expect((await stat(file)).size).toBeLessThanOrEqual(4000);
      calls.push(...(await callsIn(file)));
    }
    expect(calls).toEqual(Array.from({ length: total }, (_, call) => call));
  });

  test("keeps so many old ones and no more", async () => {
    const here = await folder();
    const path = join(here, "audit.jsonl");
    await using file = await openAuditFile({ path, maxBytes: 1024, keep: 2 });
    for (let call = 0; call < 100; call++) await file.sink(record(call));
    expect((await readdir(here)).toSorted()).toEqual(["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
  });

  test("begins again where none is kept", async () => {
    const here = await folder();
    const path = join(here, "audit.jsonl");
    await using file = await openAuditFile({ path, maxBytes: 1024, keep: 0 });
    for (let call = 0; call < 20; call++) await file.sink(record(call));
    expect(await readdir(here)).toEqual(["audit.jsonl"]);
    expect((await stat(path)).size).toBeLessThanOrEqual(1024);
    expect((await callsIn(path)).at(-1)).toBe(19);
  });
});

test("a file that cannot be written is a clear error", async () => {
  const here = await folder();
  await writeFile(join(here, "plain"), "");
  const opening = openAuditFile({ path: join(here, "plain", "audit.jsonl") });
  await expect(opening).rejects.toThrow(AuditError);
  await expect(opening).rejects.toThrow(/cannot be written to .*plain.*Name a file/);
  await expect(openAuditFile({ path: here })).rejects.toMatchObject({ code: "audit.file", path: here });
});
