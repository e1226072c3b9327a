import { type CallRecord, shortened } from "./call-record.ts";

type Outcome = NonNullable<CallRecord["outcome"]>;

/** A call that ended, as the history has it. */
export interface EndedCall extends Pick<
  CallRecord,
  | "number"
  | "method"
  | "caller"
  | "client"
  | "era"
  | "isFromPage"
  | "startedAt"
  | "name"
  | "server"
  | "upstreamEra"
  | "outcome"
  | "code"
  | "delivery"
  | "reason"
  | "bytesIn"
  | "bytesOut"
  | "traceId"
> {
  /** Its place in the order in which calls ended. */
  readonly seq: number;
  readonly ms: number;
  /** How long after its beginning it was sent to its server. */
  readonly sentMs: number | undefined;
}

/** Which calls are wanted. Every condition that is stated must hold. */
interface HistoryFilter {
  readonly isFailed?: boolean | undefined;
  readonly server?: string | undefined;
  /** The name of a caller, or of the client of one without a name. */
  readonly caller?: string | undefined;
  readonly tool?: string | undefined;
  /** Each word must be in one of the texts of a call. */
  readonly words?: string | undefined;
  /** Calls that began before this reading of `performance.now()` are left out. */
  readonly since?: number | undefined;
}

/** What is asked of the history besides the filter. */
interface HistoryQuery extends HistoryFilter {
  /** Only calls that ended before the one with this `seq`. */
  readonly before?: number | undefined;
  readonly limit: number;
  /** How many bars the counts over time have. */
  readonly bars: number;
  readonly now: number;
}

/** One page of calls, the newest first, with the counts that hold for all pages. */
interface HistoryPage {
  readonly calls: readonly EndedCall[];
  /** `before` of the next page; undefined on the last one. */
  readonly next: number | undefined;
  readonly all: number;
  readonly failed: number;
  readonly callBars: readonly number[];
  readonly failedBars: readonly number[];
  /** When the first bar begins. */
  readonly barsFrom: number;
}

/** Sums of calls that have something in common. */
export interface CallGroup {
  readonly caller: string | undefined;
  readonly server: string | undefined;
  readonly tool: string | undefined;
  calls: number;
  failed: number;
  sumMs: number;
  mostMs: number;
  bytesIn: number;
  bytesOut: number;
  /** When the last of them began. */
  lastAt: number;
  /** How long each took; empty unless it was asked for. */
  readonly durations: number[];
}

const outcomes: readonly Outcome[] = [
  "ok",
  "tool_error",
  "input_required",
  "task",
  "cancelled",
  "refused",
  "failed",
];
const failures: ReadonlySet<Outcome | undefined> = new Set(["tool_error", "refused", "failed"]);

/** The methods that are work; the others are lists and housekeeping. */
const workMethods: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"]);

function isFailure({ outcome }: Pick<CallRecord, "outcome">): boolean {
  return failures.has(outcome);
}

/** The texts of a call, in the order of their columns. */
const method = 0;
const name = 1;
const server = 2;
const caller = 3;
const client = 4;
const code = 5;
const delivery = 6;
const reason = 7;
const textColumns = 8;

const chunkRows = 4096;

/** The columns of some calls. Rows of 78 bytes, so that 100,000 calls take 8 MB. */
class Chunk {
  readonly startedAt = new Float64Array(chunkRows);
  readonly ms = new Float32Array(chunkRows);
  readonly sentMs = new Float32Array(chunkRows);
  readonly number = new Uint32Array(chunkRows);
  readonly bytesIn = new Uint32Array(chunkRows);
  readonly bytesOut = new Uint32Array(chunkRows);
  readonly texts = new Uint32Array(chunkRows * textColumns);
  readonly trace = new Uint32Array(chunkRows * 4);
  readonly outcome = new Uint8Array(chunkRows);
  /** 1: failed; 2: legacy caller; 4: modern server; 8: legacy server; 16: from the page; 32: has a trace; 64: work. */
  readonly flags = new Uint8Array(chunkRows);

  static readonly bytes: number = chunkRows * (8 + 5 * 4 + textColumns * 4 + 16 + 2);
}

/** Texts by number; 0 stands for none. */
class TextTable {
  readonly texts: string[] = [""];
  readonly #numbers = new Map<string, number>();
  characters = 0;

  add(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const added = this.texts.length;
    this.texts.push(text);
    this.#numbers.set(text, added);
    this.characters += text.length;
    return added;
  }

  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  /** What it takes at most: two bytes a character, and the entries in a map and an array. */
  get bytes(): number {
    return this.characters * 2 + this.texts.length * 128;
  }
}

