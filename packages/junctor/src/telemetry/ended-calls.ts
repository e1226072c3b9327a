import { type CallRecord, idOf } from "./call-record.ts";

/** Most calls that are remembered after their end. */
export const maxRecent = 64;
/** Most calls that are remembered for longer because their arguments and results were recorded: they can be looked up by id. */
const maxRecorded = 64;

/** The calls that ended last. */
export class EndedCalls {
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
