import type { Clock } from "../../async/clock.ts";
import { Shares } from "../../async/shares.ts";
import type { TaskState } from "../../tools/task.ts";
import { hasEnded } from "../../tools/task.ts";
import type { Pool } from "./pool.ts";
import type { PooledLine } from "./pooled-line.ts";

interface KeptLine {
  readonly caller: string | undefined;
  readonly pooled: PooledLine;
  readonly release: () => void;
  stopTimer: () => void;
}

interface TaskLinesOptions {
  readonly pool: Pick<Pool, "keep">;
  readonly clock: Clock;
}

/** Most tasks of one server whose lines are kept. */
const maxKept = 1024;
/** How long a line is kept for a task that no caller looks at. */
const unseenMs = 3_600_000;

/**
 * The lines on which tasks run in a process: a task ends with its process, and another process does not know it. Such a line
 * stays open until its task was seen to have ended, expires, or is not asked for.
 */
export class TaskLines {
  readonly #options: TaskLinesOptions;
  readonly #kept = new Map<string, KeptLine>();
  readonly #shares = new Shares<string | undefined>({ what: "lines of tasks", total: maxKept });

  constructor(options: TaskLinesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The line of a task; undefined for any line. */
  find(ref: string): PooledLine | undefined {
    return this.#kept.get(ref)?.pooled;
  }

  /** A task was created on a line. A caller that has more than its share of such tasks has no line kept for this one. */
  created(task: TaskState, pooled: PooledLine, caller: string | undefined): void {
    if (hasEnded(task) || this.#kept.has(task.ref) || this.#shares.refusal(caller) !== undefined) return;
    this.#shares.add(caller);
    const release = this.#options.pool.keep(pooled);
    this.#kept.set(task.ref, { caller, pooled, release, stopTimer: () => {} });
    this.#renew(task);
  }

  /** A caller looked at a task. */
  seen(task: TaskState): void {
    if (hasEnded(task)) this.forget(task.ref);
    else this.#renew(task);
  }

  forget(ref: string): void {
    const kept = this.#kept.get(ref);
    if (kept === undefined) return;
    this.#kept.delete(ref);
    this.#shares.give(kept.caller);
    kept.stopTimer();
    kept.release();
  }

  [Symbol.dispose](): void {
    for (const ref of this.#kept.keys()) this.forget(ref);
  }

  #renew({ ref, ttlMs }: TaskState): void {
    const kept = this.#kept.get(ref);
    if (kept === undefined) return;
    kept.stopTimer();
    const ms = Math.min(ttlMs ?? unseenMs, unseenMs);
    kept.stopTimer = this.#options.clock.timer(ms, () => this.forget(ref));
  }
}
