import { andThen, type Awaitable, settled } from "../async/index.ts";
import { NotFoundError, RpcError, ToolError } from "../errors/index.ts";
import { joinMembers, RawJson } from "../json/index.ts";
import { failure } from "./content.ts";
import { type CallContext, type CallEvent, nothing, withContext } from "./context.ts";
import type { Answers, MethodProvider, OldProvider, TaskRequest, ToolCall, ToolOutcome } from "./old.ts";
import type { TaskProvider, TaskState } from "./task.ts";

/** Serves a request about a task, at the end of the chain. */
export type ServeTask = (call: ToolCall, context: CallContext) => Awaitable<ToolOutcome>;

/** Makes a request about a task through all hooks. */
type RunTask = (call: ToolCall, context: CallContext, serve: ServeTask) => Awaitable<ToolOutcome>;

const noArguments = RawJson.fromText("{}");
const done: ToolOutcome = { kind: "complete", result: noArguments };

/** Tasks whose refs tell the tool. */
export type NamedTasks = TaskProvider & Required<Pick<TaskProvider, "toolOf">>;

/**
 * Calls and tasks of a provider, with refs that tell which tool a task belongs to: whoever judges or changes the end of a call must know
 * it. Where the provider's own refs do not tell, the name of the tool is put in front of them.
 */
export function nameTasks(provider: OldProvider): {
  readonly callTool: OldProvider["callTool"];
  tasks(): NamedTasks | undefined;
} {
  return {
    callTool: (call, context) => {
      const outcome = provider.callTool(call, context);
      const { tasks } = provider;
      if (tasks === undefined || tellsTool(tasks)) return outcome;
      return andThen(settled(outcome), (ended) =>
        ended.kind === "task" ? { kind: "task", task: withTool(ended.task, call.name) } : ended,
      );
    },
    tasks: () => {
      const { tasks } = provider;
      return tasks === undefined || tellsTool(tasks) ? tasks : withToolInRefs(tasks);
    },
  };
}

function tellsTool(tasks: TaskProvider): tasks is NamedTasks {
  return tasks.toolOf !== undefined;
}

function withTool(task: TaskState, tool: string): TaskState {
  return { ...task, ref: JSON.stringify([tool, task.ref]) };
}

function withToolInRefs(tasks: TaskProvider): NamedTasks {
  const at = <T>(ref: string, work: (own: string, tool: string) => T): T => {
    const parsed = parseRef(ref);
    if (parsed === undefined) throw new NotFoundError("task", ref);
    return work(parsed.ref, parsed.tool);
  };
  const watch = tasks.watch?.bind(tasks);
  return {
    toolOf: (ref) => parseRef(ref)?.tool,
    get: (ref, context) =>
      at(ref, (own, tool) => andThen(settled(tasks.get(own, context)), (task) => withTool(task, tool))),
    update: (ref, answers, context) => at(ref, (own) => tasks.update(own, answers, context)),
    cancel: (ref, context) => at(ref, (own) => tasks.cancel(own, context)),
    ...(watch === undefined
      ? {}
      : {
          watch: (ref, context, listener) =>
            at(ref, (own, tool) => watch(own, context, (task) => listener(withTool(task, tool)))),
        }),
  };
}

/** A ref that a server did not seal may be anything. */
function parseRef(text: string): { readonly tool: string; readonly ref: string } | undefined {
  try {
    const parts: unknown = JSON.parse(text);
    if (!Array.isArray(parts) || parts.length !== 2 || !parts.every((part) => typeof part === "string"))
      return undefined;
    const [tool, ref] = parts as [string, string];
    return { tool, ref };
  } catch {
    return undefined;
  }
}

/**
 * Tasks with hooks around them. Each request is a call of the kind `task` under the name of its tool, and the hooks see how the
 * task ended as they see the end of a call.
 */
