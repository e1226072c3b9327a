import { createHash } from "node:crypto";
import type { Client } from "@junctor/client";
import { followTask } from "@junctor/client/internal";
import { type Awaitable, type Clock, sleep } from "@junctor/core/async";
import { NotFoundError, UpstreamError } from "@junctor/core/errors";
import {
  type CallContext,
  withContext,
  hasEnded,
  type TaskProvider,
  type TaskState,
} from "@junctor/core/provider";
import { fromRemoteTaskId, isRemote, toRemoteTaskId } from "../cluster/index.ts";
import type { TaskConnections } from "./task-connections.ts";
import { fromServerRef, prefixes, splitAddress, toServerRef, withAddress } from "./task-refs.ts";
import type { UseAt } from "./use-at.ts";

/** Longest id of a server that is passed on, sealed. */
const maxIdLength = 1024;
/** Most ends of tasks that are remembered. */
const maxEnds = 16_384;
/** A caller that watches many tasks of a server has each looked at more rarely: all of them together 100 times a second at most. */
const lookMs = 10;

/** Uses the client of a task, or of the caller's connection. */
export type UseTask = <T>(
  ref: string,
  context: CallContext,
  use: (client: Client) => Promise<T>,
) => Promise<T>;

/** Where a task is: at another replica, hosted here, or at the server. `own` is its ref there. */
type FoundTask =
  | { readonly kind: "elsewhere"; readonly at: string }
  | { readonly kind: "hosted" | "own"; readonly own: string };

interface UpstreamTasksOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly use: UseTask;
  readonly connections: TaskConnections;
  /** The tasks that the gateway hosts. */
  readonly hosted: TaskProvider;
  /** The error that a caller gets for an error of the server. */
  readonly toFailure: (error: unknown) => unknown;
  /** Whether tasks of the server end with one process of it. */
  readonly isProcess: boolean;
  /** The address of this replica, where the gateway has several, and the way to the same server at another one. */
  readonly here?: string | undefined;
  readonly useAt: UseAt;
}

/** The tasks of a server behind the gateway. */
export interface UpstreamTasks extends TaskProvider {
  /** A task that the server of a client made of a call, as callers of the gateway know it. */
  created(task: TaskState, client: Client): TaskState;
  /** The same for one that the gateway hosts. */
  hosted(task: TaskState): TaskState;
}

