import { type Clock, Quota } from "@junctor/core/async";

/** The reader of an answer that did not fit into what the system holds for it. */
export interface UnreadAnswer {
  /** Whose share it counts towards. */
  readonly owner: string | undefined;
  /** Bytes that wait for it now. */
  readonly waiting: () => number;
  /** Cuts it off. */
  readonly cut: (reason: string) => void;
}

interface UnreadOptions {
  readonly maxBytes: number;
  /** Most bytes for the readers of one owner that are behind. */
  readonly maxBytesEach: () => number;
  readonly clock: Clock;
}

interface Entry {
  readonly answer: UnreadAnswer;
  readonly since: number;
  bytes: number;
}

/** How long a reader may take for an answer before it counts as behind: much may be given at once to one that keeps up. */
const behindMs = 2000;

/**
 * The answers that readers have not taken, within a budget. Beyond it the reader that has waited longest is cut off, of the
 * owner that has most. So thousands of readers that stall take no more memory than a few.
 */
export class Unread {
  readonly #options: UnreadOptions;
  readonly #quota: Quota<string | undefined>;
  readonly #entries = new Map<UnreadAnswer, Entry>();

  constructor(options: UnreadOptions) {
    this.#options = options;
    this.#quota = new Quota({ what: "unread bytes", total: options.maxBytes });
  }

  /** Bytes that wait for all readers, or did when they were last looked at. */
  get bytes(): number {
    return this.#quota.held;
  }

  /** Counts what waits for a reader, again when there is more, until it is deleted. */
  note(answer: UnreadAnswer): void {
    let entry = this.#entries.get(answer);
    if (entry === undefined) {
      entry = { answer, since: this.#options.clock.now(), bytes: 0 };
      this.#entries.set(answer, entry);
    }
    this.#measure(entry);
    const { owner } = answer;
    const { maxBytes } = this.#options;
    const maxBytesEach = this.#options.maxBytesEach();
    if (this.#quota.held <= maxBytes && this.#quota.heldBy(owner) <= maxBytesEach) return;
    for (const each of this.#entries.values()) this.#measure(each);
    const behind = this.#options.clock.now() - behindMs;
    this.#cutWhile(() => this.#quota.heldBy(owner) > maxBytesEach, { owner, before: behind });
    this.shrink(maxBytes);
  }

  delete(answer: UnreadAnswer): void {
    const entry = this.#entries.get(answer);
    if (entry === undefined) return;
    this.#entries.delete(answer);
    this.#quota.give(answer.owner, entry.bytes);
  }

  /** Cuts readers until no more than so many bytes wait. */
  shrink(maxBytes: number): void {
    while (this.#quota.held > maxBytes) {
      const owner = this.#quota.greediest();
      const held = this.#quota.held;
      this.#cutWhile(() => this.#quota.held === held, { owner, before: Infinity });
      if (this.#quota.held === held) return;
    }
  }

  #cutWhile(isOver: () => boolean, { owner, before }: { owner: string | undefined; before: number }): void {
    for (const { answer, since } of this.#entries.values()) {
      if (since > before || !isOver()) return;
      if (answer.owner !== owner) continue;
      this.delete(answer);
      answer.cut(`its readers leave ${this.#quota.heldBy(owner)} bytes unread`);
    }
  }

  #measure(entry: Entry): void {
    const bytes = entry.answer.waiting();
    this.#quota.add(entry.answer.owner, bytes - entry.bytes);
    entry.bytes = bytes;
  }
}
