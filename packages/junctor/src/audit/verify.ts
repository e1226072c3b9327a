import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { JsonObject } from "@junctor/core/json";
import {
  type ChainLink,
  findOldFiles,
  hashAfter,
  hashOf,
  noHash,
  readLine,
  type Torn,
} from "./chained-log.ts";

/** Where a log is not as it was written. */
interface AuditFault {
  readonly file: string;
  readonly line: number;
  readonly kind: "edited" | "removed" | "inserted" | "reordered" | "torn";
  readonly message: string;
}

/** The facts about a log after all its files were read. */
export interface AuditReport {
  readonly files: readonly string[];
  /** Records of calls. */
  readonly records: number;
  /** Records without a hash, of an earlier version, at the beginning. */
  readonly unlinked: number;
  /** Of the last line; to be kept elsewhere and given as `expected` later. */
  readonly hash: string;
  readonly first: string | undefined;
  readonly last: string | undefined;
  readonly faults: readonly AuditFault[];
}

/** The most faults that are reported. */
const maxFaults = 100;

/**
 * Reads an audit log, with its old files, and checks every hash and every link. Rejects when a file cannot be read. `expected` is
 * the hash of a line that must be there: without it nothing shows that the end of a log was cut off.
 */
export async function verifyAudit(path: string, expected?: string): Promise<AuditReport> {
  const old = await findOldFiles(path);
  const files = [...old.map(({ number }) => `${path}.${number}`), path];
  if (old.length === 0) await stat(path);
  const check = new LogCheck(files);
  for (const file of files) {
    let number = 0;
    for await (const line of linesOf(file)) check.take(line, file, ++number);
  }
  return { files, ...check.end(expected) };
}

/** The last line of one chain. */
type LastLink = Pick<ChainLink, "seq" | "hash"> & { readonly file: string };

/** Lines of a chain that are not where they belong. */
interface Gap {
  readonly chain: string;
  readonly after: number;
  readonly before: number;
  missing: number;
  readonly place: { readonly file: string; readonly line: number };
}

/** A line that is not a record. It is accepted if the next line says that it was cut short. */
interface CutLine {
  readonly torn: Torn;
  readonly file: string;
  readonly line: number;
}

