import { Numbered, setNewest } from "@junctor/core/async";
import { type CallRecord, type CallState, idOf } from "./call-record.ts";
import type { CallHistory } from "./history.ts";

const maxSteps = 30;
/** Calls whose callers are away, with the questions. Beyond this the oldest is no longer known as the same call. */
const maxAway = 4096;

/** The calls that are underway, those whose caller is away, and the last that ended. */
export class LiveCalls {
  readonly #underway = new Numbered<CallRecord>();
  readonly #away = new Map<number, CallRecord>();
  readonly #ended = new EndedCalls();
  readonly #history: CallHistory | undefined;
  /** Undefined while there is no reader. */
  #changes: CallChanges | undefined;

  constructor(history?: CallHistory) {
    this.#history = history;
  }

  /** The calls underway, oldest first. */
  get underway(): readonly CallRecord[] {
    return this.#underway.values().toSorted((one, another) => one.number - another.number);
  }

  /** The calls whose caller is away, and after them the calls that ended last, newest first. */
  get recent(): readonly CallRecord[] {
    return [...[...this.#away.values()].toReversed(), ...this.newest(maxRecent)];
  }

  find(id: string): CallRecord | undefined {
    return (
      this.#away.get(Number(id.slice(1))) ??
      this.#underway.values().find((call) => idOf(call) === id) ??
      this.#ended.find(id)
    );
  }

  begin(call: CallRecord): void {
    call.place = this.#underway.add(call);
  }

  /** The call of this method whose caller comes back with answers; undefined when it is not known any more. */
  resume(id: string, method: string): CallRecord | undefined {
    const number = Number(id.slice(1));
    const call = this.#away.get(number);
    if (call?.method !== method) return undefined;
    this.#away.delete(number);
    call.place = this.#underway.add(call);
    return call;
  }

  step(call: CallRecord, state: CallState, now: number): void {
    call.state = state;
    if (state === "sent" && call.steps === undefined && call.sentAt === undefined) {
      call.sentAt = now;
      return;
    }
    call.steps ??= [];
    if (call.steps.length < maxSteps) call.steps.push({ state, atMs: now - call.startedAt });
    this.#changes?.changed(call);
  }

  /** Forgets a record whose request turned out to belong to another call. */
  drop(call: CallRecord): void {
    this.#underway.delete(call.place);
    this.#changes?.dropped(call);
  }

  /** The request of a call was answered: the call has ended, or its caller left with questions. */
  end(call: CallRecord, now: number, isAway: boolean): void {
    this.#underway.delete(call.place);
    if (isAway) {
      this.step(call, "parked", now);
      setNewest(this.#away, call.number, call, maxAway);
      return;
    }
    call.state = "ended";
    call.endedAt = now;
    this.#ended.add(call);
    this.#history?.add(call);
    this.#changes?.ended(call);
  }

  /** Begins to note changes for one reader, until it is disposed. */
  watch(): CallChanges & Disposable {
    const changes = new CallChanges(this);
    this.#changes = changes;
    return Object.assign(changes, {
      [Symbol.dispose]: () => {
        this.#changes = undefined;
      },
    });
  }

  /** The calls that ended last, newest first. */
  newest(most: number): readonly CallRecord[] {
    return this.#ended.newest(most);
  }
}

/** The most calls that are remembered after their end. */
const maxRecent = 64;
/** The most calls that are remembered for longer because their arguments and results were recorded: they can be looked up by id. */
const maxRecorded = 64;

/** The calls that ended last. */
class EndedCalls {
  readonly #recent: (CallRecord | undefined)[] = Array.from({ length: maxRecent }, () => undefined);
  readonly #recorded: CallRecord[] = [];
  #count = 0;

  add(call: CallRecord): void {
    this.#recent[this.#count++ % maxRecent] = call;
    if (call.args !== undefined && this.#recorded.push(call) > maxRecorded) this.#recorded.shift();
  }

  /** The last ones, newest first. */
  newest(most: number): readonly CallRecord[] {
    const length = Math.min(most, this.#count, maxRecent);
    return Array.from(
      { length },
      (_, index) => this.#recent[(this.#count - 1 - index) % maxRecent] as CallRecord,
    );
  }

  find(id: string): CallRecord | undefined {
    const isIt = (call: CallRecord | undefined): boolean => call !== undefined && idOf(call) === id;
    return this.#recent.find(isIt) ?? this.#recorded.find(isIt);
  }
}

/** Finds the calls that were not noted. */
interface CallSource {
  readonly underway: readonly CallRecord[];
  /** The calls that ended last, newest first. */
  newest(most: number): readonly CallRecord[];
}

/** The most calls that are taken at once. */
const maxTaken = 50;
/** The most noted calls, not counting those that the reader knows. */
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

  /** A call that the reader knows is noted, so that the reader learns of its end even if many others end. */
  ended(call: CallRecord): void {
    const isKnown = call.lastSeenState !== undefined || call.steps !== undefined;
    if (!isKnown || !this.#note(call)) this.#unread++;
  }

  dropped(call: CallRecord): void {
    this.#noted.delete(call);
  }

  /** The changes since the last time. Those that do not fit come the next time, or are counted. */
  take(): {
    readonly calls: readonly CallRecord[];
    /** How many more calls ended. */
    readonly skipped: number;
  } {
    const calls = [...this.#noted].slice(0, maxTaken);
    for (const call of calls) this.#noted.delete(call);
    const unread = this.#unread;
    this.#unread = 0;
    const isNew = (call: CallRecord): boolean => call.lastSeenState !== call.state && !calls.includes(call);
    const ended = this.#source
      .newest(unread)
      .filter((call) => call.lastSeenState === undefined && isNew(call));
    const shown = ended.slice(0, maxTaken - calls.length);
    const begun = this.#source.underway.filter((call) => !this.#noted.has(call) && isNew(call));
    calls.push(...shown);
    calls.push(...begun.slice(0, maxTaken - calls.length));
    for (const call of calls) call.lastSeenState = call.state;
    return { calls, skipped: unread - shown.length };
  }

  #note(call: CallRecord): boolean {
    if (this.#noted.size >= maxNoted && call.lastSeenState === undefined) return false;
    this.#noted.add(call);
    return true;
  }
}
