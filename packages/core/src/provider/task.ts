import type { Awaitable } from "../async/index.ts";
import type { RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Questions } from "../mcp/index.ts";
import type { CallContext } from "./context.ts";

/** Where a task is. It goes between the first two, and stays at the first of the others that it reaches. */
export type TaskProgress =
  | { readonly status: "working" }
  /** The open questions by key. A key is asked once in a task. */
  | { readonly status: "input_required"; readonly asks: Questions }
  /** The result of the tool, also one with `isError`. */
  | { readonly status: "completed"; readonly result: RawJson }
  | { readonly status: "failed"; readonly error: RpcError }
  | { readonly status: "cancelled" };

/** The state, at one moment, of a call of a tool that is underway after its request was answered. */
export type TaskState = TaskProgress & {
  /** The provider's own name for the task. The server seals it for the caller, and that is the id on the wire. */
  readonly ref: string;
  /** A few words on the work, for people. */
  readonly message?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** How long the task is kept from its creation; null for as long as its provider likes. */
  readonly ttlMs: number | null;
  /** How long a caller should wait before it looks again. */
  readonly pollMs?: number | undefined;
};

/** The provider answers a call with a task, for a caller that declared the extension. */
export interface TaskOutcome {
  readonly kind: "task";
  readonly task: TaskState;
}

/** The tasks of a provider. Each function rejects with a `NotFoundError` for a task that is not there or is not the caller's. */
export interface TaskProvider {
  get(ref: string, context: CallContext): Awaitable<TaskState>;
  /** Takes answers to some of the open questions. Answers to others are ignored. */
  update(ref: string, answers: { readonly [key: string]: RawJson }, context: CallContext): Awaitable<void>;
  /** Wishes the task to end. It may end in another way, and one that has ended stays as it is. */
  cancel(ref: string, context: CallContext): Awaitable<void>;
  /** The name of the tool whose call became the task; undefined for an unknown ref. Left out where refs do not tell it. */
  toolOf?(ref: string): string | undefined;
  /** Tells every state of the task that comes after this until the returned function is called. */
  watch?(ref: string, context: CallContext, listener: (task: TaskState) => void): Awaitable<() => void>;
}

/** Whether a task has ended. It does not change any more. */
export function hasEnded({ status }: Pick<TaskProgress, "status">): boolean {
  return status !== "working" && status !== "input_required";
}
