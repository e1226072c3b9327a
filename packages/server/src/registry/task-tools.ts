import { type Awaitable, andThen, settled, type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
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
  type Answers,
  type CallContext,
  nothing,
  type Operation,
  type Outcome,
  type Provider,
  readAnswers,
  type Round,
  withContext,
} from "@junctor/core/provider";
import type { EventStream, HandlerResult, ToolContext } from "./event.ts";
import { createJobTasks, isJobRef, type JobTool, toJobTask } from "./jobs.ts";
import { createMemoryTasks, type MemoryTasks, type TaskRun } from "./memory-tasks.ts";
import type { TaskSpec } from "./tool-spec.ts";

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

/** How a registered tool runs as a task. */
export interface TaskMode extends TaskSpec<never> {
  readonly job?: JobTool;
}

interface TaskToolsOptions {
  /** Made when a tool needs it, where it is not given. */
  readonly tasks: MemoryTasks | undefined;
  readonly findJob: (tool: string) => JobTool | undefined;
  readonly clock?: Clock;
}

/** One call of a tool that can run as a task, with the arguments that were checked. */
interface TaskCall {
  readonly mode: TaskMode;
  readonly operation: Operation;
  readonly args: never;
  readonly context: ToolContext;
  /** Runs the handler once: in a task, or without one. */
  run(operation: Operation, context: CallContext, run?: TaskRun): Awaitable<Outcome>;
}

/** The part of a registry that knows tasks. */
interface TaskTools {
  readonly watch: NonNullable<Provider["watch"]>;
  /** Calls a tool that can run as a task. */
  start(call: TaskCall): Awaitable<Outcome>;
  /** Serves `tasks/get`, `tasks/update` and `tasks/cancel`. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome>;
}

export function createTaskTools({ tasks: given, findJob, clock = systemClock }: TaskToolsOptions): TaskTools {
  let kept = given;
  const store = (): MemoryTasks => (kept ??= createMemoryTasks());
  const jobs = createJobTasks(findJob, clock);
  const of = (ref = ""): Pick<Provider, "call" | "watch"> => (isJobRef(ref) ? jobs : store());

  const begin = ({ mode, operation, args, context, run }: TaskCall): Awaitable<Outcome> => {
    if (mode.job !== undefined) {
      const { job } = mode.job;
      const { caller } = context;
      return andThen(settled(job.start(args, context)), async (state) => {
        // The caller left before it got the id, so no one can ask for this job.
        if (context.signal.aborted) await job.cancel?.(state, context);
        return toJobTask(operation.name, job, state, { caller, clock });
      });
    }
    if (!knowsTasks(context)) return run(operation, context);
    return startTask(store(), operation.round, context, async (round, own, running) =>
      run({ ...operation, round }, own, running),
    );
  };

  return {
    start: (call) => {
      const { mode, args, context } = call;
      if (mode.task === "required") assertKnowsTasks(context);
      if (mode.askFirst === undefined) return begin(call);
      return andThen(settled(mode.askFirst(args, context)), (asked) => asked ?? begin(call));
    },
    call: (operation, context) => of(operation.ref).call(operation, context),
    watch: (target, context, listener) => {
      const { ref = "" } = target;
      const stop = of(ref).watch?.(target, context, listener);
      // Nothing tells us when a job changes, so it cannot be watched.
      if (stop === undefined) throw new NotFoundError("task", ref);
      return stop;
    },
  };
}

/** One attempt to run a handler in a task. */
type TaskAttempt = (
  round: Round | undefined,
  context: CallContext,
  run: TaskRun,
) => Promise<Outcome> | Outcome;

/** Throws `-32021` unless the caller declared tasks. */
function assertKnowsTasks(context: CallContext): void {
  if (!knowsTasks(context)) throw missingExtension(extensionIds.tasks);
}

function knowsTasks({ capabilities }: CallContext): boolean {
  return declaredExtension(capabilities, extensionIds.tasks) !== undefined;
}

/** Starts a handler as a task. A handler that returns questions runs again with the answers, as it does outside of tasks. */
function startTask(
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
  return tasks.start(context, work);
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
