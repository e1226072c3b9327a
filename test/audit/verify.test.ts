import { appendFile, mkdtemp, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { openAuditFile } from "../../packages/junctor/src/audit/audit-file.ts";
import { type AuditReport, verifyAudit } from "../../packages/junctor/src/audit/verify.ts";

async function newPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "junctor-verify-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return join(folder, "audit.jsonl");
}

const record = (call: number): AuditRecord =>
  ({
    time: new Date(call).toISOString(),
    call: String(call),
    tool: "é".repeat(call % 9),
    outcome: "ok",
  }) as AuditRecord;

/** Writes records from one number to another, as one process. */
async function write(path: string, from: number, to: number, maxBytes = 64 * 1024): Promise<void> {
  await using file = await openAuditFile({ path, maxBytes, keep: 100 });
  await Promise.all(Array.from({ length: to - from }, async (_, index) => file.sink(record(from + index))));
}

const linesOf = async (path: string): Promise<string[]> =>
  (await readFile(path, "utf8")).split("\n").slice(0, -1);
const toText = (lines: readonly string[]): string => `${lines.join("\n")}\n`;
const kindsOf = ({ faults }: AuditReport): readonly string[] =>
  faults.map(({ kind, line }) => `${kind} ${line}`);

describe("a log that is as it was written", () => {
  test("is whole, over several processes and rotations", async () => {
    const path = await newPath();
    for (let run = 0; run < 3; run++) await write(path, run * 20, run * 20 + 20, 4000);
    const report = await verifyAudit(path);
    expect(report).toMatchObject({ records: 60, unlinked: 0, faults: [] });
    expect(report.files.length).toBeGreaterThan(4);
    expect(await verifyAudit(path, report.hash)).toEqual(report);
  });

  test("may have lost its oldest files, as rotation removes them", async () => {
    const path = await newPath();
    await write(path, 0, 60, 4000);
    const { files } = await verifyAudit(path);
    for (const file of files.slice(0, 2)) await rm(file);
    expect((await verifyAudit(path)).faults).toEqual([]);
  });

  test("may have been written by two processes at once", async () => {
    const path = await newPath();
    await using one = await openAuditFile({ path });
    await using other = await openAuditFile({ path });
    for (let call = 0; call < 20; call++) await (call % 3 === 0 ? one : other).sink(record(call));
    expect(await verifyAudit(path)).toMatchObject({ records: 20, faults: [] });
  });

  test("may begin with records of an earlier version", async () => {
    const path = await newPath();
    await writeFile(path, toText([JSON.stringify(record(1)), JSON.stringify(record(2))]));
    await write(path, 3, 5);
    expect(await verifyAudit(path)).toMatchObject({ records: 2, unlinked: 2, faults: [] });
    const lines = await linesOf(path);
    await writeFile(path, toText([lines[0]!, lines[1]!.replace("ok", "no"), ...lines.slice(2)]));
    expect(kindsOf(await verifyAudit(path))).toEqual(["removed 3"]);
  });
});

describe("a log that was changed", () => {
  /** Ten lines: a first, eight records, a last. Says what a check finds after an edit of them. */
  async function after(edit: (lines: string[]) => readonly string[]): Promise<readonly string[]> {
    const path = await newPath();
    await write(path, 0, 8);
    const { hash } = await verifyAudit(path);
    await writeFile(path, toText(edit(await linesOf(path))));
    return kindsOf(await verifyAudit(path, hash));
  }

  test("is found out wherever one character was changed", async () => {
    const path = await newPath();
    await write(path, 0, 4);
    const bytes = await readFile(path);
    for (let at = 0; at < bytes.length; at += 7) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      await writeFile(path, changed);
      const { faults } = await verifyAudit(path);
      const line = bytes.subarray(0, at).toString("latin1").split("\n").length;
      expect(faults.map((fault) => fault.line)).toContain(line);
    }
  });

  test("is found out where a line was removed", async () => {
    for (let at = 0; at < 9; at++)
      expect(await after((lines) => lines.toSpliced(at, 1))).toEqual([`removed ${at + 1}`]);
    expect(await after((lines) => lines.toSpliced(2, 3))).toEqual(["removed 3"]);
  });

  test("is found out where its end was cut off, by a hash that was kept", async () => {
    expect(await after((lines) => lines.slice(0, 6))).toEqual(["removed 6"]);
  });

  test("is found out where a line was inserted: a copy, or one with hashes of its own", async () => {
    expect(await after((lines) => lines.toSpliced(5, 0, lines[2]!))).toEqual(["inserted 6"]);
    const path = await newPath();
    await write(path, 0, 1);
    const foreign = (await linesOf(path))[1]!;
    expect(await after((lines) => lines.toSpliced(5, 0, foreign))).toEqual(["removed 6"]);
    expect(await after((lines) => lines.toSpliced(5, 0, '{"call":"9"}'))).toEqual(["inserted 6"]);
    expect(await after((lines) => lines.toSpliced(5, 0, "words"))).toEqual(["edited 6"]);
  });

  test("is found out where lines changed places", async () => {
    for (let at = 1; at < 8; at++) {
      const swapped = await after((lines) => lines.with(at, lines[at + 1]!).with(at + 1, lines[at]!));
      expect(swapped).toEqual([`reordered ${at + 2}`]);
    }
  });

  test("is found out where a file in the middle is missing, or files changed places", async () => {
    const path = await newPath();
    await write(path, 0, 60, 4000);
    const { files } = await verifyAudit(path);
    const kept = await readFile(files[1]!);
    await rm(files[1]!);
    expect(await verifyAudit(path)).toMatchObject({ faults: [{ file: files[2], line: 1, kind: "removed" }] });
    await rename(files[2]!, files[1]!);
    await writeFile(files[2]!, kept);
    expect((await verifyAudit(path)).faults.length).toBeGreaterThan(0);
  });

  test("has a torn end where the last line was cut, and heals it by the next line", async () => {
    const path = await newPath();
    await write(path, 0, 4);
    const whole = await readFile(path);
    for (let cut = 1; cut < 400; cut += 13) {
      await writeFile(path, whole);
      await truncate(path, whole.length - cut);
      expect(kindsOf(await verifyAudit(path)).at(-1)).toMatch(/^torn /);
      await write(path, 4, 6);
      expect(await verifyAudit(path)).toMatchObject({ faults: [] });
      const lines = await linesOf(path);
      expect(lines.filter((line) => line.includes('"event":"opened"'))).toHaveLength(2);
      // The torn line stays as it is, and cannot be taken away or changed.
      const torn = lines.findLastIndex((line) => line.includes('"event":"opened"')) - 1;
      await writeFile(path, toText(lines.toSpliced(torn, 1)));
      expect(kindsOf(await verifyAudit(path))).toContain(`removed ${torn + 1}`);
      await writeFile(path, toText(lines.with(torn, `${lines[torn]}x`)));
      expect((await verifyAudit(path)).faults[0]).toMatchObject({ kind: "edited", line: torn + 1 });
    }
  });

  test("is found out while it is still written to", async () => {
    const path = await newPath();
    await using file = await openAuditFile({ path });
    await file.sink(record(1));
    await file.sink(record(2));
    await truncate(path, 0);
    await file.sink(record(3));
    expect(kindsOf(await verifyAudit(path))).toEqual(["removed 1"]);
    await appendFile(path, "nothing to do with it\n");
    await file.sink(record(4));
    expect(kindsOf(await verifyAudit(path))).toEqual(["removed 1", "edited 2"]);
  });
});
