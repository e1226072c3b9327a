import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { hashAfter, hashOf, type ChainLink, noHash, readLine } from "./chain.ts";
import { findOldFiles, type Torn } from "./log-file.ts";

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

/** Most faults that are reported. */
const maxFaults = 100;

/**
 * Reads an audit log, with its old files, and checks every hash and every link. Rejects when a file cannot be read. `expected` is
 * the hash of a line that must be there: without it nothing shows that the end of a log was cut off.
 */
export async function verifyAudit(path: string, expected?: string): Promise<AuditReport> {
  const old = await findOldFiles(path);
  const files = [...old.map(({ number }) => `${path}.${number}`), path];
  if (old.length === 0) await stat(path);
  const check = createCheck(files);
  for (const file of files) {
    let number = 0;
    for await (const line of linesOf(file)) check.take(line, file, ++number);
  }
  return { files, ...check.end(expected) };
}

type Known = { -readonly [Key in Exclude<keyof AuditReport, "files" | "faults">]: AuditReport[Key] };

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

/** A line that is no record. It is accepted if the next one says that it was cut short. */
interface CutLine {
  readonly torn: Torn;
  readonly file: string;
  readonly line: number;
}

/** Follows the chains of a log through its files. */
function createCheck(files: readonly string[]): {
  /** Takes the next line of a file. */
  take(line: LogLine, file: string, number: number): void;
  end(expected: string | undefined): Omit<AuditReport, "files">;
} {
  const chains = new Map<string, LastLink>();
  /** The hashes of all lines, shortened. */
  const seen = new Set<string>();
  const faults: AuditFault[] = [];
  const known = { records: 0, unlinked: 0, hash: noHash, first: undefined, last: undefined } as Known;
  let at = { file: "", line: 0 };
  let cut: CutLine | undefined;
  /** The line before. Nothing but its end may have been missing. */
  let last: Buffer | undefined;
  const gaps: Gap[] = [];

  const tell = (kind: AuditFault["kind"], message: string, place = at): void => {
    if (faults.length < maxFaults) faults.push({ file: place.file, line: place.line, kind, message });
  };
  const tellCut = (): void => {
    if (cut !== undefined) tell("edited", "the line is no record", cut);
    cut = undefined;
  };
  const remember = (hash: string): void => {
    seen.add(shorten(hash));
    known.hash = hash;
  };

  /** A line that was cut short is fine if the one that was written next says the same of it. */
  const checkTorn = (noted: Torn | undefined): void => {
    const before = cut?.torn ?? (noted === undefined || last === undefined ? undefined : toTorn(last));
    if (noted?.bytes === before?.bytes && noted?.sha256 === before?.sha256) cut = undefined;
    else if (cut === undefined) tell("removed", "a line that was cut short stood before it");
    tellCut();
  };

  const checkFirst = ({ seq, previous }: ChainLink, event: unknown): void => {
    const begins = event === "opened" || event === "continued";
    // The files before the oldest were removed in time.
    if (begins && seen.size === 0 && at.file === files[0]) return;
    if (event !== "opened" || seq !== 1)
      return tell("removed", `its chain begins here with line ${seq}; the lines before that are missing`);
    if (previous !== noHash && !seen.has(shorten(previous)))
      tell("removed", "the line it was written after is missing, or is another now");
  };

  const tellBreak = (before: LastLink, { chain, seq }: ChainLink): void => {
    const missing = seq - before.seq - 1;
    if (missing === 0) return tell("edited", "the line before it is not the one it was written after");
    if (missing > 0) {
      gaps.push({ chain, after: before.seq, before: seq, missing, place: at });
      return;
    }
    const gap = gaps.find((each) => each.chain === chain && each.after < seq && seq < each.before);
    const isMoved = gap !== undefined && gap.missing > 0;
    if (isMoved) gap.missing--;
    const where = `line ${seq} of its chain comes after line ${before.seq}`;
    tell(isMoved ? "reordered" : "inserted", isMoved ? where : `${where}, and was there already`);
  };
  /** Lines that turned up elsewhere are not missing. */
  const tellGaps = (): void => {
    for (const { missing, place } of gaps) {
      const lines = missing === 1 ? "1 line is" : `${missing} lines are`;
      if (missing > 0) tell("removed", `${lines} missing before it`, place);
    }
    faults.sort((one, other) => files.indexOf(one.file) - files.indexOf(other.file) || one.line - other.line);
  };

  const follow = (link: ChainLink, { event, time }: { readonly [key: string]: unknown }): void => {
    const before = chains.get(link.chain);
    if (before === undefined) checkFirst(link, event);
    else if (before.hash !== link.previous || before.seq + 1 !== link.seq) tellBreak(before, link);
    else if (before.file !== at.file && event !== "continued")
      tell("removed", "the first line of the file is missing");
    if (before === undefined || link.seq > before.seq)
      chains.set(link.chain, { seq: link.seq, hash: link.hash, file: at.file });
    remember(link.hash);
    if (event === undefined) known.records++;
    if (typeof time !== "string") return;
    known.first ??= time;
    known.last = time;
  };

  const judge = (bytes: Buffer): void => {
    const text = bytes.toString("utf8");
    const line = readLine(text);
    if (line.kind === "linked") {
      checkTorn(line.record["torn"] as Torn | undefined);
      return follow(line.link, line.record);
    }
    tellCut();
    if (line.kind === "no_record") cut = { torn: toTorn(bytes), ...at };
    else if (line.kind === "edited") tell("edited", "the line is not what its hash was made of");
    else {
      known.unlinked++;
      remember(hashAfter(text));
      if (chains.size > 0) tell("inserted", "the line has no hash, and lines before it have one");
    }
  };

  return {
    take: ({ bytes, isWhole }, file, number) => {
      if (at.file !== file) tellCut();
      at = { file, line: number };
      if (isWhole) {
        judge(bytes);
        last = bytes;
        return;
      }
      tellCut();
      tell("torn", "the line has no end: it was cut short, or is being written");
    },
    end: (expected) => {
      tellCut();
      if (expected !== undefined && !seen.has(shorten(expected)))
        tell("removed", `no line has the hash ${expected}: that line was removed or changed`);
      tellGaps();
      return { ...known, faults };
    },
  };
}

function toTorn(bytes: Buffer): Torn {
  return { bytes: bytes.length, sha256: hashOf(bytes) };
}

/** Enough to tell the lines of a log apart, in a quarter of the memory. */
function shorten(hash: string): string {
  return hash.slice(0, 16);
}

/** A line without its end. */
interface LogLine {
  readonly bytes: Buffer;
  /** Whether it had an end; the last one of a file may have none. */
  readonly isWhole: boolean;
}

async function* linesOf(file: string): AsyncGenerator<LogLine> {
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
