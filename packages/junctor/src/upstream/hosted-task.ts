import type { Awaitable } from "@junctor/core/async";
import { RpcError, ToolError, UpstreamError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { lacking, notOffered, toModernQuestion, type Question, type Tool } from "@junctor/core/mcp";
import {
  failure,
  type CallContext,
  type CallEvent,
  nothing,
  withContext,
  fromTaskState,
  type Outcome,
} from "@junctor/core/provider";
import type { TaskRun, MemoryTasks } from "@junctor/server/internal";

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
  const state = hosted.start(context, async (run) => {
    try {
      const outcome = await call(toOwnContext(context, run));
      if (outcome.kind !== "complete") throw new TypeError("A call that is a task asks in its middle");
      return outcome.result;
    } catch (error) {
      if (error instanceof ToolError) return RawJson.fromValue(failure(error.message));
      throw error instanceof UpstreamError ? toRpcError(error) : error;
    }
  });
  return fromTaskState(state);
}

/** The request is over when the work begins: progress becomes the status of the task, questions are those of the task. */
function toOwnContext(context: CallContext, run: TaskRun): CallContext {
  return withContext(context, {
    signal: run.signal,
    wantsProgress: false,
    logLevel: undefined,
    visited: undefined,
    release: nothing,
    emit: (event: CallEvent) => {
      if (event.kind === "progress" && event.message !== undefined) run.status(event.message);
      return nothing();
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
