import { readFile } from "node:fs/promises";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";

/** Every line of an audit file. */
export async function readAuditLines(path: string): Promise<readonly (AuditRecord & { event?: string })[]> {
  const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as AuditRecord);
}

/** The calls of an audit file that have ended, each with what the record of its beginning says. */
export async function readAuditCalls(path: string): Promise<readonly AuditRecord[]> {
  const begun = new Map<string, AuditRecord>();
  return (await readAuditLines(path)).flatMap((record) => {
    if (record.event !== undefined) return [];
    if (record.outcome !== "begun") return [{ ...begun.get(record.call), ...record }];
    begun.set(record.call, record);
    return [];
  });
}
