import { type Awaitable, andThen, settled, type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError, RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  missingExtension,
  declaredExtension,
  extensionIds,
  type Questions,
  lackingAny,
  missingCapability,
  type ToolResult,
} from "@junctor/core/mcp";
import {
  type AnswerReader,
  type Answers,
  type CallContext,
  noopAsync,
  type Operation,
  type Outcome,
  type Provider,
  readAnswers,
  type Round,
  withContext,
  type Task,
  type TaskOutcome,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { EventStream, HandlerResult, ToolContext } from "./event.ts";
import { createMemoryTasks, type MemoryTasks, type TaskRun, done, toAnswers } from "./memory-tasks.ts";
import type { TaskSpec } from "./tool-spec.ts";

/** The context of a tool that may run as a task. */
export interface TaskContext extends ToolContext {
  /** Reports where the work is: as the status of a task, or the progress of a call that is not a task. */
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
  /** If not given, created when a tool needs it. */
  readonly tasks: MemoryTasks | undefined;
  readonly findJob: (tool: string) => JobTool | undefined;
  readonly clock?: Clock;
}

/** One call of a tool that can run as a task, with checked arguments. */
interface TaskCall {
  readonly mode: TaskMode;
  readonly operation: Operation;
  readonly args: never;
  readonly context: ToolContext;
  /** Runs the handler once, in a task or without one. */
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

export function createTaskTools({ tasks, findJob, clock = systemClock }: TaskToolsOptions): TaskTools {
  let memoryTasks = tasks;
  const store = (): MemoryTasks => (memoryTasks ??= createMemoryTasks());
  const jobs = createJobTasks(findJob, clock);
  const providerOf = (ref = ""): Pick<Provider, "call" | "watch"> => (isJobRef(ref) ? jobs : store());

  const begin = ({ mode, operation, args, context, run }: TaskCall): Awaitable<Outcome> => {
    if (mode.job !== undefined) {
      const { job } = mode.job;
      const { caller } = context;
      return andThen(settled(job.start(args, context)), async (state) => {
        // The caller left before it got the id, so nobody can ask for this job.
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
    call: (operation, context) => providerOf(operation.ref).call(operation, context),
    watch: (target, context, listener) => {
      const { ref = "" } = target;
      const stop = providerOf(ref).watch?.(target, context, listener);
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

/** The context of work in a task. It cannot reach the caller, whose request is over. Progress becomes the status of the task. */
function toOwnContext(context: CallContext, run: TaskRun): CallContext {
  return withContext(context, {
    signal: run.signal,
    wantsProgress: true,
    logLevel: undefined,
    ask: undefined,
    visited: undefined,
    release: noopAsync,
    emit: (event: Parameters<CallContext["emit"]>[0]) => {
      if (event.kind === "progress" && event.message !== undefined) run.status(event.message);
      return noopAsync();
    },
  });
}

async function askIn(run: TaskRun, asks: Questions, { capabilities }: CallContext): Promise<Answers> {
  const missing = lackingAny(asks, capabilities);
  if (missing !== undefined) throw missingCapability(missing);
  return run.ask(asks);
}

/** Adds the functions for handlers of task tools. `run` is missing for a call that is not a task. */
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
  const answers = Object.entries(asks).map(
    async ([key, question]) => [key, await ask(question, signal)] as const,
  );
  return Object.fromEntries(await Promise.all(answers));
}

/** Where a job is, as its own system reports it. A job that has ended must always report the same. */
type JobStatus<Result> = {
  /** A few words on the work, for people. */
  readonly message?: string;
} & (
  | { readonly status: "working" | "cancelled" }
  /** Never use a key for two questions of one job: callers answer each key once. */
  | { readonly status: "input_required"; readonly asks: Questions }
  | { readonly status: "completed"; readonly result: Result }
  /** `message` says why. */
  | { readonly status: "failed"; readonly message: string }
);

/**
 * Work that runs elsewhere: in a queue, a build system, another service. Its state is sealed into the id that the caller gets, so
 * every process with the same secret can answer for it. The state is JSON of at most about 2 KiB.
 */
export interface Job<Arguments, State, Result> {
  /** Starts the job, and returns the state by which it is found again. */
  start(args: Arguments, context: ToolContext): Awaitable<State>;
  status(state: State, context: CallContext): Awaitable<JobStatus<Result>>;
  /** Takes answers to some of the open questions. */
  answer?(state: State, answers: AnswerReader, context: CallContext): Awaitable<void>;
  /** Asks the job to end. */
  cancel?(state: State, context: CallContext): Awaitable<void>;
  /** How long after its start callers can ask for the job; null, the default, as long as `status` knows it. */
  readonly ttlMs?: number | null;
  /** How long callers are asked to wait between polls; 1 s. */
  readonly pollMs?: number;
}

/** A job without its types. */
export type AnyJob = Job<unknown, unknown, unknown>;

/** The job of one tool. */
interface JobTool {
  readonly job: AnyJob;
  /** Makes the result that the tool promised. */
  readonly toResult: (value: unknown) => Awaitable<ToolResult>;
}

interface JobRef {
  readonly tool: string;
  readonly owner: string | null;
  readonly createdAt: number;
  readonly state: unknown;
}

const prefix = "job:";

function isJobRef(ref: string): boolean {
  return ref.startsWith(prefix);
}

/** The task of a job that was started just now. */
function toJobTask(
  tool: string,
  job: AnyJob,
  state: unknown,
  { caller, clock }: Pick<CallContext, "caller"> & { readonly clock: Clock },
): TaskOutcome {
  const createdAt = clock.now();
  const ref: JobRef = { tool, owner: caller ?? null, createdAt, state: state ?? null };
  const facts = { ref: prefix + JSON.stringify(ref), createdAt, updatedAt: createdAt };
  return { kind: "working", task: toTask(job, facts) };
}

/** The tasks of all jobs. Their only storage is their refs. */
function createJobTasks(find: (tool: string) => JobTool | undefined, clock: Clock): Pick<Provider, "call"> {
  /** Checks everything: if no server sealed the ref, it may be anything. */
  const open = (ref: string, { caller }: CallContext): JobTool & JobRef => {
    const parsed = parseRef(ref);
    const tool = parsed === undefined ? undefined : find(parsed.tool);
    const isOfCaller = parsed?.owner === (caller ?? null);
    const isOver = parsed !== undefined && clock.now() >= parsed.createdAt + (tool?.job.ttlMs ?? Infinity);
    if (parsed === undefined || tool === undefined || !isOfCaller || isOver)
      throw new NotFoundError("task", ref);
    return { ...parsed, ...tool };
  };
  return {
    call: async ({ method, ref = "", arguments: args }, context) => {
      const { tool, job, toResult, state, createdAt } = open(ref, context);
      if (method === "tasks/update") {
        await job.answer?.(state, readAnswers({ answers: toAnswers(args), state: undefined }), context);
        return done;
      }
      if (method === "tasks/cancel") {
        await job.cancel?.(state, context);
        return done;
      }
      const found = (await job.status(state, context)) ?? {};
      const outcome = await toOutcome(tool, found, toResult);
      const facts = { ref, createdAt, updatedAt: clock.now(), message: found.message };
      return { ...outcome, task: toTask(job, facts) };
    },
  };
}

async function toOutcome(
  tool: string,
  found: JobStatus<unknown>,
  toResult: JobTool["toResult"],
): Promise<Outcome> {
  switch (found.status) {
    case "completed":
      return { kind: "complete", result: RawJson.fromValue(await toResult(found.result)) };
    case "failed":
      return { kind: "failed", error: new RpcError("rpc.internal", found.message) };
    case "input_required":
      return { kind: "input_required", asks: found.asks };
    case "working":
    case "cancelled":
      return { kind: found.status };
    default: {
      const { status } = found as { readonly status?: unknown };
      throw new TypeError(
        `Job ${JSON.stringify(tool)}: status() gave the status ${describeValue(status)}; ` +
          "it must be working, input_required, completed, failed or cancelled",
      );
    }
  }
}

function toTask(
  { ttlMs = null, pollMs = 1000 }: AnyJob,
  facts: Pick<Task, "ref" | "createdAt" | "updatedAt" | "message">,
): Task {
  return { ...facts, ttlMs, pollMs };
}

function parseRef(ref: string): JobRef | undefined {
  try {
    return JSON.parse(ref.slice(prefix.length)) as JobRef;
  } catch {
    return undefined;
  }
}
