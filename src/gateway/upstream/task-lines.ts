import type { Clock } from "../../async/clock.ts";
import type { TaskState } from "../../tools/task.ts";
import { hasEnded } from "../../tools/task.ts";
import type { Pool } from "./pool.ts";
import type { PooledLine } from "./pooled-line.ts";

interface KeptLine {
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

  /** A task was created on a line. */
  created(task: TaskState, pooled: PooledLine): void {
    if (hasEnded(task) || this.#kept.has(task.ref) || this.#kept.size >= maxKept) return;
    const release = this.#options.pool.keep(pooled);
    this.#kept.set(task.ref, { pooled, release, stopTimer: () => {} });
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
