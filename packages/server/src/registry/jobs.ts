import type { Awaitable, Clock } from "@junctor/core/async";
import { NotFoundError, RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import type { Questions, ToolResult } from "@junctor/core/mcp";
import {
  type AnswerReader,
  readAnswers,
  type CallContext,
  type Outcome,
  type Provider,
  type Task,
  type TaskOutcome,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { ToolContext } from "./event.ts";
import { done, toAnswers } from "./memory-tasks.ts";

/** Where a job is, as its own system reports it. A job that has ended must go on saying the same. */
export type JobStatus<Result> = {
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
 * Work that lives elsewhere: in a queue, a build system, another service. Its state is sealed into the id that the caller gets, so
 * every replica and every restart with the same secret can answer for it. The state is JSON of at most about 2 KiB.
 */
export interface Job<Arguments, State, Result> {
  /** Starts the job and returns what finds it again. */
  start(args: Arguments, context: ToolContext): Awaitable<State>;
  status(state: State, context: CallContext): Awaitable<JobStatus<Result>>;
  /** Takes answers to some of the open questions. */
  answer?(state: State, answers: AnswerReader, context: CallContext): Awaitable<void>;
  /** Wishes the job to end. */
  cancel?(state: State, context: CallContext): Awaitable<void>;
  /** How long the job can be asked for from its start; null, which is the default, for as long as `status` knows it. */
  readonly ttlMs?: number | null;
  /** The pause that callers are asked to make before they look again; 1 s. */
  readonly pollMs?: number;
}

/** A job without its types. */
export type AnyJob = Job<unknown, unknown, unknown>;

/** The job of one tool. */
export interface JobTool {
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

export function isJobRef(ref: string): boolean {
  return ref.startsWith(prefix);
}

/** The task of a job that was started just now. */
export function toJobTask(
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

/** The tasks of all jobs. They are nowhere but in their refs. */
export function createJobTasks(
  find: (tool: string) => JobTool | undefined,
  clock: Clock,
): Pick<Provider, "call"> {
  /** A ref that a server did not seal may be anything. */
  const open = (ref: string, { caller }: CallContext): JobTool & JobRef => {
    const read = parseRef(ref);
    const tool = read === undefined ? undefined : find(read.tool);
    const isTheirs = read?.owner === (caller ?? null);
    const isOver = read !== undefined && clock.now() >= read.createdAt + (tool?.job.ttlMs ?? Infinity);
    if (read === undefined || tool === undefined || !isTheirs || isOver) throw new NotFoundError("task", ref);
    return { ...read, ...tool };
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
