import { type Awaitable, andThen, settled, type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import type { CallContext, ToolCall, ToolOutcome, TaskProvider } from "@junctor/core/provider";
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
  readonly call: ToolCall;
  readonly args: never;
  readonly context: ToolContext;
  /** Runs the handler once: in a task, or without one. */
  run(call: ToolCall, context: CallContext, run?: TaskRun): Awaitable<ToolOutcome>;
}

/** The part of a registry that knows tasks. */
interface TaskTools {
  /** Undefined until there is something that can be a task. */
  facet(): TaskProvider | undefined;
  /** Says that there is a tool that can be a task. */
  offer(): void;
  call(call: TaskCall): Awaitable<ToolOutcome>;
}

export function createTaskTools({ tasks: given, findJob, clock = systemClock }: TaskToolsOptions): TaskTools {
  let kept = given;
  let facet: TaskProvider | undefined;
  const store = (): MemoryTasks => (kept ??= createMemoryTasks());
  const jobs = createJobTasks(findJob, clock);
  const of = (ref: string): TaskProvider => (isJobRef(ref) ? jobs : store());
  const offer = (): void => {
    facet ??= {
      get: (ref, context) => of(ref).get(ref, context),
      update: (ref, answers, context) => of(ref).update(ref, answers, context),
      cancel: (ref, context) => of(ref).cancel(ref, context),
      watch: (ref, context, listener) => {
        const stop = of(ref).watch?.(ref, context, listener);
        // Nothing tells us when a job changes, so it cannot be watched.
        if (stop === undefined) throw new NotFoundError("task", ref);
        return stop;
      },
    };
  };
  if (given !== undefined) offer();

  const begin = ({ mode, call, args, context, run }: TaskCall): Awaitable<ToolOutcome> => {
    if (mode.job !== undefined) {
      const { job } = mode.job;
      const { caller } = context;
      return andThen(settled(job.start(args, context)), async (state) => {
        // The caller left before it got the id, so no one can ask for this job.
        if (context.signal.aborted) await job.cancel?.(state, context);
        return { kind: "task", task: toJobTask(call.name, job, state, { caller, clock }) };
      });
    }
    if (!knowsTasks(context)) return run(call, context);
    return startTask(store(), call.round, context, async (round, own, running) =>
      run({ ...call, round }, own, running),
    );
  };

  return {
    facet: () => facet,
    offer,
    call: (taskCall) => {
      const { mode, args, context } = taskCall;
      if (mode.task === "required") assertKnowsTasks(context);
      if (mode.askFirst === undefined) return begin(taskCall);
      return andThen(settled(mode.askFirst(args, context)), (asked) => asked ?? begin(taskCall));
    },
  };
}
