import type { RawJson } from "@junctor/core/json";
import {
  missingExtension,
  declaredExtension,
  extensionIds,
  type Questions,
  lackingAny,
  missingCapability,
} from "@junctor/core/mcp";
import {
  type AnswerReader,
  readAnswers,
  type CallContext,
  nothing,
  withContext,
  type Answers,
  fromTaskState,
  type Outcome,
  type Round,
} from "@junctor/core/provider";
import type { EventStream, HandlerResult, ToolContext } from "./event.ts";
import type { TaskRun } from "./memory-task.ts";
import type { MemoryTasks } from "./memory-tasks.ts";

/** The context of a tool that may run as a task. */
export interface TaskContext extends ToolContext {
  /** Says where the work is: the status of a task, or progress of a call that is no task. */
  status(text: string): Promise<void>;
  /**
   * Asks the caller while the handler runs. Works in a task, and for legacy callers. A modern caller that is served without a
   * task gets `-32021`; return `inputRequired()` to ask it.
   */
  askNow(asks: Questions): Promise<AnswerReader>;
}

/** The code of a tool that may run as a task; see `ToolHandler`. */
export type TaskHandler<Arguments, Result = HandlerResult> = (
  args: Arguments,
  context: TaskContext,
) => Result | Promise<Result> | EventStream<Result>;

/** One attempt to run a handler in a task. */
type TaskAttempt = (
  round: Round | undefined,
  context: CallContext,
  run: TaskRun,
) => Promise<Outcome> | Outcome;

/** Throws `-32021` unless the caller declared tasks. */
export function assertKnowsTasks(context: CallContext): void {
  if (!knowsTasks(context)) throw missingExtension(extensionIds.tasks);
}

export function knowsTasks({ capabilities }: CallContext): boolean {
  return declaredExtension(capabilities, extensionIds.tasks) !== undefined;
}

/** Starts a handler as a task. A handler that returns questions runs again with the answers, as it does outside of tasks. */
export function startTask(
  tasks: MemoryTasks,
  first: Round | undefined,
  context: CallContext,
  attempt: TaskAttempt,
): Outcome {
  const work = async (run: TaskRun): Promise<RawJson> => {
    const own = toOwnContext(context, run);
    let round = first;
    for (;;) {
      const outcome = await attempt(round, own, run);
      if (outcome.kind === "complete") return outcome.result;
      if (outcome.kind !== "input_required") throw new TypeError("A task cannot end with another task");
      const latest = await askIn(run, outcome.asks, context);
      round = { answers: { ...round?.answers, ...latest }, latest, state: outcome.state };
      run.signal.throwIfAborted();
    }
  };
  return fromTaskState(tasks.start(context, work));
}

/** The request is over when the work begins, so its ways to the caller are gone. Progress becomes the status of the task. */
function toOwnContext(context: CallContext, run: TaskRun): CallContext {
  return withContext(context, {
    signal: run.signal,
    wantsProgress: true,
    logLevel: undefined,
    ask: undefined,
    visited: undefined,
    release: nothing,
    emit: (event: Parameters<CallContext["emit"]>[0]) => {
      if (event.kind === "progress" && event.message !== undefined) run.status(event.message);
      return nothing();
    },
  });
}

async function askIn(run: TaskRun, asks: Questions, { capabilities }: CallContext): Promise<Answers> {
  const missing = lackingAny(asks, capabilities);
  if (missing !== undefined) throw missingCapability(missing);
  return run.ask(asks);
}

/** Adds what handlers of task tools have. `run` is missing for a call that is no task. */
export function toTaskContext(context: ToolContext, run: TaskRun | undefined): TaskContext {
  return withContext(context, {
    answers: context.answers,
    state: context.state,
    progress: context.progress,
    canShow: context.canShow,
    log: context.log,
    status: async (text: string) => {
      if (run === undefined) await context.emit({ kind: "progress", message: text });
      else run.status(text);
    },
    askNow: async (asks: Questions) => {
      const answers = run === undefined ? await askCaller(asks, context) : await askIn(run, asks, context);
      return readAnswers({ answers, state: undefined });
    },
  });
}

async function askCaller(asks: Questions, { ask, signal }: CallContext): Promise<Answers> {
  if (ask === undefined) throw missingExtension(extensionIds.tasks);
  const answers = Object.entries(asks).map(async ([key, each]) => [key, await ask(each, signal)] as const);
  return Object.fromEntries(await Promise.all(answers));
}
