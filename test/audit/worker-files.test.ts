import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findWorkerFiles, toWorkerFile } from "../../packages/junctor/src/audit/audit-file.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "junctor-files-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test("a worker's file has its number before the extension", () => {
  expect(toWorkerFile("/var/log/audit.jsonl", 2)).toBe("/var/log/audit.worker-2.jsonl");
  expect(toWorkerFile("/var/log.d/audit", 12)).toBe("/var/log.d/audit.worker-12");
});

test("the files of workers are found beside the one that is named, by their numbers", () => {
  const file = join(folder, "audit.jsonl");
  expect(findWorkerFiles(file)).toEqual([file]);
  const names = "audit.worker-10.jsonl audit.worker-2.jsonl audit.worker-2.jsonl.1 audit.worker-3.jsonl.2";
  const others = "audit.worker-x.jsonl audit.worker-1.json other.worker-1.jsonl audit.worker-0.jsonl";
  for (const name of `${names} ${others}`.split(" ")) writeFileSync(join(folder, name), "");
  const workers = [2, 3, 10].map((number) => toWorkerFile(file, number));
  expect(findWorkerFiles(file)).toEqual(workers);
  writeFileSync(file, "");
  expect(findWorkerFiles(file)).toEqual([file, ...workers]);
  expect(findWorkerFiles(workers[0] ?? "")).toEqual([workers[0]]);
  expect(findWorkerFiles(join(folder, "absent", "audit.jsonl"))).toHaveLength(1);
});
