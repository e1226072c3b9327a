import type { Client } from "@junctor/client";
import { followTask, newAsks } from "@junctor/client/internal";
import { type Awaitable, type Clock, sleep } from "@junctor/core/async";
import { RpcError, rpcCodes, TimeoutError, ToolError, UpstreamError } from "@junctor/core/errors";
import { joinMembers, RawJson } from "@junctor/core/json";
import {
  type ClientCapabilities,
  declaredExtension,
  extensionIds,
  lacking,
  lackingAny,
  missingCapability,
  notOffered,
  type Question,
  type Tool,
  toModernQuestion,
  toRelayable,
  withTasks,
} from "@junctor/core/mcp";
import {
  type CallContext,
  type CallEvent,
  createOperation,
  failure,
  noopAsync,
  type Operation,
  type Outcome,
  type Provider,
  type TaskOutcome,
  withContext,
} from "@junctor/core/provider";
import type { MemoryTasks, TaskRun } from "@junctor/server/internal";
import type { FollowedState } from "../bridge/index.ts";
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

export interface FollowedTasksOptions {
  /** The name of the server. */
  readonly server: string;
  readonly clock: Clock;
  readonly pool: Pool;
  /** Counts the tasks of callers. */
  readonly taskConnections: { noteOutcome(outcome: Outcome): void; forget(ref: string): void };
  /** Sends an operation by a client, on behalf of a caller. */
  readonly send: (client: Client, operation: Operation, context: CallContext) => Awaitable<Outcome>;
  /** Whether its connections are conversations over HTTP. */
  readonly isHttp: boolean;
  /** How long a task is followed in one round. */
  readonly maxTotalMs: () => number;
  /** The address of this replica, where the gateway has several. */
  readonly here?: string | undefined;
}

/** Calls that need a task, for callers that do not know tasks. */
export interface FollowedTasks {
  /** Repeats a call that the server refused because it needs a task, and follows the task. */
  begin(client: Client, operation: Operation, context: CallContext): Promise<Outcome>;
  /** Resumes a task whose caller brings answers. A refused answer leaves the task as it is. */
  resume(client: Client, operation: Operation, context: CallContext, state: FollowedState): Promise<Outcome>;
}

export function createFollowedTasks(options: FollowedTasksOptions): FollowedTasks {
  const { server, pool, isHttp, send } = options;
  const hasTasks = (client: Client, context: CallContext): boolean =>
    client.offers(context).serves("tasks/get");
  /** A client that knows tasks: a server over HTTP that is spoken to in a legacy era has them in the modern one. */
  const withTasksOf = (client: Client, context: CallContext): Client => {
    const { client: other } = pool.everyone;
    const isOther = isHttp && other !== undefined && !hasTasks(client, context) && hasTasks(other, context);
    return isOther ? other : client;
  };
  const followingOf = (client: Client, { name }: Operation, context: CallContext): FollowedCall => {
    if (!hasTasks(client, context)) throw noLongerOffers(server, "tasks");
    return { ...options, provider: client, tool: name, context };
  };
  return {
    begin: async (client, operation, context) => {
      const able = withTasksOf(client, context);
      const declaring = withContext(context, { capabilities: withTasks(context.capabilities) });
      const outcome = await send(able, operation, declaring);
      return outcome.task === undefined
        ? outcome
        : followToEnd(followingOf(able, operation, context), outcome);
    },
    resume: async (client, operation, context, { followed: ref, answered }) => {
      const followed = followingOf(withTasksOf(client, context), operation, context);
      const { answers = {}, latest = answers } = operation.round ?? {};
      const keys = Object.keys(latest);
      if (keys.length > 0) await useTask(followed, "tasks/update", ref, context, joinMembers(latest));
      const outcome = await useTask(followed, "tasks/get", ref, context);
      return followToEnd(followed, outcome, [...new Set([...answered, ...keys])]);
    },
  };
}

/** A call whose task is followed. */
interface FollowedCall extends Pick<
  FollowedTasksOptions,
  "server" | "clock" | "taskConnections" | "maxTotalMs" | "isHttp" | "here"
> {
  readonly provider: Provider;
  readonly tool: string;
  readonly context: CallContext;
}

async function useTask(
  { provider, tool }: Pick<FollowedCall, "provider" | "tool">,
  method: string,
  ref: string,
  context: CallContext,
  answers?: RawJson,
): Promise<Outcome> {
  return provider.call(createOperation(method, tool, { ref, arguments: answers }), context);
}

/** How long cancelling a task may take. */
const cancelMs = 2000;

