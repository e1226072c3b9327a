import type { Client } from "@junctor/client";
import { followTask, newAsks } from "@junctor/client/internal";
import { type Clock, sleep } from "@junctor/core/async";
import { RpcError, rpcCodes, TimeoutError, ToolError, UpstreamError } from "@junctor/core/errors";
import {
  declaredExtension,
  extensionIds,
  withTasks,
  lackingAny,
  missingCapability,
  toRelayable,
  type ClientCapabilities,
} from "@junctor/core/mcp";
import {
  type CallContext,
  withContext,
  type OldOutcome,
  type Round,
  type ToolOutcome,
  type TaskProvider,
  type TaskState,
} from "@junctor/core/provider";
import type { HeldState } from "../bridge/index.ts";
import type { Pool } from "./pool.ts";

/** Whether a server refused a call because its caller does not know tasks, and for no other reason. Nothing was run. */
export function needsTasks(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.missing_capability"]) return false;
  const { requiredCapabilities } = (error.data ?? {}) as { readonly requiredCapabilities?: unknown };
  if (typeof requiredCapabilities !== "object" || requiredCapabilities === null) return false;
  const { extensions, ...others } = requiredCapabilities as ClientCapabilities;
  if (Object.keys(others).length > 0 || typeof extensions !== "object" || extensions === null) return false;
  return Object.keys(extensions).join() === extensionIds.tasks;
}

export function knowsTasks({ capabilities }: Pick<CallContext, "capabilities">): boolean {
  return (
    capabilities.extensions !== undefined && declaredExtension(capabilities, extensionIds.tasks) !== undefined
  );
}

export interface HeldTasksOptions {
  /** The name of the server. */
  readonly server: string;
  readonly clock: Clock;
  readonly pool: Pool;
  /** Counts the tasks of callers. */
  readonly taskConnections: { noteState(task: TaskState): void; forget(ref: string): void };
  /** Whether its connections are conversations over HTTP. */
  readonly isHttp: boolean;
  /** How long a task is followed in one round. */
  readonly maxTotalMs: number;
  /** The address of this replica, where the gateway has several. */
  readonly here?: string | undefined;
}

/** Calls that need a task, for callers that know none. */
export interface HeldTasks {
  /** Calls a server once more that did nothing because the call needs a task, and follows the task. */
  begin(
    client: Client,
    context: CallContext,
    work: (client: Client, context: CallContext, round: undefined) => Promise<ToolOutcome>,
  ): Promise<ToolOutcome>;
  /** Resumes a task whose caller brings answers. A refused answer leaves the task as it is. */
  resume(client: Client, context: CallContext, state: HeldState, round: Round): Promise<ToolOutcome>;
}

export function createHeldTasks(options: HeldTasksOptions): HeldTasks {
  const { server, clock, pool, taskConnections, isHttp, maxTotalMs } = options;
  // A server over HTTP is the same from each replica. A process is not.
  const at = isHttp ? undefined : options.here;
  /** A client that knows tasks: a server over HTTP that is spoken to in a legacy era has them in the modern one. */
  const withTasksOf = (client: Client): Client => {
    const { client: other } = pool.everyone;
    return client.tasks === undefined && isHttp && other?.tasks !== undefined ? other : client;
  };
  const holdingOf = ({ tasks }: Client, context: CallContext): Holding => {
    if (tasks === undefined) throw lacks(server, "tasks");
    return { tasks, context, server, clock, taskConnections, maxTotalMs, at };
  };
  return {
    begin: async (client, context, work) => {
      const able = withTasksOf(client);
      const declaring = withContext(context, { capabilities: withTasks(context.capabilities) });
      const outcome = await work(able, declaring, undefined);
      return outcome.kind === "task" ? holdTask(holdingOf(able, context), outcome.task) : outcome;
    },
    resume: async (client, context, { held, answered }, { answers, latest = answers }) => {
      const holding = holdingOf(withTasksOf(client), context);
      const { tasks } = holding;
      const keys = Object.keys(latest);
      if (keys.length > 0) await tasks.update(held, latest, context);
      const task = await tasks.get(held, context);
      return holdTask(holding, task, [...new Set([...answered, ...keys])]);
    },
  };
}

/** A call whose task is followed. */
interface Holding extends Pick<HeldTasksOptions, "server" | "clock" | "taskConnections" | "maxTotalMs"> {
  readonly tasks: TaskProvider;
  readonly at: string | undefined;
  readonly context: CallContext;
}

/** How long the wish to cancel a task may take. */
const cancelMs = 2000;

/**
 * Follows a task for a caller that knows none, and ends as the call would have ended. Its messages become progress, its
 * questions those of the call. A caller that leaves, and one that cannot be asked, cancel it.
 */
async function holdTask(
  { tasks, context, server, clock, taskConnections, maxTotalMs, at }: Holding,
  first: TaskState,
  answered: readonly string[] = [],
): Promise<OldOutcome> {
  const { capabilities } = toRelayable(context.capabilities, context.revision);
  const late = new AbortController();
  const stopTimer = clock.timer(maxTotalMs, () =>
    late.abort(new TimeoutError("total", maxTotalMs, "outcome_unknown")),
  );
  const signal = AbortSignal.any([context.signal, late.signal]);
  const own = withContext(context, { signal, wantsProgress: false, logLevel: undefined });
  const known = new Set(answered);
  let lastMessage: string | undefined;
  try {
    const left = await followTask(first, {
      get: async () => tasks.get(first.ref, own),
      wait: (ms) => sleep(ms, clock, signal),
      isGivenUp: () => signal.aborted,
      onState: (task) => {
        taskConnections.noteState(task);
        const { message } = task;
        if (message !== undefined && message !== lastMessage)
          context.emit({ kind: "progress", message }).catch(() => {});
        lastMessage = message;
      },
      answered: known,
      answer: (asks) => {
        const missing = lackingAny(asks, capabilities);
        return missing === undefined ? Promise.resolve(false) : Promise.reject(missingCapability(missing));
      },
    });
    if (left.status !== "input_required") return toOutcome(left, server);
    const state: HeldState = { held: first.ref, answered, at };
    return { kind: "input_required", asks: newAsks(left.asks, known), state, keepsAnswers: false };
  } catch (error) {
    const last = withContext(context, { signal: AbortSignal.timeout(cancelMs) });
    await Promise.resolve(tasks.cancel(first.ref, last)).catch(() => {});
    const ended = await Promise.resolve(tasks.get(first.ref, last)).catch(() => undefined);
    if (ended === undefined) taskConnections.forget(first.ref);
    else taskConnections.noteState(ended);
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    stopTimer();
  }
}

function toOutcome(task: TaskState, server: string): OldOutcome {
  if (task.status === "completed") return { kind: "complete", result: task.result };
  if (task.status === "failed") throw task.error;
  const why = task.message === undefined ? "" : `: ${task.message}`;
  throw new ToolError(`${server} cancelled the call${why}.`);
}

/** A server that was listed with a facet does not offer it any more. */
export function lacks(server: string, facet: string): UpstreamError {
  const text = `${server} no longer offers ${facet}.`;
  return new UpstreamError("failed", text, { server, delivery: "not_sent" });
}
