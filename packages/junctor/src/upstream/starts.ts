import {
  type Backoff,
  createBackoff,
  type Clock,
  waitFor,
  createDeferred,
  type Deferred,
} from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import { type Failure, type Health, type Hide, toFailure } from "./failure.ts";

/** Counts the starts of one server, so that one that cannot stay up is not started again and again. */
export class StartGate {
  readonly #clock: Clock;
  readonly #maxStarts: number;
  readonly #windowMs: number;
  /** When the last few starts were, oldest first; never more than the limit. */
  #starts: readonly number[] = [];
  /** Why the last thing that was started failed. */
  failure: Failure | undefined;

  constructor({
    clock,
    maxStarts = 6,
    windowMs = 60_000,
  }: {
    readonly clock: Clock;
    /** The most starts within the window. */
    readonly maxStarts?: number;
    readonly windowMs?: number;
  }) {
    this.#clock = clock;
    this.#maxStarts = maxStarts;
    this.#windowMs = windowMs;
  }

  /** How long the next start has to wait; 0 when it may be now. */
  get delayMs(): number {
    if (this.#starts.length < this.#maxStarts) return 0;
    return Math.max(0, (this.#starts[0] ?? 0) + this.#windowMs - this.#clock.now());
  }

  /** Something was started. */
  note(): void {
    this.#starts = [...this.#starts, this.#clock.now()].slice(-this.#maxStarts);
  }
}

export interface StartsOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly backoff?: Backoff;
  readonly gate: StartGate;
  /** Takes secrets out of the reason of a failure, which callers see. */
  readonly hide?: Hide | undefined;
  /**
   * Counts, for all connections of the server, the starts that did not last. It does not hold back connections that are kept alive, nor
   * any connection while started processes stay up.
   */
  readonly common?: StartGate | undefined;
  /** How long after a failure it is tried again when a caller needs it, however long the back-off is; for servers that are not processes. */
  readonly hurryMs?: number | undefined;
  /** Whether it is started again by itself when it was lost; else when it is needed next. */
  readonly keepsAlive: boolean;
}

/** The starts of one connection: when the next one may come, and how many failed. */
export class Starts {
  readonly #options: StartsOptions & { readonly backoff: Backoff };
  /** Something was started in this attempt. */
  #hasStarted = false;
  /** Settles when a caller needs the server before it is tried again. Undefined afterwards. */
  #hurry: Deferred<void> | undefined = createDeferred();
  /** How many failed since it last was up for a while. */
  failures = 0;
  /** How many in a row ended because the server did not answer in time. */
  timeouts = 0;
  /** When the last one began. */
  openedAt = 0;

  constructor(options: StartsOptions) {
    const { backoff = createBackoff({ minMs: 500, maxMs: 30_000 }) } = options;
    this.#options = { ...options, backoff };
  }

  /** A new attempt begins. Throws when the other connections of the server have seen that it does not last. */
  begin(health: Health): void {
    this.#hasStarted = false;
    this.#hurry = createDeferred();
    if (health.kind === "idle" && commonMsOf(this.#options) > 0) throw tooOften(this.#options.server);
  }

  /** Waits until it may be started. Timers may be a little early, so the time is looked at again. */
  async untilDue(health: Health, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      const waitMs = Math.max(delayMsOf(this.#options), this.dueAt(health) - clock.now());
      if (waitMs <= 0 || signal.aborted) break;
      const hurry = this.#hurry?.promise ?? new Promise<void>(() => {});
      await waitFor(hurry, { ms: waitMs, clock, signal }).catch(() => {});
    }
    this.openedAt = clock.now();
  }

  /** A caller needs the server. */
  hurry(): void {
    if (this.#options.hurryMs === undefined) return;
    this.#hurry?.resolve();
    this.#hurry = undefined;
  }

  /** When a server of this health is tried again. */
  dueAt(health: Health): number {
    if (health.kind !== "down") return 0;
    const { hurryMs = Number.POSITIVE_INFINITY } = this.#options;
    return this.#hurry === undefined ? Math.min(health.nextTryAt, health.since + hurryMs) : health.nextTryAt;
  }

  /** A process is about to be started. Throws when there were too many lately. */
  note(): void {
    if (delayMsOf(this.#options) > 0) throw tooOften(this.#options.server);
    this.#options.gate.note();
    this.#hasStarted = true;
    this.openedAt = this.#options.clock.now();
  }

  /** The server is up. */
  noteUp(): void {
    this.timeouts = 0;
  }

  /** The server was up for a while: earlier failures no longer count. */
  reset(): void {
    this.#options.backoff.reset();
    this.failures = 0;
  }

  /** The server could not be started, or is gone. `ownDelayMs` is waited for instead of the back-off, for a server that lasted. */
  fail(cause: unknown, ownDelayMs?: number): Health {
    this.failures++;
    const { clock, backoff, gate, common, hide } = this.#options;
    if (ownDelayMs === undefined && this.#hasStarted) common?.note();
    const since = clock.now();
    const gateMs = delayMsOf(this.#options);
    const nextTryAt = since + Math.max(gateMs, ownDelayMs ?? backoff.next());
    // A start that the limits forbid has the reason for which the earlier ones failed.
    const earlier = isTooOften(cause) ? (gate.failure ?? common?.failure) : undefined;
    const failure = earlier ?? toFailure(cause, hide);
    gate.failure = failure;
    if (common !== undefined) common.failure = failure;
    this.timeouts = failure.code === "no_answer" ? this.timeouts + 1 : 0;
    return { kind: "down", since, ...failure, nextTryAt, isBroken: gateMs > 0 };
  }
}

function delayMsOf(options: StartsOptions): number {
  return Math.max(options.gate.delayMs, commonMsOf(options));
}

/** How long the next start has to wait because of the other connections. */
function commonMsOf({ common, keepsAlive }: StartsOptions): number {
  return keepsAlive ? 0 : (common?.delayMs ?? 0);
}

const tooOftenReason = "it was started too often lately";

function tooOften(server: string): ConnectError {
  return new ConnectError(server, tooOftenReason);
}

function isTooOften(cause: unknown): boolean {
  return cause instanceof ConnectError && cause.reason === tooOftenReason;
}

interface StartSlotsOptions {
  readonly clock: Clock;
  /** The most processes that start at the same time, read when one wants to. */
  readonly maxStarts: () => number;
  /** How long one start may keep the others waiting, however busy it is; 30 s. */
  readonly maxHoldMs?: number;
  /** How often a start is looked at; 1 s. */
  readonly lookMs?: number;
}

/** A server that starts, as far as its slot is concerned. */
export interface Start {
  /** Whether a call waits for it: it comes before the others. */
  readonly isUrgent: () => boolean;
  /** The processor time it used so far, in milliseconds; undefined while it does not run. */
  readonly processorMs: () => number | undefined;
  /** Aborting gives up the wait for a slot. */
  readonly signal: AbortSignal;
}

/** A start that waits for its turn. */
interface WaitingStart {
  readonly start: Start;
  readonly begin: () => void;
}

/** A start that uses a smaller part of the processor's time between two looks waits for something, and does not slow others down. */
const minShare = 0.1;

/** How long {@link StartSlots.startGently} holds. */
const gentleMs = 1000;

/**
 * Limits how many servers start at the same time: forty programs that start at once take the processor from each other until
 * all of them are too slow. A start that is not busy, or takes very long, gives its slot to the next one and continues.
 */
export class StartSlots {
  readonly #options: Required<StartSlotsOptions>;
  readonly #waiting = new Set<WaitingStart>();
  #taken = 0;
  #isGentle = false;

  constructor(options: StartSlotsOptions) {
    this.#options = { maxHoldMs: 30_000, lookMs: 1000, ...options };
  }

  /** Lets servers start one at a time during the first second, when a client is likely to ask for the lists. */
  startGently(): void {
    const { clock } = this.#options;
    this.#isGentle = true;
    (clock.idleTimer ?? clock.timer)(gentleMs, () => {
      this.#isGentle = false;
      this.begin();
    });
  }

  /** How many starts wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether the next start has to wait for its turn. */
  get isFull(): boolean {
    return this.#taken >= (this.#isGentle ? 1 : this.#options.maxStarts());
  }

  /**
   * Resolves, when it is this start's turn, with a function that gives the slot back. Rejects with the signal's reason when it
   * aborts first.
   */
  take(start: Start): Promise<() => void> {
    const { signal } = start;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: WaitingStart = {
        start,
        begin: () => {
          signal.removeEventListener("abort", leave);
          resolve(this.#hold(start));
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
      this.begin();
    });
  }

  #hold({ processorMs }: Start): () => void {
    const { clock, maxHoldMs, lookMs } = this.#options;
    const until = clock.now() + maxHoldMs;
    this.#taken++;
    let usedMs = 0;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      stop();
      this.#taken--;
      this.begin();
    };
    const look = (): void => {
      const nowMs = processorMs() ?? usedMs;
      const isBusy = nowMs - usedMs >= lookMs * minShare;
      usedMs = nowMs;
      if (!isBusy || clock.now() >= until) return release();
      stop = clock.timer(lookMs, look);
    };
    let stop = clock.timer(lookMs, look);
    return release;
  }

  /** Begins the starts that there is room for, as when the limit was raised. */
  begin(): void {
    while (!this.isFull && this.#waiting.size > 0) {
      const all = [...this.#waiting];
      const next = all.find(({ start }) => start.isUrgent()) ?? all[0];
      if (next === undefined) return;
      this.#waiting.delete(next);
      next.begin();
    }
  }
}
