import { type Clock, waitFor, createDeferred } from "@junctor/core/async";
import type { ListPart } from "@junctor/core/fit";
import type { Health } from "./health.ts";
import { type KnownLists, listParts } from "./known-lists.ts";

interface FirstListsOptions {
  readonly clock: Clock;
  /** How long after the start of the server a list request waits for it. */
  readonly firstListMs: number;
  /** How long a call waits that names something which may be the server's. */
  readonly startTimeoutMs: number;
  readonly lists: Pick<KnownLists, "first" | "fresh">;
}

/**
 * The time before a server has listed anything. Callers wait for its first lists, within a bound, and not after it failed: one
 * that cannot start holds up no caller twice.
 */
export class FirstLists {
  readonly #options: FirstListsOptions;
  #health: Health = { kind: "idle" };
  #startedAt = 0;
  /** Whether it was started and is not at rest again. */
  #hasBegun = false;
  /** Settles when the server fails; made anew each time it is up. */
  #failure = createDeferred<void>();

  constructor(options: FirstListsOptions) {
    this.#options = options;
  }

  /** The server is about to be started. */
  begin(): void {
    this.#startedAt = this.#options.clock.now();
    this.#hasBegun = true;
  }

  /** The health of the server changed. */
  note(health: Health): void {
    this.#health = health;
    if (health.kind === "idle") this.#hasBegun = false;
    if (health.kind === "up") this.#failure = createDeferred();
    if (health.kind === "down" || health.kind === "stopped") this.#failure.resolve();
  }

  /** Resolves when every list came since the start or could not be had, or the server failed. */
  async all(): Promise<void> {
    await Promise.all(listParts.flatMap((part) => this.#orFailure(this.#options.lists.fresh(part)) ?? []));
  }

  /** For a list request: undefined when there is nothing to wait for. */
  forList(part: ListPart): Promise<unknown> | undefined {
    const { clock, firstListMs } = this.#options;
    const leftMs = this.#startedAt + firstListMs - clock.now();
    const first = leftMs > 0 ? this.#orFailure(this.#options.lists.first(part)) : undefined;
    return first && waitFor(first, { ms: leftMs, clock });
  }

  /**
   * For a call of something that is in no list: undefined when there is nothing to wait for. A list that is only remembered is
   * waited for too, because the server may have more by now. Rejects with the signal's reason when it aborts first.
   */
  forCall(part: ListPart, signal: AbortSignal): Promise<unknown> | undefined {
    const { clock, startTimeoutMs } = this.#options;
    const now = clock.now();
    // One that is up and does not list is waited for once, and not by each call anew.
    const since = this.#health.kind === "up" ? this.#health.since : now;
    const leftMs = since + startTimeoutMs - now;
    const isComing = this.#hasBegun || this.#health.kind === "starting" || this.#health.kind === "up";
    const fresh = isComing && leftMs > 0 ? this.#orFailure(this.#options.lists.fresh(part)) : undefined;
    return fresh && waitFor(fresh, { ms: leftMs, clock, signal });
  }

  #orFailure(listed: Promise<void> | undefined): Promise<void> | undefined {
    const health = this.#health;
    const hasFailed = health.kind === "down" || (health.kind === "starting" && health.after !== undefined);
    if (listed === undefined || hasFailed || health.kind === "stopped") return undefined;
    return Promise.race([listed, this.#failure.promise]);
  }
}
