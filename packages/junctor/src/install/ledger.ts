import { join } from "node:path";
import { systemClock } from "@junctor/core/async";
import type { JsonObject } from "@junctor/core/json";
import { homeFolder } from "../attach/index.ts";
import { readPrivateFile, writePrivateFile } from "../config/index.ts";
import { isOurEntry } from "./client-entry.ts";
import { sha256Of } from "./client-file.ts";
import { SpliceError } from "./json-splice.ts";

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
  /** The hash of the file as we left it; empty when the backup must not be restored. */
  readonly sha256After: string;
  /** Servers that were taken out, as they were written. */
  readonly removed: JsonObject;
  /** What our entry replaced, if there was one. */
  readonly replaced?: unknown;
}

const maxLedgerBytes = 16 * 1024 * 1024;

const ledgerFile = (): string => join(homeFolder(), "backups", "ledger.json");

/** Everything that is installed. Throws a `SpliceError` when the ledger is malformed. */
export function readLedger(): readonly LedgerEntry[] {
  const text = readPrivateFile(ledgerFile(), maxLedgerBytes);
  if (text === undefined) return [];
  try {
    return JSON.parse(text) as readonly LedgerEntry[];
  } catch {
    throw new SpliceError(ledgerFile(), "it is not valid JSON: fix or delete it; the backups are beside it");
  }
}

/** Keeps the bytes of a file before it is changed. Returns the path of the copy. */
export function keepBackup(client: string, text: string): string {
  const stamp = dateText().replaceAll(/[:.]/g, "-");
  const backup = join(homeFolder(), "backups", `${client}-${stamp}-${sha256Of(text).slice(0, 8)}.bak`);
  writePrivateFile(backup, text);
  return backup;
}

export function readBackup({ backup }: LedgerEntry): string | undefined {
  return readPrivateFile(backup, 64 * 1024 * 1024);
}

/**
 * Notes an installation. It is called before the file is written, so that an installation that is killed in between can be undone. Returns
 * a function that takes the note back.
 */
export function noteInstalled(entry: Omit<LedgerEntry, "at">): () => void {
  const ledger = readLedger();
  const earlier = ledger.find(({ file }) => file === entry.file);
  const isSecond = earlier !== undefined && isOurEntry(entry.replaced);
  const noted = { ...(isSecond ? joinNotes(earlier, entry) : entry), at: dateText() };
  write([...ledger.filter((each) => each !== earlier), noted]);
  return () => {
    const others = readLedger().filter(({ file }) => file !== entry.file);
    write(earlier === undefined ? others : [...others, earlier]);
  };
}

/** Two installations into a file as one. The first backup counts, unless the file was edited between them. */
function joinNotes(earlier: LedgerEntry, entry: Omit<LedgerEntry, "at">): LedgerEntry {
  return {
    ...earlier,
    sha256After: entry.sha256Before === earlier.sha256After ? entry.sha256After : "",
    removed: { ...earlier.removed, ...entry.removed },
  };
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