export function guardTasks(tasks: NamedTasks, run: RunTask): TaskProvider {
  const make = async (
    task: TaskRequest,
    args: RawJson,
    context: CallContext,
    serve: ServeTask,
  ): Promise<ToolOutcome> => {
    const { ref } = task;
    const name = tasks.toolOf(ref);
    if (name === undefined) throw new NotFoundError("task", ref);
    try {
      return await run({ kind: "task", name, arguments: args, task }, context, serve);
    } catch (error) {
      throw error instanceof NotFoundError ? new NotFoundError("task", ref) : error;
    }
  };

  /** A state as the hooks leave it. */
  const show = async (
    ref: string,
    context: CallContext,
    look: (context: CallContext) => Awaitable<TaskState>,
  ): Promise<TaskState> => {
    let seen: TaskState | undefined;
    let message: string | undefined;
    const emit = (event: CallEvent): Promise<void> => {
      if (event.kind === "progress") ({ message } = event);
      return nothing();
    };
    try {
      const request: TaskRequest = { wish: "get", ref };
      const outcome = await make(request, noArguments, withContext(context, { emit }), async (_, mapped) => {
        seen = await look(mapped);
        if (seen.message !== undefined) await mapped.emit({ kind: "progress", message: seen.message });
        return toOutcome(seen);
      });
      if (seen === undefined) throw new TypeError("A middleware answered for a task");
      return { ...withOutcome(seen, outcome), message };
    } catch (error) {
      if (seen?.status !== "failed" && seen?.status !== "completed") throw error;
      return { ...withFailure(seen, error), message };
    }
  };

  const watch = tasks.watch?.bind(tasks);
  return {
    toolOf: (ref) => tasks.toolOf(ref),
    get: (ref, context) => show(ref, context, (mapped) => tasks.get(ref, mapped)),
    update: async (ref, answers, context) => {
      await make({ wish: "update", ref }, joinMembers(answers), context, async (call, mapped) => {
        await tasks.update(ref, toAnswers(call.arguments), mapped);
        return done;
      });
    },
    cancel: async (ref, context) => {
      await make({ wish: "cancel", ref }, noArguments, context, async (_, mapped) => {
        await tasks.cancel(ref, mapped);
        return done;
      });
    },
    ...(watch === undefined
      ? {}
      : {
          watch: async (ref: string, context: CallContext, listener: (task: TaskState) => void) => {
            // One after the other, so that an older state is never sent after a newer one.
            let last = Promise.resolve();
            const tell = async (task: TaskState): Promise<void> => {
              const shown = await show(ref, context, () => task).catch(() => undefined);
              if (shown !== undefined) listener(shown);
            };
            return watch(ref, context, (task) => {
              last = last.then(() => tell(task));
            });
          },
        }),
  };
}

/** The tasks of the provider that is in use when a request comes. */
export function followTasks({ tasks }: OldProvider, current: () => OldProvider): TaskProvider | undefined {
  if (tasks === undefined) return undefined;
  const now = (): TaskProvider => {
    const found = current().tasks;
    if (found === undefined) throw new TypeError("The provider has no tasks");
    return found;
  };
  return {
    toolOf: (ref) => now().toolOf?.(ref),
    get: (ref, context) => now().get(ref, context),
    update: (ref, answers, context) => now().update(ref, answers, context),
    cancel: (ref, context) => now().cancel(ref, context),
    ...(tasks.watch === undefined
      ? {}
      : { watch: (ref, context, listener) => now().watch?.(ref, context, listener) ?? (() => {}) }),
  };
}

/** The other methods of a provider with hooks around them: each request is a call of the kind `method`. */
export function guardMethods({ methods }: OldProvider, run: RunTask): MethodProvider | undefined {
  return (
    methods && {
      has: (method, context) => methods.has(method, context),
      serve: async (method, params, context) => {
        const call: ToolCall = { kind: "method", name: method, arguments: params };
        const outcome = await run(call, context, async (made, mapped) => ({
          kind: "complete",
          result: await methods.serve(made.name, made.arguments, mapped),
        }));
        if (outcome.kind === "complete") return outcome.result;
        throw new TypeError("A middleware answered for a method");
      },
    }
  );
}

/** A state as the end of a call, so that hooks need not know tasks to see results. */
function toOutcome(task: TaskState): ToolOutcome {
  switch (task.status) {
    case "completed":
      return { kind: "complete", result: task.result };
    case "failed":
      throw task.error;
    case "input_required":
      return { kind: "input_required", asks: task.asks };
    case "working":
    case "cancelled":
      return { kind: "task", task };
  }
}

function withOutcome(task: TaskState, outcome: ToolOutcome): TaskState {
  const { ref, createdAt, updatedAt, ttlMs, pollMs } = task;
  const facts = { ref, createdAt, updatedAt, ttlMs, pollMs };
  switch (outcome.kind) {
    case "complete":
      return { ...facts, status: "completed", result: outcome.result };
    case "input_required":
      return { ...facts, status: "input_required", asks: outcome.asks };
    case "task":
      return outcome.task;
  }
}

/** The task with the error of a hook that withheld its result: a `ToolError` becomes a result, as for a call. */
function withFailure(task: TaskState, error: unknown): TaskState {
  if (error instanceof ToolError)
    return withOutcome(task, { kind: "complete", result: RawJson.fromValue(failure(error.message)) });
  const rpcError =
    error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
  const { ref, createdAt, updatedAt, ttlMs, pollMs } = task;
  return { ref, createdAt, updatedAt, ttlMs, pollMs, status: "failed", error: rpcError };
}

function toAnswers(args: RawJson): Answers {
  const keys = Object.keys(args.value as object);
  return Object.fromEntries(keys.map((key) => [key, args.at(key)])) as Answers;
}
