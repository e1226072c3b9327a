import { type Awaitable, andThen, settled, type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Answers,
  type CallContext,
  fromTaskState,
  type Operation,
  type Outcome,
  type Provider,
  type TaskProvider,
} from "@junctor/core/provider";
import type { ToolContext } from "./event.ts";
import { createJobTasks, isJobRef, type JobTool, toJobTask } from "./jobs.ts";
import type { TaskRun } from "./memory-task.ts";
import { createMemoryTasks, type MemoryTasks } from "./memory-tasks.ts";
import { assertKnowsTasks, knowsTasks, startTask } from "./task-call.ts";
import type { TaskSpec } from "./tool-spec.ts";

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
interface TaskTools extends Required<Pick<Provider, "watch">> {
  /** Calls a tool that can run as a task. */
  start(call: TaskCall): Awaitable<Outcome>;
  /** Serves `tasks/get`, `tasks/update` and `tasks/cancel`. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome>;
}

const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };

export function createTaskTools({ tasks: given, findJob, clock = systemClock }: TaskToolsOptions): TaskTools {
  let kept = given;
  const store = (): MemoryTasks => (kept ??= createMemoryTasks());
  const jobs = createJobTasks(findJob, clock);
  const of = (ref: string): TaskProvider => (isJobRef(ref) ? jobs : store());

  const begin = ({ mode, operation, args, context, run }: TaskCall): Awaitable<Outcome> => {
    if (mode.job !== undefined) {
      const { job } = mode.job;
      const { caller } = context;
      return andThen(settled(job.start(args, context)), async (state) => {
        // The caller left before it got the id, so no one can ask for this job.
        if (context.signal.aborted) await job.cancel?.(state, context);
        return fromTaskState(toJobTask(operation.name, job, state, { caller, clock }));
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
    call: ({ method, arguments: answers, ref = "" }, context) => {
      const tasks = of(ref);
      if (method === "tasks/get") return andThen(settled(tasks.get(ref, context)), fromTaskState);
      if (method === "tasks/cancel") return andThen(settled(tasks.cancel(ref, context)), () => done);
      return andThen(settled(tasks.update(ref, toAnswers(answers), context)), () => done);
    },
    watch: ({ ref = "" }, context, listener) => {
      const stop = of(ref).watch?.(ref, context, (state) =>
        listener({ kind: "task", outcome: fromTaskState(state) }),
      );
      // Nothing tells us when a job changes, so it cannot be watched.
      if (stop === undefined) throw new NotFoundError("task", ref);
      return stop;
    },
  };
}

/** A map made by `fromEntries` has own properties only, whatever the keys are called. */
function toAnswers(given: RawJson): Answers {
  return Object.fromEntries(Object.keys(given.value as object).map((key) => [key, given.at(key)])) as Answers;
}