interface RingOptions {
  /** The maximum number of calls kept. */
  readonly capacity: number;
  /** The most bytes of their texts. At the limit the oldest calls are forgotten. */
  readonly maxTextBytes: number;
}

/** The last calls that ended, in columns. Adding one appends to typed arrays and makes no object. */
export class CallRing {
  readonly #capacity: number;
  readonly #maxTextBytes: number;
  readonly #chunks: Chunk[] = [];
  #texts = new TextTable();
  #first = 0;
  #next = 0;
  /** The last text of each column and its number: most calls are like the one before. */
  readonly #lastTexts: (string | undefined)[] = Array.from({ length: textColumns }, () => undefined);
  readonly #lastNumbers = new Uint32Array(textColumns);

  constructor({ capacity, maxTextBytes }: RingOptions) {
    this.#capacity = Math.ceil(capacity / chunkRows) * chunkRows;
    this.#maxTextBytes = maxTextBytes;
  }

  get first(): number {
    return this.#first;
  }

  /** The `seq` that the next call gets. */
  get next(): number {
    return this.#next;
  }

  get bytes(): number {
    return this.#chunks.length * Chunk.bytes + this.#texts.bytes;
  }

  /** When the oldest call began; undefined without one. */
  get since(): number | undefined {
    return this.#first === this.#next ? undefined : this.#chunk(this.#first).startedAt[rowOf(this.#first)];
  }

