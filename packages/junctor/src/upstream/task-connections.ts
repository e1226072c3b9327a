import { type Awaitable, type Clock, Quota } from "@junctor/core/async";
import type { RpcError } from "@junctor/core/errors";
import { withoutTasks } from "@junctor/core/mcp";
import { type CallContext, hasTaskEnded, type Outcome, type Task, withContext } from "@junctor/core/provider";
import { needsTasks } from "./held-task.ts";
import type { Pool } from "./pool.ts";
import type { PooledConnection } from "./pooled-connection.ts";

interface RunningTask {
  readonly holder: unknown;
  connection?: KeptConnection;
  stopTimer: () => void;
}

interface KeptConnection {
  readonly pooled: PooledConnection;
  /** The process that the task runs in. */
  readonly client: PooledConnection["client"];
  readonly release: () => void;
}

interface TaskConnectionsOptions {
  /** The name of the server. */
  readonly server: string;
  readonly pool: Pick<Pool, "keep">;
  readonly clock: Clock;
}

/** Most tasks of one server: servers of the toolkit have room for as many of one caller, which is the gateway to them. */
const maxTasks = 1024;
/** How long a task that no caller looks at is counted, and its connection kept. */
const unseenMs = 3_600_000;

/**
 * The tasks that callers have at one server, counted by caller: to the server all callers are one, so one of them could take all
 * its room. A task counts until it was seen to have ended, expires, or is not asked for.
 *
 * Until then the connection of a task that runs in a process stays open: a task ends with its process, and another process does not
 * know it.
 */
export class TaskConnections {
  readonly #options: TaskConnectionsOptions;
  readonly #tasks = new Map<string, RunningTask>();
  readonly #quota: Quota;

  constructor(options: TaskConnectionsOptions) {
    this.#options = options;
    this.#quota = new Quota({ what: `tasks of ${options.server}`, total: maxTasks });
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** The connection of a task; undefined for any connection. */
  find(ref: string): PooledConnection | undefined {
    return this.#tasks.get(ref)?.connection?.pooled;
  }

  /** The error for a caller that has its share of the tasks; undefined while it may begin another one. */
  refusal(context: CallContext): RpcError | undefined {
    const holder = holderOf(context);
    if (this.#quota.refusal(holder) === undefined) return undefined;
    for (const [ref, { connection }] of this.#tasks)
      if (connection !== undefined && connection.pooled.client !== connection.client) this.forget(ref);
    return this.#quota.refusal(holder);
  }

  /**
   * Makes a call that may become a task. For a caller that has its share of them it is made without tasks, and refused if it needs
   * one.
   */
  async call(context: CallContext, make: (context: CallContext) => Awaitable<Outcome>): Promise<Outcome> {
    const refused = this.refusal(context);
    if (refused !== undefined) {
      try {
        return await make(withContext(context, { capabilities: withoutTasks(context.capabilities) }));
      } catch (error) {
        throw needsTasks(error) ? refused : error;
      }
    }
    const holder = holderOf(context);
    this.#quota.add(holder);
    try {
      const outcome = await make(context);
      if (outcome.task !== undefined && !hasTaskEnded(outcome)) this.#begin(outcome.task, holder);
      return outcome;
    } finally {
      this.#quota.give(holder);
    }
  }

  /** Keeps the connection of a task open while the task counts. */
  keep({ ref }: Task, pooled: PooledConnection): void {
    const task = this.#tasks.get(ref);
    if (task === undefined || task.connection !== undefined) return;
    task.connection = { pooled, client: pooled.client, release: this.#options.pool.keep(pooled) };
  }

  /** A caller looked at a task. */
  noteState(outcome: Outcome): void {
    const { task } = outcome;
    if (task === undefined) return;
    if (hasTaskEnded(outcome)) this.forget(task.ref);
    else this.#renew(task);
  }

  forget(ref: string): void {
    const task = this.#tasks.get(ref);
    if (task === undefined) return;
    this.#tasks.delete(ref);
    this.#quota.give(task.holder);
    task.stopTimer();
    task.connection?.release();
  }

  [Symbol.dispose](): void {
    for (const ref of this.#tasks.keys()) this.forget(ref);
  }

  #begin(task: Task, holder: unknown): void {
    if (this.#tasks.has(task.ref)) return;
    this.#quota.add(holder);
    this.#tasks.set(task.ref, { holder, stopTimer: () => {} });
    this.#renew(task);
  }

  #renew({ ref, ttlMs }: Task): void {
    const task = this.#tasks.get(ref);
    if (task === undefined) return;
    task.stopTimer();
    const ms = Math.min(ttlMs ?? unseenMs, unseenMs);
    task.stopTimer = this.#options.clock.timer(ms, () => this.forget(ref));
  }
}

function holderOf({ caller, session }: CallContext): unknown {
  return caller ?? session;
}
