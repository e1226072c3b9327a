import {
  type Backoff,
  createBackoff,
  type Clock,
  waitFor,
  createDeferred,
  type Deferred,
} from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import type { Health } from "./health.ts";
import type { StartGate } from "./start-gate.ts";
import { toFailure } from "./to-reason.ts";
import type { Hide } from "./to-upstream-error.ts";

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
  /** How long after a failure it is tried again at a caller's wish, however long the back-off is; for servers that are no process. */
  readonly hurryMs?: number | undefined;
  /** Whether it is started again by itself when it was lost; else when it is needed next. */
  readonly keepsAlive: boolean;
}

/** The starts of one connection: when the next one may come, and how many failed. */
export class Starts {
  readonly #options: StartsOptions & { readonly backoff: Backoff };
  /** Something was started in this life. */
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

  /** A new life begins. Throws when the other connections of the server have seen that it does not last. */
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
  succeeded(): void {
    this.timeouts = 0;
  }

  /** The server was up for a while: earlier failures count no more. */
  lasted(): void {
    this.#options.backoff.reset();
    this.failures = 0;
  }

  /** The server could not be started, or is gone. `ownDelayMs` is waited for instead of the back-off, for a server that lasted. */
  failed(cause: unknown, ownDelayMs?: number): Health {
    this.failures++;
    const { clock, backoff, gate, common, hide } = this.#options;
    if (ownDelayMs === undefined && this.#hasStarted) common?.note();
    const since = clock.now();
    const gateMs = delayMsOf(this.#options);
    const nextTryAt = since + Math.max(gateMs, ownDelayMs ?? backoff.next());
    // One that may not be started is down for the reason for which the earlier ones failed.
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
