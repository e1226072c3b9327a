import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { type Clock, cpuMsSince, cpuTime, LeakyBuckets, systemClock } from "@junctor/core/async";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import { withinTime } from "@junctor/core/schema";

/** How much of long results is kept, and for how long. */
export interface KeptResultsOptions {
  /** Bytes kept for all callers; 64 MiB. */
  readonly maxBytes?: number;
  /** Bytes kept for one caller; 16 MiB. A result that is longer is kept up to here. */
  readonly maxBytesPerCaller?: number;
  /** How long a result is kept; 10 minutes. */
  readonly ttlMs?: number;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
}

const optionKeys: KeysOf<KeptResultsOptions> = keys("maxBytes maxBytesPerCaller ttlMs clock");

/** A result that is kept for its caller: text, or the bytes of an image and the like. */
export interface KeptResult {
  readonly bytes: Buffer;
  /** Undefined for text. */
  readonly mimeType: string | undefined;
  /** Whether its end was not kept. */
  readonly isCut: boolean;
}

interface OwnedResult extends KeptResult {
  readonly owner: string;
  readonly expiresAt: number;
}

/**
 * Results that were too long for a model, for a while. Each has an id of 128 random bits that opens for one owner only. At a limit the
 * oldest of the owner, or of the owner that holds most, are forgotten.
 */
export class KeptResults {
  readonly #limits: Required<KeptResultsOptions>;
  readonly #byId = new Map<string, OwnedResult>();
  readonly #held = new Map<string, number>();
  #bytes = 0;
  /** The time that owners take to read them. */
  readonly reading: ReadingTime;

  constructor(options: KeptResultsOptions = {}) {
    assertKnownKeys("KeptResults", options, optionKeys);
    const { maxBytes = 64 * 1024 * 1024, maxBytesPerCaller = 16 * 1024 * 1024 } = options;
    const { ttlMs = 10 * 60_000, clock = systemClock } = options;
    this.#limits = { maxBytes, maxBytesPerCaller: Math.min(maxBytesPerCaller, maxBytes), ttlMs, clock };
    this.reading = new ReadingTime(clock);
  }

  /** How many bytes are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a result, and returns its id. */
  keep(content: string | Buffer, owner: string, mimeType?: string): string {
    this.#sweep();
    const { maxBytes, maxBytesPerCaller: maxEach, ttlMs, clock } = this.#limits;
    const whole = typeof content === "string" ? toBytes(content, maxEach) : content;
    // A copy: a part of a larger buffer would keep all of it.
    const bytes = whole.length > maxEach ? Buffer.from(whole.subarray(0, maxEach)) : whole;
    const isCut = typeof content === "string" ? content.length > bytes.length : bytes.length < content.length;
    while (this.#heldBy(owner) + bytes.length > maxEach) this.#dropOldest(owner);
    while (this.#bytes + bytes.length > maxBytes) this.#dropOldest(this.#greediest());
    const id = randomBytes(16).toString("base64url");
    this.#byId.set(id, { bytes, mimeType, isCut, owner, expiresAt: clock.now() + ttlMs });
    this.#count(owner, bytes.length);
    return id;
  }

  /** The result with an id, if it is kept and belongs to this owner. */
  open(id: string, owner: string): KeptResult | undefined {
    this.#sweep();
    const entry = this.#byId.get(id);
    return entry?.owner === owner ? entry : undefined;
  }

  #heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }

  #count(owner: string, bytes: number): void {
    this.#bytes += bytes;
    const held = this.#heldBy(owner) + bytes;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }

  #drop(id: string, { owner, bytes }: OwnedResult): void {
    this.#byId.delete(id);
    this.#count(owner, -bytes.length);
  }

  #dropOldest(owner: string): void {
    for (const [id, entry] of this.#byId) if (entry.owner === owner) return this.#drop(id, entry);
  }

  #greediest(): string {
    let most = "";
    let held = 0;
    for (const [owner, bytes] of this.#held) if (bytes > held) [most, held] = [owner, bytes];
    return most;
  }

  /** Drops what expired. The oldest come first, so the first that has time left ends the loop. */
  #sweep(): void {
    const now = this.#limits.clock.now();
    for (const [id, entry] of this.#byId) {
      if (entry.expiresAt > now) return;
      this.#drop(id, entry);
    }
  }
}

/** The first bytes of a text, without half a character at the end. */
function toBytes(text: string, maxBytes: number): Buffer {
  const bytes = Buffer.from(text.length > maxBytes ? text.slice(0, maxBytes) : text);
  if (bytes.length <= maxBytes) return bytes;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return Buffer.from(bytes.subarray(0, end));
}

/** How long one reading may take. Nothing else is served meanwhile. */
const maxReadingMs = 250;
/** How many milliseconds a caller waits for each millisecond of CPU time: one that never stops takes a fortieth of the process. */
const price = 40;

/** The time that callers take to read kept results. A caller that took too much of it has to wait. */
class ReadingTime {
  readonly #buckets: LeakyBuckets<string>;

  constructor(clock: Clock) {
    this.#buckets = new LeakyBuckets(clock, maxReadingMs * price);
  }

  /**
   * Reads for an owner. Returns the milliseconds to wait, and reads nothing, where the owner's earlier readings are not paid for.
   * Throws an `ExhaustedError` for a reading that takes too long.
   */
  run<T extends object>(owner: string, read: () => T): T | number {
    const bucket = this.#buckets.of(owner);
    const waitMs = bucket.charge(0);
    if (waitMs > 0) return waitMs;
    const begun = cpuTime();
    try {
      return withinTime(maxReadingMs, read);
    } finally {
      bucket.charge(cpuMsSince(begun) * price);
    }
  }
}