  add(call: CallRecord): void {
    if (this.#texts.bytes > this.#maxTextBytes) this.#makeRoom();
    const place = this.#next % this.#capacity;
    const chunk = (this.#chunks[Math.floor(place / chunkRows)] ??= new Chunk());
    const row = place % chunkRows;
    const ended = call.endedAt ?? call.startedAt;
    chunk.startedAt[row] = call.startedAt;
    chunk.ms[row] = ended - call.startedAt;
    chunk.sentMs[row] = call.sentAt === undefined ? Number.NaN : call.sentAt - call.startedAt;
    chunk.number[row] = call.number;
    chunk.bytesIn[row] = Math.min(call.bytesIn, 0xffffffff);
    chunk.bytesOut[row] = Math.min(call.bytesOut, 0xffffffff);
    chunk.outcome[row] = outcomes.indexOf(call.outcome ?? "ok");
    chunk.flags[row] =
      (failures.has(call.outcome) ? 1 : 0) |
      (call.era === "legacy" ? 2 : 0) |
      (call.upstreamEra === undefined ? 0 : call.upstreamEra === "modern" ? 4 : 8) |
      (call.isFromPage ? 16 : 0) |
      (call.traceId === undefined ? 0 : 32) |
      (workMethods.has(call.method) ? 64 : 0);
    if (call.traceId !== undefined) writeTrace(chunk.trace, row * 4, call.traceId);
    const at = row * textColumns;
    const { texts } = chunk;
    texts[at + method] = this.#number(method, call.method);
    texts[at + name] = this.#number(name, call.name);
    texts[at + server] = this.#number(server, call.server);
    texts[at + caller] = this.#number(caller, call.caller);
    texts[at + client] = this.#number(client, call.client);
    texts[at + code] = this.#number(code, call.code);
    texts[at + delivery] = this.#number(delivery, call.delivery);
    texts[at + reason] = this.#number(reason, call.reason);
    this.#next++;
    if (this.#next - this.#first > this.#capacity) this.#first = this.#next - this.#capacity;
  }

  read(seq: number): EndedCall {
    const chunk = this.#chunk(seq);
    const row = rowOf(seq);
    const flags = chunk.flags[row] ?? 0;
    const text = (column: number): string | undefined => this.#text(chunk, row, column);
    const sentMs = chunk.sentMs[row] ?? Number.NaN;
    return {
      seq,
      number: chunk.number[row] ?? 0,
      method: text(method) ?? "",
      name: text(name),
      server: text(server),
      caller: text(caller),
      client: text(client),
      code: text(code),
      delivery: text(delivery),
      reason: text(reason),
      era: (flags & 2) === 0 ? "modern" : "legacy",
      upstreamEra: (flags & 4) !== 0 ? "modern" : (flags & 8) !== 0 ? "legacy" : undefined,
      isFromPage: (flags & 16) !== 0,
      startedAt: chunk.startedAt[row] ?? 0,
      ms: chunk.ms[row] ?? 0,
      sentMs: Number.isNaN(sentMs) ? undefined : sentMs,
      outcome: outcomes[chunk.outcome[row] ?? 0],
      bytesIn: chunk.bytesIn[row] ?? 0,
      bytesOut: chunk.bytesOut[row] ?? 0,
      traceId: (flags & 32) === 0 ? undefined : readTrace(chunk.trace, row * 4),
    };
  }

  /** The call with this number; undefined for one that is forgotten. */
  find(number: number): EndedCall | undefined {
    for (let seq = this.#next - 1; seq >= this.#first; seq--)
      if (this.#chunk(seq).number[rowOf(seq)] === number) return this.read(seq);
    return undefined;
  }

  query(query: HistoryQuery): HistoryPage {
    const { limit, bars, now, isFailed = false, before = Number.POSITIVE_INFINITY } = query;
    const fits = this.#toTest(query);
    const since = query.since ?? Number.NEGATIVE_INFINITY;
    // The bars of a young gateway begin with its first call.
    const barsFrom = Math.max(since, this.since ?? now);
    const perBar = Math.max(1, (now - barsFrom) / bars);
    const callBars = Array.from({ length: bars }, () => 0);
    const failedBars = Array.from({ length: bars }, () => 0);
    const calls: EndedCall[] = [];
    let all = 0;
    let failed = 0;
    let next: number | undefined;
    for (let seq = this.#next - 1; seq >= this.#first; seq--) {
      const chunk = this.#chunk(seq);
      const row = rowOf(seq);
      const startedAt = chunk.startedAt[row] ?? 0;
      if (startedAt < since || !fits(chunk, row)) continue;
      const bar = Math.max(0, Math.min(bars - 1, Math.floor((startedAt - barsFrom) / perBar)));
      const hasFailed = ((chunk.flags[row] ?? 0) & 1) !== 0;
      all++;
      callBars[bar] = (callBars[bar] ?? 0) + 1;
      if (hasFailed) {
        failed++;
        failedBars[bar] = (failedBars[bar] ?? 0) + 1;
      }
      if (seq >= before || (isFailed && !hasFailed)) continue;
      if (calls.length < limit) calls.push(this.read(seq));
      else next ??= calls.at(-1)?.seq;
    }
    return { calls, next, all, failed, callBars, failedBars, barsFrom };
  }

  /** Sums of the calls from one `seq` on, by caller, server and tool. Only calls that are work count. */
  group(from: number, since: number = Number.NEGATIVE_INFINITY, withDurations = false): readonly CallGroup[] {
    const groups = new Map<number, CallGroup>();
    const wide = 2 ** 17; // Three numbers of texts fit into one number.
    for (let seq = Math.max(from, this.#first); seq < this.#next; seq++) {
      const chunk = this.#chunk(seq);
      const row = rowOf(seq);
      const flags = chunk.flags[row] ?? 0;
      const startedAt = chunk.startedAt[row] ?? 0;
      if ((flags & 64) === 0 || startedAt < since) continue;
      const at = row * textColumns;
      const who = chunk.texts[at + caller] || (chunk.texts[at + client] ?? 0);
      const owner = chunk.texts[at + server] ?? 0;
      // A name that no server has was made up by the caller.
      const tool = owner === 0 ? 0 : (chunk.texts[at + name] ?? 0);
      const key = ((who % wide) * wide + (owner % wide)) * wide + (tool % wide);
      let group = groups.get(key);
      if (group === undefined) {
        const { texts } = this.#texts;
        const text = (number: number): string | undefined => (number === 0 ? undefined : texts[number]);
        group = { caller: text(who), server: text(owner), tool: text(tool), ...noSums(), durations: [] };
        groups.set(key, group);
      }
      const ms = chunk.ms[row] ?? 0;
      group.calls++;
      group.failed += flags & 1;
      group.sumMs += ms;
      group.mostMs = Math.max(group.mostMs, ms);
      group.bytesIn += chunk.bytesIn[row] ?? 0;
      group.bytesOut += chunk.bytesOut[row] ?? 0;
      group.lastAt = Math.max(group.lastAt, startedAt);
      if (withDurations) group.durations.push(ms);
    }
    return [...groups.values()];
  }

  #number(column: number, text: string | undefined): number {
    if (text === undefined) return 0;
    if (this.#lastTexts[column] === text) return this.#lastNumbers[column] ?? 0;
    const number = this.#texts.add(text);
    this.#lastTexts[column] = text;
    this.#lastNumbers[column] = number;
    return number;
  }

  #text(chunk: Chunk, row: number, column: number): string | undefined {
    const number = chunk.texts[row * textColumns + column] ?? 0;
    return number === 0 ? undefined : this.#texts.texts[number];
  }

  #chunk(seq: number): Chunk {
    return this.#chunks[Math.floor((seq % this.#capacity) / chunkRows)] as Chunk;
  }

  /** Texts are looked at once for a filter, and rows by their numbers. */
  #toTest(filter: HistoryFilter): (chunk: Chunk, row: number) => boolean {
    const { texts } = this.#texts;
    const tests: ((chunk: Chunk, row: number) => boolean)[] = [];
    const at = (chunk: Chunk, row: number, column: number): number =>
      chunk.texts[row * textColumns + column] ?? 0;
    const exact = (text: string | undefined): number | undefined =>
      text === undefined ? undefined : (this.#texts.find(text) ?? -1);
    const [owner, who, tool] = [exact(filter.server), exact(filter.caller), exact(filter.tool)];
    if (owner !== undefined) tests.push((chunk, row) => at(chunk, row, server) === owner);
    if (tool !== undefined) tests.push((chunk, row) => at(chunk, row, name) === tool);
    if (who !== undefined)
      tests.push((chunk, row) => (at(chunk, row, caller) || at(chunk, row, client)) === who);
    for (const word of (filter.words ?? "").toLowerCase().split(/\s+/)) {
      if (word === "") continue;
      const having = new Uint8Array(texts.length);
      for (const [number, text] of texts.entries()) if (text.toLowerCase().includes(word)) having[number] = 1;
      const number = /^c\d+$/.test(word) ? Number(word.slice(1)) : -1;
      tests.push((chunk, row) => {
        for (let column = 0; column < textColumns; column++)
          if (having[at(chunk, row, column)] === 1) return true;
        if (chunk.number[row] === number || outcomes[chunk.outcome[row] ?? 0] === word) return true;
        return ((chunk.flags[row] ?? 0) & 32) !== 0 && readTrace(chunk.trace, row * 4) === word;
      });
    }
    return (chunk, row) => tests.every((test) => test(chunk, row));
  }

  /** Forgets the oldest calls and the texts that only they had. */
  #makeRoom(): void {
    while (this.#texts.bytes > this.#maxTextBytes / 2 && this.#first < this.#next) {
      this.#first += Math.ceil((this.#next - this.#first) / 4);
      const { texts } = this.#texts;
      const kept = new TextTable();
      for (let seq = this.#first; seq < this.#next; seq++) {
        const chunk = this.#chunk(seq);
        const at = rowOf(seq) * textColumns;
        for (let column = 0; column < textColumns; column++) {
          const number = chunk.texts[at + column] ?? 0;
          if (number !== 0) chunk.texts[at + column] = kept.add(texts[number] ?? "");
        }
      }
      this.#texts = kept;
    }
    this.#lastTexts.fill(undefined);
  }
}

/** The most calls, and the most failures that are kept apart from them, so that a busy gateway does not lose them. */
const maxCalls = 100_000;
const maxFailures = 5_000;
const mebibyte = 1024 ** 2;

/** The calls that ended, and apart from them those that failed. It takes at most 30 MB. */
export class CallHistory {
  readonly calls: CallRing = new CallRing({ capacity: maxCalls, maxTextBytes: 16 * mebibyte });
  readonly failures: CallRing = new CallRing({ capacity: maxFailures, maxTextBytes: 4 * mebibyte });

  add(call: CallRecord): void {
    this.calls.add(call);
    if (isFailure(call)) this.failures.add(call);
  }

  get bytes(): number {
    return this.calls.bytes + this.failures.bytes;
  }

  find(number: number): EndedCall | undefined {
    return this.calls.find(number) ?? this.failures.find(number);
  }

  /** Reads the ring of failures where it reaches further back. */
  query(query: HistoryQuery): HistoryPage {
    const { calls, failures } = this;
    const reachesFurther = (failures.since ?? Infinity) < (calls.since ?? Infinity);
    if (query.isFailed !== true || !reachesFurther) return calls.query(query);
    const { all } = calls.query({ ...query, limit: 0 });
    return { ...failures.query(query), all };
  }
}

function rowOf(seq: number): number {
  return seq % chunkRows;
}

function noSums(): Omit<CallGroup, "caller" | "server" | "tool" | "durations"> {
  return { calls: 0, failed: 0, sumMs: 0, mostMs: 0, bytesIn: 0, bytesOut: 0, lastAt: 0 };
}

function writeTrace(trace: Uint32Array, at: number, id: string): void {
  for (let part = 0; part < 4; part++)
    trace[at + part] = Number.parseInt(id.slice(part * 8, part * 8 + 8), 16);
}

function readTrace(trace: Uint32Array, at: number): string {
  return Array.from(trace.subarray(at, at + 4), (part) => part.toString(16).padStart(8, "0")).join("");
}

/** The first words of the recorded result of a tool that failed. */
export function reasonOf(result: string | undefined): string | undefined {
  const text = /"text":("(?:[^"\\]|\\.){0,400})/.exec(result ?? "")?.[1];
  if (text === undefined) return undefined;
  try {
    return shortened(JSON.parse(`${text.replace(/\\u?[0-9a-f]{0,3}$/i, "")}"`) as string);
  } catch {
    return undefined;
  }
}
