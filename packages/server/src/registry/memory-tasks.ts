import { type Clock, systemClock, Quota } from "@junctor/core/async";
import { NotFoundError, RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import { type CallContext, hasEnded, type TaskProvider, type TaskState } from "@junctor/core/provider";
import { MemoryTask, type TaskRun } from "./memory-task.ts";

export interface MemoryTasksOptions {
  /** How long a task is kept from its creation, running or not; 1 h. */
  readonly ttlMs?: number;
  /** Most tasks of all callers; 16,384. */
  readonly maxTasks?: number;
  /** Most tasks of one caller; 1,024. Callers without a name are one. */
  readonly maxPerCaller?: number;
  /** Most bytes of results that are kept for all callers; 256 MiB. */
  readonly maxResultBytes?: number;
  /** The pause that callers are asked to make before they look again; 1 s. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

const memoryTasksKeys: KeysOf<MemoryTasksOptions> = keys(
  "ttlMs maxTasks maxPerCaller maxResultBytes pollMs clock",
);

/** Tasks that run in this process and end with it. Made by {@link createMemoryTasks}. */
export interface MemoryTasks extends TaskProvider {
  /** Starts work as a task of the caller. The task can be looked at before this returns. */
  start(context: CallContext, work: (run: TaskRun) => Promise<RawJson>): TaskState;
  /** Cancels every task that runs, and forgets all of them. */
  close(): void;
}

/**
 * Tasks of this process. At a limit the caller's own tasks that have ended are forgotten, the oldest first; a caller whose tasks
 * all run is refused.
 *
 * @example
 * const registry = createRegistry({ tasks: createMemoryTasks({ ttlMs: 600_000 }) });
 */
export function createMemoryTasks(options: MemoryTasksOptions = {}): MemoryTasks {
  assertKnownKeys("createMemoryTasks", options, memoryTasksKeys);
  const { ttlMs = 3_600_000, maxTasks = 16_384, maxPerCaller = 1024, pollMs = 1000 } = options;
  const { maxResultBytes = 256 * 1024 * 1024, clock = systemClock } = options;
  if (!(Number.isInteger(ttlMs) && ttlMs > 0))
    throw new RangeError(`ttlMs must be a whole number of milliseconds above 0, not ${ttlMs}`);
  /** In the order of creation, which is the order in which they expire. */
  const tasks = new Map<string, MemoryTask>();
  const slots = new Quota<string | undefined>({ what: "tasks", total: maxTasks, each: maxPerCaller });
  const bytes = new Quota<string | undefined>({ what: "bytes of task results", total: maxResultBytes });

  const forget = (task: MemoryTask): void => {
    if (!tasks.delete(task.state.ref)) return;
    task.cancel("The task has expired");
    if (task.state.status === "completed") bytes.give(task.owner, task.state.result.byteLength);
    // Work that does not heed its signal still counts.
    if (task.isSettled) slots.give(task.owner);
  };
  const expire = (): void => {
    for (const task of tasks.values()) {
      if (clock.now() < task.state.createdAt + ttlMs) return;
      forget(task);
    }
  };
  /** Forgets ended tasks of one caller until there is room; the refusal when that does not help. */
  const makeRoom = (refusal: () => RpcError | undefined, owner: string | undefined): RpcError | undefined => {
    let refused = refusal();
    if (refused === undefined) return undefined;
    for (const task of tasks.values()) {
      if (task.owner !== owner || !hasEnded(task.state) || !task.isSettled) continue;
      forget(task);
      refused = refusal();
      if (refused === undefined) return undefined;
    }
    return refused;
  };
  const find = (ref: string, { caller }: CallContext): MemoryTask => {
    expire();
    const task = tasks.get(ref);
    if (task === undefined || task.owner !== caller) throw new NotFoundError("task", ref);
    return task;
  };
  const run = async (task: MemoryTask, work: (run: TaskRun) => Promise<RawJson>): Promise<void> => {
    // Work whose task no caller asks for any more ends all the same.
    const stopTimer = clock.idleTimer?.(ttlMs, expire) ?? clock.timer(ttlMs, expire);
    try {
      const result = await work(task);
      const size = result.byteLength;
      if (hasEnded(task.state)) return;
      const refused = makeRoom(() => bytes.refusal(task.owner, size), task.owner);
      if (refused !== undefined) throw refused;
      bytes.add(task.owner, size);
      task.change({ status: "completed", result });
    } catch (error) {
      const hidden = new RpcError("rpc.internal", "Internal error", { cause: error });
      task.change({ status: "failed", error: error instanceof RpcError ? error : hidden });
    } finally {
      task.isSettled = true;
      stopTimer();
      if (!tasks.has(task.state.ref)) slots.give(task.owner);
    }
  };

  return {
    start: ({ caller }, work) => {
      expire();
      const refused = makeRoom(() => slots.refusal(caller), caller);
      if (refused !== undefined) throw refused;
      slots.add(caller);
      const task = new MemoryTask(caller, { ttlMs, pollMs, clock });
      tasks.set(task.state.ref, task);
      void run(task, work);
      return task.state;
    },
    get: (ref, context) => find(ref, context).state,
    update: (ref, answers, context) => find(ref, context).questions.answer(answers),
    cancel: (ref, context) => find(ref, context).cancel(),
    watch: (ref, context, listener) => find(ref, context).watch(listener),
    close: () => tasks.forEach(forget),
  };
}