export function createUpstreamTasks(options: UpstreamTasksOptions): UpstreamTasks {
  const { server, clock, use, connections, hosted, toFailure, here, useAt, isProcess } = options;
  const assertUnchanged = createEnds(server);
  /** How many tasks each caller watches. */
  const watching = new Map<string | undefined, number>();
  const withFailure = (task: TaskState): TaskState =>
    task.status === "failed" ? withError(task, toFailure(task.error)) : task;
  const find = (ref: string): FoundTask => {
    const { at, local } = splitAddress(ref);
    if (at !== undefined && at !== here) return { kind: "elsewhere", at };
    if (local.startsWith(prefixes.hosted))
      return { kind: "hosted", own: local.slice(prefixes.hosted.length) };
    return { kind: "own", own: local.slice(prefixes.own.length) };
  };
  const at = <T>(
    ref: string,
    context: CallContext,
    work: (tasks: TaskProvider, ownRef: string, client?: Client) => T | Promise<T>,
  ): Promise<T> | T => {
    const found = find(ref);
    if (found.kind === "hosted") return work(hosted, found.own);
    const workBy = async (client: Client, own: string): Promise<T> => {
      if (client.tasks === undefined) throw new NotFoundError("task", ref);
      return work(client.tasks, own, client);
    };
    if (found.kind === "elsewhere")
      return useAt(found.at, context, (client) => workBy(client, toRemoteTaskId(ref)));
    return use(found.own, context, (client) => workBy(client, toServerRef(found.own, client)));
  };
  /** Looks at a task; one that its server does not know any more counts no longer. */
  const lookAt = async (ref: string, look: () => Awaitable<TaskState>): Promise<TaskState> => {
    try {
      return await look();
    } catch (error) {
      const found = find(ref);
      if (error instanceof NotFoundError && found.kind === "own") connections.forget(found.own);
      throw error;
    }
  };
  const get = async (ref: string, context: CallContext): Promise<TaskState> => {
    const isOwn = find(ref).kind === "own";
    return at(ref, context, async (tasks, own, client) => {
      const found = await lookAt(ref, () => tasks.get(own, context));
      if (!isOwn || client === undefined) return { ...found, ref };
      const task = { ...found, ref: fromServerRef(found.ref, client) };
      connections.noteState(task);
      assertUnchanged(task);
      return { ...withFailure(task), ref };
    });
  };
  return {
    created: (task, client) => {
      // The replica of its process named it, and checked it.
      if (isRemote(client)) return { ...task, ref: fromRemoteTaskId(task.ref) };
      if (task.ref.length > maxIdLength) {
        const text = `${server} began a task with an id of ${task.ref.length} characters; the limit is ${maxIdLength}.`;
        throw new UpstreamError("failed", text, { server, delivery: "outcome_unknown" });
      }
      const ref = withAddress(prefixes.own + task.ref, isProcess ? here : undefined);
      return { ...withFailure(task), ref };
    },
    hosted: (task) => ({ ...task, ref: withAddress(prefixes.hosted + task.ref, here) }),
    get,
    update: async (ref, answers, context) =>
      at(ref, context, (tasks, own) => tasks.update(own, answers, context)),
    cancel: async (ref, context) => {
      await at(ref, context, (tasks, own) => tasks.cancel(own, context));
      // Its caller need not look at it again, and it counts until it was seen to have ended.
      if (find(ref).kind === "own") await get(ref, context).catch(() => {});
    },
    watch: async (ref, context, listener) => {
      const found = find(ref);
      if (found.kind !== "hosted") return watch(ref, context, listener);
      return hosted.watch?.(found.own, context, (task) => listener({ ...task, ref })) ?? (() => {});
    },
  };

  /** Looks at a task again and again. Servers need not tell of their tasks. */
  async function watch(
    ref: string,
    context: CallContext,
    listener: (task: TaskState) => void,
  ): Promise<() => void> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const own = withContext(context, { signal });
    const first = await get(ref, own);
    let lastText = toText(first);
    const { caller } = context;
    watching.set(caller, (watching.get(caller) ?? 0) + 1);
    const leave = (): void => {
      const others = (watching.get(caller) ?? 0) - 1;
      if (others > 0) watching.set(caller, others);
      else watching.delete(caller);
    };
    void followTask(first, {
      get: () => get(ref, own),
      wait: (ms) => sleep(Math.max(ms, (watching.get(caller) ?? 0) * lookMs), clock, signal),
      isGivenUp: () => signal.aborted,
      answered: new Set(),
      onState: (task) => {
        const text = toText(task);
        if (text !== lastText) listener(task);
        lastText = text;
      },
    })
      .catch(() => {})
      .finally(leave);
    return () => over.abort(new DOMException("The task is not watched any more", "AbortError"));
  }
}

/** Remembers how tasks ended. A server that says something else later is not believed. */
function createEnds(server: string): (task: TaskState) => void {
  const ends = new Map<string, string>();
  return (task) => {
    const known = ends.get(task.ref);
    if (known === undefined && !hasEnded(task)) return;
    const end = createHash("sha256").update(toText(task)).digest("base64url");
    if (known !== undefined && known !== end) {
      const text = `${server} changed a task after its end.`;
      throw new UpstreamError("failed", text, { server, delivery: "answered" });
    }
    ends.set(task.ref, end);
    const [oldest] = ends.keys();
    if (ends.size > maxEnds && oldest !== undefined) ends.delete(oldest);
  };
}

/** A state as text, to compare it. Its times are left out: a change of those alone is not reported. */
function toText(task: TaskState): string {
  const { status, message } = task;
  switch (task.status) {
    case "completed":
      return JSON.stringify([status, message, task.result.text]);
    case "failed":
      return JSON.stringify([status, message, task.error.message, task.error.rpcCode]);
    case "input_required":
      return JSON.stringify([status, message, task.asks]);
    case "working":
    case "cancelled":
      return JSON.stringify([status, message]);
  }
}

function withError(task: Extract<TaskState, { status: "failed" }>, error: unknown): TaskState {
  return { ...task, error: error as typeof task.error };
}
