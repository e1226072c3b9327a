import { andThen, type Awaitable, recover, settled } from "../async/index.ts";
import { NotFoundError } from "../errors/index.ts";
import type { CallContext, OldProvider, ToolOutcome, TaskProvider } from "../provider/index.ts";
import type { Owner } from "./claims.ts";

/** A task of a member: whose it is, the tool as callers know it, and the member's own name for the task. */
interface MemberTask {
  readonly server: string;
  readonly tool: string;
  readonly ref: string;
}

interface ComposedTasksOptions {
  /** Whether a caller may use a tool now, and the tool is still the server's. */
  readonly owns: (server: string, tool: string, context: CallContext) => boolean;
  /** Uses the owner of a tool, as far as the caller may use the tool now. Throws a `NotFoundError` else. */
  readonly useTool: <T>(
    tool: string,
    context: CallContext,
    isOwner: (owner: Owner) => boolean,
    work: (provider: OldProvider) => Awaitable<T> | undefined,
  ) => Awaitable<T>;
}

/** The outcome of a member's call; a task is named so that it leads back to its member and its tool. */
export function toComposed(outcome: ToolOutcome, tool: string, server: string): ToolOutcome {
  if (outcome.kind !== "task") return outcome;
  const { task } = outcome;
  return { kind: "task", task: { ...task, ref: toRef({ server, tool, ref: task.ref }) } };
}

/** The tasks of all members. Each request looks up whether its caller may still use the tool. */
export function composeTasks({ owns, useTool }: ComposedTasksOptions): TaskProvider {
  const mayUse = (task: MemberTask | undefined, context: CallContext): boolean =>
    task !== undefined && owns(task.server, task.tool, context);
  const at = <T>(
    ref: string,
    context: CallContext,
    work: (tasks: TaskProvider, ownRef: string) => Awaitable<T> | undefined,
  ): Awaitable<T> => {
    const task = parseRef(ref);
    if (task === undefined) throw new NotFoundError("task", ref);
    return recover(
      () =>
        useTool(
          task.tool,
          context,
          ({ server }) => server === task.server,
          ({ tasks }) => tasks && work(tasks, task.ref),
        ),
      (error) => {
        throw error instanceof NotFoundError ? new NotFoundError("task", ref) : error;
      },
    );
  };
  return {
    toolOf: (ref) => parseRef(ref)?.tool,
    get: (ref, context) =>
      at(ref, context, (tasks, own) =>
        andThen(settled(tasks.get(own, context)), (task) => ({ ...task, ref })),
      ),
    update: async (ref, answers, context) => {
      await at(ref, context, (tasks, own) =>
        andThen(settled(tasks.update(own, answers, context)), () => true),
      );
    },
    cancel: async (ref, context) => {
      await at(ref, context, (tasks, own) => andThen(settled(tasks.cancel(own, context)), () => true));
    },
    watch: (ref, context, listener) =>
      at(ref, context, (tasks, own) =>
        tasks.watch?.(own, context, (task) => {
          // If the caller may no longer use the tool, it hears no more of the task.
          if (mayUse(parseRef(ref), context)) listener({ ...task, ref });
        }),
      ),
  };
}

function toRef({ server, tool, ref }: MemberTask): string {
  return JSON.stringify([server, tool, ref]);
}

/** A ref that a server did not seal may be anything. */
function parseRef(text: string): MemberTask | undefined {
  try {
    const parts: unknown = JSON.parse(text);
    if (!Array.isArray(parts) || parts.length !== 3 || !parts.every((part) => typeof part === "string"))
      return undefined;
    const [server, tool, ref] = parts as [string, string, string];
    return { server, tool, ref };
  } catch {
    return undefined;
  }
}
