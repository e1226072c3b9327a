import type { CallRecord } from "./call-record.ts";

/** Calls that began, changed their state or ended, each as it is now. */
interface TakenChanges {
  readonly calls: readonly CallRecord[];
  /** How many more calls ended. */
  readonly skipped: number;
}

/** Where calls are found of which nothing was noted. */
interface CallSource {
  readonly underway: readonly CallRecord[];
  /** Those that ended last, newest first. */
  newest(most: number): readonly CallRecord[];
}

/** Most calls that are told of at once. */
const maxTold = 50;
/** Most calls of which something is noted, besides those that were told of. */
const maxNoted = 4096;

/**
 * What happened to calls since a reader was told last. Of a plain call nothing is noted: the reader finds it where it is kept
 * anyway, so that an open page costs the call nothing.
 */
export class CallChanges {
  readonly #source: CallSource;
  readonly #noted = new Set<CallRecord>();
  /** How many ended of which nothing was noted. */
  #unread = 0;

  constructor(source: CallSource) {
    this.#source = source;
  }

  /** A call took a step that most calls do not take. */
  changed(call: CallRecord): void {
    this.#note(call);
  }

  /** A call that was told of must be told to have ended, though many others end. */
  ended(call: CallRecord): void {
    const isKnown = call.told !== undefined || call.steps !== undefined;
    if (!isKnown || !this.#note(call)) this.#unread++;
  }

  dropped(call: CallRecord): void {
    this.#noted.delete(call);
  }

  /** The changes since the last time. Those that do not fit come the next time, or are counted. */
  take(): TakenChanges {
    const calls = [...this.#noted].slice(0, maxTold);
    for (const call of calls) this.#noted.delete(call);
    const unread = this.#unread;
    this.#unread = 0;
    const isNew = (call: CallRecord): boolean => call.told !== call.state && !calls.includes(call);
    const ended = this.#source.newest(unread).filter((call) => call.told === undefined && isNew(call));
    const shown = ended.slice(0, maxTold - calls.length);
    const begun = this.#source.underway.filter((call) => !this.#noted.has(call) && isNew(call));
    calls.push(...shown);
    calls.push(...begun.slice(0, maxTold - calls.length));
    for (const call of calls) call.told = call.state;
    return { calls, skipped: unread - shown.length };
  }

  #note(call: CallRecord): boolean {
    if (this.#noted.size >= maxNoted && call.told === undefined) return false;
    this.#noted.add(call);
    return true;
  }
}
