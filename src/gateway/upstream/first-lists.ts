import { type Clock, settlesWithin } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { ListPart } from "../../tools/fit/list-fault.ts";
import type { Health } from "./health.ts";
import { listParts } from "./list-keeper.ts";

export interface FirstListsOptions {
  readonly clock: Clock;
  /** How long after the start of the server a list request waits for it. */
  readonly firstListMs: number;
  /** How long a call waits that names something which may be the server's. */
  readonly startTimeoutMs: number;
  /** Settles when a list came for the first time, or could not be had; undefined when that is so. */
  readonly first: (part: ListPart) => Promise<void> | undefined;
}

/**
 * The time before a server has listed anything. Callers wait for its first lists, within a bound, and not after it failed: one
 * that cannot start holds up nobody twice.
 */
export class FirstLists {
  readonly #options: FirstListsOptions;
  #health: Health = { kind: "idle" };
  #startedAt = 0;
  /** Settles when the server fails; made anew each time it is up. */
  #failure = createDeferred<void>();

  constructor(options: FirstListsOptions) {
    this.#options = options;
  }

  /** The server is about to be started. */
  begin(): void {
    this.#startedAt = this.#options.clock.now();
  }

  /** The health of the server changed. */
  note(health: Health): void {
    this.#health = health;
    if (health.kind === "up") this.#failure = createDeferred();
    if (health.kind === "down" || health.kind === "stopped") this.#failure.resolve();
  }

  /** Resolves when every list came or could not be had, or the server failed. */
  async all(): Promise<void> {
    await Promise.all(listParts.flatMap((part) => this.#of(part) ?? []));
  }

  /** For a list request: undefined when there is nothing to wait for. */
  forList(part: ListPart): Promise<boolean> | undefined {
    const { clock, firstListMs } = this.#options;
    const leftMs = this.#startedAt + firstListMs - clock.now();
    const first = leftMs > 0 ? this.#of(part) : undefined;
    return first && settlesWithin(first, leftMs, clock);
  }

  /** For a call: undefined when there is nothing to wait for. Rejects with the signal's reason when it aborts first. */
  forCall(part: ListPart, signal: AbortSignal): Promise<boolean> | undefined {
    const { clock, startTimeoutMs } = this.#options;
    const first = this.#of(part);
    return first && settlesWithin(first, startTimeoutMs, clock, signal);
  }

  #of(part: ListPart): Promise<void> | undefined {
    const health = this.#health;
    const hasFailed = health.kind === "down" || (health.kind === "starting" && health.after !== undefined);
    const first = this.#options.first(part);
    if (first === undefined || hasFailed || health.kind === "stopped") return undefined;
    return Promise.race([first, this.#failure.promise]);
  }
}
