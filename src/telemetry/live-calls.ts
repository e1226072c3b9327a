/** How far a call has come. */
type CallState = "queued" | "sent" | "asked" | "parked" | "answered" | "ended";

export type CallOutcome =
  | "ok"
  | "tool_error"
  | "input_required"
  | "task"
  | "cancelled"
  | "refused"
  | "failed";

/** One step of a call, and how many milliseconds after its beginning it was taken. */
interface CallStep {
  readonly state: CallState;
  readonly atMs: number;
}

/** What is known of a call while it is underway and a while after. All of it is facts: no arguments, no result. */
export interface CallRecord {
  readonly id: string;
  readonly method: string;
  /** The name or URI that the caller used. */
  readonly name: string | undefined;
  readonly caller: string | undefined;
  readonly client: string | undefined;
  readonly era: "modern" | "legacy";
  readonly isFromPage: boolean;
  /** By the monotonic clock, with fractions. */
  readonly startedAt: number;
  server: string | undefined;
  ownName: string | undefined;
  upstreamEra: "modern" | "legacy" | undefined;
  state: CallState;
  steps: CallStep[];
  outcome: CallOutcome | undefined;
  code: string | undefined;
  delivery: string | undefined;
  endedAt: number | undefined;
  /** Of its last round. */
  bytesIn: number;
  bytesOut: number;
  traceId: string | undefined;
  /** Whether its request turned out to belong to another call. */
  isDropped?: boolean;
  /** JSON text, where it is recorded. */
  args: string | undefined;
  result: string | undefined;
}

/** Told of calls that began, changed their state or ended. */
type OnCall = (call: CallRecord) => void;

const maxRecent = 256;
const maxSteps = 32;
/** Calls whose callers are away, with the questions. Beyond this the oldest is no longer known as the same call. */
const maxAway = 4096;

/** The calls that are underway, those whose caller is away, and the last that ended. */
export class LiveCalls {
  readonly underway: Map<string, CallRecord> = new Map();
  readonly #away = new Map<string, CallRecord>();
  readonly #recent: (CallRecord | undefined)[] = [];
  readonly #listeners = new Set<OnCall>();
  #ended = 0;

  /** Those that ended last, newest first, after those whose caller is away. */
  get recent(): readonly CallRecord[] {
    const count = Math.min(this.#ended, maxRecent);
    const newest = Array.from(
      { length: count },
      (_, index) => this.#recent[(this.#ended - 1 - index) % maxRecent],
    );
    return [...[...this.#away.values()].toReversed(), ...newest.filter((call) => call !== undefined)];
  }

  find(id: string): CallRecord | undefined {
    return this.underway.get(id) ?? this.#away.get(id) ?? this.#recent.find((call) => call?.id === id);
  }

  /** Calls back until the returned function is called. */
  listen(listener: OnCall): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  begin(call: CallRecord): void {
    this.underway.set(call.id, call);
    if (this.#listeners.size > 0) this.#tell(call);
  }

  /** A call of which a caller brings the answers; undefined when it is not known any more. */
  resume(id: string): CallRecord | undefined {
    const call = this.#away.get(id);
    if (call === undefined) return undefined;
    this.#away.delete(id);
    this.underway.set(id, call);
    return call;
  }

  step(call: CallRecord, state: CallState, now: number): void {
    call.state = state;
    if (call.steps.length < maxSteps) call.steps.push({ state, atMs: now - call.startedAt });
    if (this.#listeners.size > 0) this.#tell(call);
  }

  /** Forgets a record whose request turned out to belong to another call. */
  drop(call: CallRecord): void {
    call.isDropped = true;
    this.underway.delete(call.id);
  }

  /** The request of a call was answered: the call has ended, or its caller left with questions. */
  end(call: CallRecord, isAway: boolean): void {
    this.underway.delete(call.id);
    if (isAway) {
      this.#away.set(call.id, call);
      const [oldest] = this.#away.keys();
      if (this.#away.size > maxAway && oldest !== undefined) this.#away.delete(oldest);
    } else this.#recent[this.#ended++ % maxRecent] = call;
    if (this.#listeners.size > 0) this.#tell(call);
  }

  #tell(call: CallRecord): void {
    for (const listener of this.#listeners) listener(call);
  }
}
