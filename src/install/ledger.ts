import { join } from "node:path";
import { systemClock } from "../async/clock.ts";
import { homeFolder } from "../front/run-folder.ts";
import { readPrivateFile, writePrivateFile } from "../gateway/user-files.ts";
import { sha256Of } from "./client-file.ts";

/** What an installation changed in one file. */
export interface LedgerEntry {
  readonly client: string;
  readonly file: string;
  readonly at: string;
  /** Whether the file was there before. */
  readonly existed: boolean;
  /** The file with the bytes as they were. */
  readonly backup: string;
  readonly sha256Before: string;
  readonly sha256After: string;
  /** Servers that were taken out, as they were written. */
  readonly removed: { readonly [name: string]: unknown };
  /** What our entry replaced, if there was one. */
  readonly replaced?: unknown;
}

const maxLedgerBytes = 16 * 1024 * 1024;

const ledgerFile = (): string => join(homeFolder(), "backups", "ledger.json");

/** Everything that is installed. */
export function readLedger(): readonly LedgerEntry[] {
  const text = readPrivateFile(ledgerFile(), maxLedgerBytes);
  if (text === undefined) return [];
  return JSON.parse(text) as readonly LedgerEntry[];
}

/** Keeps the bytes of a file before it is changed. Gives the path of the copy. */
export function keepBackup(client: string, text: string): string {
  const stamp = dateText().replaceAll(/[:.]/g, "-");
  const backup = join(homeFolder(), "backups", `${client}-${stamp}-${sha256Of(text).slice(0, 8)}.bak`);
  writePrivateFile(backup, text);
  return backup;
}

export function readBackup({ backup }: LedgerEntry): string | undefined {
  return readPrivateFile(backup, 64 * 1024 * 1024);
}

/** Notes an installation; an earlier one into the same file is the one whose backup counts. */
export function noteInstalled(entry: Omit<LedgerEntry, "at">): void {
  const others = readLedger().filter(({ file }) => file !== entry.file);
  write([...others, { ...entry, at: dateText() }]);
}

export function forgetInstalled(file: string): void {
  write(readLedger().filter((entry) => entry.file !== file));
}

function write(entries: readonly LedgerEntry[]): void {
  writePrivateFile(ledgerFile(), `${JSON.stringify(entries, null, 2)}\n`);
}

function dateText(): string {
  return new Date(systemClock.date()).toISOString();
}
