import type { Client } from "@junctor/client";
import { followTask, newAsks } from "@junctor/client/internal";
import { type Awaitable, type Clock, sleep } from "@junctor/core/async";
import { RpcError, rpcCodes, TimeoutError, ToolError, UpstreamError } from "@junctor/core/errors";
import { joinMembers, type RawJson } from "@junctor/core/json";
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
  createOperation,
  fromTaskState,
  type Operation,
  type Outcome,
  type Provider,
  toTaskState,
  withContext,
} from "@junctor/core/provider";
import type { HeldState } from "../bridge/index.ts";
import { toProvider } from "./client-provider.ts";
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
  readonly taskConnections: { noteState(outcome: Outcome): void; forget(ref: string): void };
  /** Sends an operation by a client, on behalf of a caller. */
  readonly send: (client: Client, operation: Operation, context: CallContext) => Awaitable<Outcome>;
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
  begin(client: Client, operation: Operation, context: CallContext): Promise<Outcome>;
  /** Resumes a task whose caller brings answers. A refused answer leaves the task as it is. */
  resume(client: Client, operation: Operation, context: CallContext, state: HeldState): Promise<Outcome>;
}

export function createHeldTasks(options: HeldTasksOptions): HeldTasks {
  const { server, pool, isHttp, send } = options;
  const hasTasks = (client: Client, context: CallContext): boolean =>
    toProvider(client).offers(context).serves("tasks/get");
  /** A client that knows tasks: a server over HTTP that is spoken to in a legacy era has them in the modern one. */
  const withTasksOf = (client: Client, context: CallContext): Client => {
    const { client: other } = pool.everyone;
    const isOther = isHttp && other !== undefined && !hasTasks(client, context) && hasTasks(other, context);
    return isOther ? other : client;
  };
  const holdingOf = (client: Client, { name }: Operation, context: CallContext): Holding => {
    if (!hasTasks(client, context)) throw lacks(server, "tasks");
    return { ...options, provider: toProvider(client), tool: name, context };
  };
  return {
    begin: async (client, operation, context) => {
      const able = withTasksOf(client, context);
      const declaring = withContext(context, { capabilities: withTasks(context.capabilities) });
      const outcome = await send(able, operation, declaring);
      return outcome.task === undefined ? outcome : holdTask(holdingOf(able, operation, context), outcome);
    },
    resume: async (client, operation, context, { held, answered }) => {
      const holding = holdingOf(withTasksOf(client, context), operation, context);
      const { answers = {}, latest = answers } = operation.round ?? {};
      const keys = Object.keys(latest);
      if (keys.length > 0) await useTask(holding, "tasks/update", held, context, joinMembers(latest));
      const outcome = await useTask(holding, "tasks/get", held, context);
      return holdTask(holding, outcome, [...new Set([...answered, ...keys])]);
    },
  };
}

/** A call whose task is followed. */
interface Holding extends Pick<
  HeldTasksOptions,
  "server" | "clock" | "taskConnections" | "maxTotalMs" | "isHttp" | "here"
> {
  readonly provider: Provider;
  readonly tool: string;
  readonly context: CallContext;
}

async function useTask(
  { provider, tool }: Pick<Holding, "provider" | "tool">,
  method: string,
  ref: string,
  context: CallContext,
  answers?: RawJson,
): Promise<Outcome> {
  return provider.call(createOperation(method, tool, { ref, arguments: answers }), context);
}

/** How long the wish to cancel a task may take. */
const cancelMs = 2000;

/**
 * Follows a task for a caller that knows none, and ends as the call would have ended. Its messages become progress, its
 * questions those of the call. A caller that leaves, and one that cannot be asked, cancel it.
 */
async function holdTask(
  holding: Holding,
  first: Outcome,
  answered: readonly string[] = [],
): Promise<Outcome> {
  const { context, server, clock, taskConnections, maxTotalMs, isHttp, here } = holding;
  const ref = first.task?.ref ?? "";
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
    const left = await followTask(toTaskState(first), {
      get: async () => toTaskState(await useTask(holding, "tasks/get", ref, own)),
      wait: (ms) => sleep(ms, clock, signal),
      isGivenUp: () => signal.aborted,
      onState: (task) => {
        taskConnections.noteState(fromTaskState(task));
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
    if (left.status !== "input_required") return toResult(fromTaskState(left), server);
    // A server over HTTP is the same from each replica. A process is not.
    const state: HeldState = { held: ref, answered, at: isHttp ? undefined : here };
    return { kind: "input_required", asks: newAsks(left.asks, known), state, keepsAnswers: false };
  } catch (error) {
    const last = withContext(context, { signal: AbortSignal.timeout(cancelMs) });
    await useTask(holding, "tasks/cancel", ref, last).catch(() => {});
    const ended = await useTask(holding, "tasks/get", ref, last).catch(() => undefined);
    if (ended === undefined) taskConnections.forget(ref);
    else taskConnections.noteState(ended);
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    stopTimer();
  }
}

/** How a call ends whose task has ended. */
function toResult(ended: Outcome, server: string): Outcome {
  if (ended.kind === "complete") return { kind: "complete", result: ended.result };
  if (ended.kind === "failed") throw ended.error;
  const why = ended.task?.message === undefined ? "" : `: ${ended.task.message}`;
  throw new ToolError(`${server} cancelled the call${why}.`);
}

/** A server that had something when it was listed does not offer it any more. */
export function lacks(server: string, what: string): UpstreamError {
  const text = `${server} no longer offers ${what}.`;
  return new UpstreamError("failed", text, { server, delivery: "not_sent" });
}