/**
 * Follows a task for a caller that does not know tasks, and ends as the call would have ended. Its messages become progress, its
 * questions those of the call. A caller that leaves, and one that cannot be asked, cancel it.
 */
async function followToEnd(
  followed: FollowedCall,
  first: Outcome,
  answered: readonly string[] = [],
): Promise<Outcome> {
  const { context, server, clock, taskConnections, isHttp, here } = followed;
  const maxTotalMs = followed.maxTotalMs();
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
    const left = await followTask(first as TaskOutcome, {
      get: async () => (await useTask(followed, "tasks/get", ref, own)) as TaskOutcome,
      wait: (ms) => sleep(ms, clock, signal),
      isGivenUp: () => signal.aborted,
      onState: (outcome) => {
        taskConnections.noteOutcome(outcome);
        const { message } = outcome.task;
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
    if (left.kind !== "input_required") return toResult(left, server);
    // A server over HTTP is the same from each replica. A process is not.
    const state: FollowedState = { followed: ref, answered, at: isHttp ? undefined : here };
    return { kind: "input_required", asks: newAsks(left.asks, known), state, keepsAnswers: false };
  } catch (error) {
    const last = withContext(context, { signal: AbortSignal.timeout(cancelMs) });
    await useTask(followed, "tasks/cancel", ref, last).catch(() => {});
    const ended = await useTask(followed, "tasks/get", ref, last).catch(() => undefined);
    if (ended === undefined) taskConnections.forget(ref);
    else taskConnections.noteOutcome(ended);
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    stopTimer();
  }
}

/** The end of a call whose task has ended. */
function toResult(ended: Outcome, server: string): Outcome {
  if (ended.kind === "complete") return { kind: "complete", result: ended.result };
  if (ended.kind === "failed") throw ended.error;
  const why = ended.task?.message === undefined ? "" : `: ${ended.task.message}`;
  throw new ToolError(`${server} cancelled the call${why}.`);
}

/** A server that had something when it was listed does not offer it any more. */
export function noLongerOffers(server: string, what: string): UpstreamError {
  const text = `${server} no longer offers ${what}.`;
  return new UpstreamError("failed", text, { server, delivery: "not_sent" });
}

type TaskSupport = "required" | "optional";

const supports = new WeakMap<readonly Tool[], ReadonlyMap<string, TaskSupport>>();

/** Whether a tool of a 2025-11-25 server can or must be called as a task of that revision; undefined when it cannot. */
export function taskSupportOf(tools: readonly Tool[], name: string): TaskSupport | undefined {
  let byName = supports.get(tools);
  if (byName === undefined) {
    const found = tools.flatMap(({ name: tool, ...rest }): (readonly [string, TaskSupport])[] => {
      const { execution } = rest as { readonly execution?: { readonly taskSupport?: unknown } };
      const support = execution?.taskSupport;
      return support === "required" || support === "optional" ? [[tool, support]] : [];
    });
    supports.set(tools, (byName = new Map(found)));
  }
  return byName.get(name);
}

/** Runs a call as a task of the gateway's own, for a caller that knows tasks and a server that knows those of 2025-11-25. */
export function hostTask(
  hosted: MemoryTasks,
  context: CallContext,
  call: (context: CallContext) => Awaitable<Outcome>,
): Outcome {
  return hosted.start(context, async (run) => {
    try {
      const outcome = await call(toOwnContext(context, run));
      if (outcome.kind !== "complete") throw new TypeError("A call that is a task asks in its middle");
      return outcome.result;
    } catch (error) {
      if (error instanceof ToolError) return RawJson.fromValue(failure(error.message));
      throw error instanceof UpstreamError ? toRpcError(error) : error;
    }
  });
}

/** The request is over when the work begins: progress becomes the status of the task, questions are those of the task. */
function toOwnContext(context: CallContext, run: TaskRun): CallContext {
  return withContext(context, {
    signal: run.signal,
    wantsProgress: false,
    logLevel: undefined,
    visited: undefined,
    release: noopAsync,
    emit: (event: CallEvent) => {
      if (event.kind === "progress" && event.message !== undefined) run.status(event.message);
      return noopAsync();
    },
    ask: async (ask: Question) => {
      if (lacking(ask, context.capabilities) !== undefined) throw notOffered(ask, context.capabilities);
      const { answer } = await run.ask({ answer: toModernQuestion(ask) });
      return answer ?? RawJson.fromText("{}");
    },
  });
}

function toRpcError(error: UpstreamError): RpcError {
  const { code, server, delivery, message } = error;
  return new RpcError("rpc.internal", message, { cause: error, data: { code, server, delivery } });
}
