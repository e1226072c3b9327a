import { Numbered } from "@junctor/core/async";
import { CallChanges } from "./call-changes.ts";
import { type CallRecord, type CallState, idOf } from "./call-record.ts";
import { EndedCalls, maxRecent } from "./ended-calls.ts";

const maxSteps = 30;
/** Calls whose callers are away, with the questions. Beyond this the oldest is no longer known as the same call. */
const maxAway = 4096;

/** The calls that are underway, those whose caller is away, and the last that ended. */
export class LiveCalls {
  readonly #underway = new Numbered<CallRecord>();
  readonly #away = new Map<number, CallRecord>();
  readonly #ended = new EndedCalls();
  /** Undefined while there is no reader. */
  #changes: CallChanges | undefined;

  /** Those underway, oldest first. */
  get underway(): readonly CallRecord[] {
    return this.#underway.values().toSorted((one, another) => one.number - another.number);
  }

  /** Those that ended last, newest first, after those whose caller is away. */
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

  /** A call of this method of which a caller brings the answers; undefined when it is not known any more. */
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
      this.#away.set(call.number, call);
      const [oldest] = this.#away.keys();
      if (this.#away.size > maxAway && oldest !== undefined) this.#away.delete(oldest);
      return;
    }
    call.state = "ended";
    call.endedAt = now;
    this.#ended.add(call);
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

  /** Those that ended last, newest first. */
  newest(most: number): readonly CallRecord[] {
    return this.#ended.newest(most);
  }
}