/** Follows the chains of a log through its files. */
class LogCheck {
  readonly #files: readonly string[];
  readonly #chains = new Map<string, LastLink>();
  /** The hashes of all lines, shortened. */
  readonly #seen = new Set<string>();
  readonly #faults: AuditFault[] = [];
  readonly #known = { records: 0, unlinked: 0, hash: noHash, first: undefined, last: undefined } as {
    -readonly [Key in Exclude<keyof AuditReport, "files" | "faults">]: AuditReport[Key];
  };
  readonly #gaps: Gap[] = [];
  #at = { file: "", line: 0 };
  #cut: CutLine | undefined;
  /** The line before. It may be one that was cut short just before its line end. */
  #last: Buffer | undefined;

  constructor(files: readonly string[]) {
    this.#files = files;
  }

  /** Takes the next line of a file. */
  take({ bytes, isWhole }: ReadBytes, file: string, number: number): void {
    if (this.#at.file !== file) this.#reportCut();
    this.#at = { file, line: number };
    if (isWhole) {
      this.#judge(bytes);
      this.#last = bytes;
      return;
    }
    this.#reportCut();
    this.#report("torn", "the line has no end: it was cut short, or is being written");
  }

  end(expected: string | undefined): Omit<AuditReport, "files"> {
    this.#reportCut();
    if (expected !== undefined && !this.#seen.has(shorten(expected)))
      this.#report("removed", `no line has the hash ${expected}: that line was removed or changed`);
    this.#reportGaps();
    return { ...this.#known, faults: this.#faults };
  }

  #judge(bytes: Buffer): void {
    const text = bytes.toString("utf8");
    const line = readLine(text);
    if (line.kind === "linked") {
      this.#checkTorn(line.record["torn"] as Torn | undefined);
      return this.#follow(line.link, line.record);
    }
    this.#reportCut();
    if (line.kind === "no_record") this.#cut = { torn: toTorn(bytes), ...this.#at };
    else if (line.kind === "edited") this.#report("edited", "the line is not what its hash was made of");
    else {
      this.#known.unlinked++;
      this.#remember(hashAfter(text));
      if (this.#chains.size > 0)
        this.#report("inserted", "the line has no hash, and lines before it have one");
    }
  }

  #follow(link: ChainLink, { event, time }: JsonObject): void {
    const before = this.#chains.get(link.chain);
    if (before === undefined) this.#checkFirst(link, event);
    else if (before.hash !== link.previous || before.seq + 1 !== link.seq) this.#reportBreak(before, link);
    else if (before.file !== this.#at.file && event !== "continued")
      this.#report("removed", "the first line of the file is missing");
    if (before === undefined || link.seq > before.seq)
      this.#chains.set(link.chain, { seq: link.seq, hash: link.hash, file: this.#at.file });
    this.#remember(link.hash);
    if (event === undefined) this.#known.records++;
    if (typeof time !== "string") return;
    this.#known.first ??= time;
    this.#known.last = time;
  }

  #checkFirst({ seq, previous }: ChainLink, event: unknown): void {
    const begins = event === "opened" || event === "continued";
    // Older files were removed to keep to the limit.
    if (begins && this.#seen.size === 0 && this.#at.file === this.#files[0]) return;
    if (event !== "opened" || seq !== 1)
      return this.#report(
        "removed",
        `its chain begins here with line ${seq}; the lines before that are missing`,
      );
    if (previous !== noHash && !this.#seen.has(shorten(previous)))
      this.#report("removed", "the line it was written after is missing, or is another now");
  }

  /** A line that was cut short is accepted if the line written after it describes it. */
  #checkTorn(noted: Torn | undefined): void {
    const last = this.#last;
    const before = this.#cut?.torn ?? (noted === undefined || last === undefined ? undefined : toTorn(last));
    if (noted?.bytes === before?.bytes && noted?.sha256 === before?.sha256) this.#cut = undefined;
    else if (this.#cut === undefined) this.#report("removed", "a line that was cut short stood before it");
    this.#reportCut();
  }

  #remember(hash: string): void {
    this.#seen.add(shorten(hash));
    this.#known.hash = hash;
  }

  #report(kind: AuditFault["kind"], message: string, { file, line } = this.#at): void {
    if (this.#faults.length < maxFaults) this.#faults.push({ file, line, kind, message });
  }

  #reportCut(): void {
    if (this.#cut !== undefined) this.#report("edited", "the line is not a record", this.#cut);
    this.#cut = undefined;
  }

  #reportBreak(before: LastLink, { chain, seq }: ChainLink): void {
    const missing = seq - before.seq - 1;
    if (missing === 0)
      return this.#report("edited", "the line before it is not the one it was written after");
    if (missing > 0) {
      this.#gaps.push({ chain, after: before.seq, before: seq, missing, place: this.#at });
      return;
    }
    const gap = this.#gaps.find((each) => each.chain === chain && each.after < seq && seq < each.before);
    const isMoved = gap !== undefined && gap.missing > 0;
    if (isMoved) gap.missing--;
    const where = `line ${seq} of its chain comes after line ${before.seq}`;
    this.#report(isMoved ? "reordered" : "inserted", isMoved ? where : `${where}, and was there already`);
  }

  /** Lines that turned up elsewhere are not missing. */
  #reportGaps(): void {
    for (const { missing, place } of this.#gaps) {
      const lines = missing === 1 ? "1 line is" : `${missing} lines are`;
      if (missing > 0) this.#report("removed", `${lines} missing before it`, place);
    }
    const files = this.#files;
    this.#faults.sort(
      (one, other) => files.indexOf(one.file) - files.indexOf(other.file) || one.line - other.line,
    );
  }
}

function toTorn(bytes: Buffer): Torn {
  return { bytes: bytes.length, sha256: hashOf(bytes) };
}

/** Enough to tell the lines of a log apart, in a quarter of the memory. */
function shorten(hash: string): string {
  return hash.slice(0, 16);
}

/** A line without its end. */
interface ReadBytes {
  readonly bytes: Buffer;
  /** Whether it had an end; the last one of a file may have none. */
  readonly isWhole: boolean;
}

async function* linesOf(file: string): AsyncGenerator<ReadBytes> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const bytes = Buffer.concat([rest, chunk.subarray(from, end)]);
      yield { bytes, isWhole: true };
      rest = Buffer.alloc(0);
      from = end + 1;
    }
    rest = Buffer.concat([rest, chunk.subarray(from)]);
  }
  if (rest.length > 0) yield { bytes: rest, isWhole: false };
}
