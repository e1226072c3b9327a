import type { CallRecord } from "./call-record.ts";

/** Calls that began, changed their state or ended, each as it is now. */
interface TakenChanges {
  readonly calls: readonly CallRecord[];
  /** How many more calls ended. */
  readonly skipped: number;
}

/** Finds the calls that were not noted. */
interface CallSource {
  readonly underway: readonly CallRecord[];
  /** Those that ended last, newest first. */
  newest(most: number): readonly CallRecord[];
}

/** Most calls that are taken at once. */
const maxTaken = 50;
/** Most noted calls, not counting those that the reader knows. */
const maxNoted = 4096;

/**
 * The calls that changed since the reader last took changes. A plain call is not noted: `take` finds it in the source, so that an
 * open page costs the call nothing.
 */
export class CallChanges {
  readonly #source: CallSource;
  readonly #noted = new Set<CallRecord>();
  /** How many calls ended that were not noted. */
  #unread = 0;

  constructor(source: CallSource) {
    this.#source = source;
  }

  /** A call took a step that most calls do not take. */
  changed(call: CallRecord): void {
    this.#note(call);
  }

  /** A call that the reader knows is noted, so that the reader learns of its end though many others end. */
  ended(call: CallRecord): void {
    const isKnown = call.told !== undefined || call.steps !== undefined;
    if (!isKnown || !this.#note(call)) this.#unread++;
  }

  dropped(call: CallRecord): void {
    this.#noted.delete(call);
  }

  /** The changes since the last time. Those that do not fit come the next time, or are counted. */
  take(): TakenChanges {
    const calls = [...this.#noted].slice(0, maxTaken);
    for (const call of calls) this.#noted.delete(call);
    const unread = this.#unread;
    this.#unread = 0;
    const isNew = (call: CallRecord): boolean => call.told !== call.state && !calls.includes(call);
    const ended = this.#source.newest(unread).filter((call) => call.told === undefined && isNew(call));
    const shown = ended.slice(0, maxTaken - calls.length);
    const begun = this.#source.underway.filter((call) => !this.#noted.has(call) && isNew(call));
    calls.push(...shown);
    calls.push(...begun.slice(0, maxTaken - calls.length));
    for (const call of calls) call.told = call.state;
    return { calls, skipped: unread - shown.length };
  }

  #note(call: CallRecord): boolean {
    if (this.#noted.size >= maxNoted && call.told === undefined) return false;
    this.#noted.add(call);
    return true;
  }
}
