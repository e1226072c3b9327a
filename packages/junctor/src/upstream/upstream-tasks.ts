import { createHash } from "node:crypto";
import type { Client } from "@junctor/client";
import { followTask } from "@junctor/client/internal";
import { andThen, type Awaitable, type Clock, settled, sleep, tryThen } from "@junctor/core/async";
import { NotFoundError, type RpcError, UpstreamError } from "@junctor/core/errors";
import {
  type CallContext,
  createOperation,
  fromTaskState,
  hasTaskEnded,
  type Notice,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
  toTaskState,
  withContext,
} from "@junctor/core/provider";
import { fromRemoteTaskId, isRemote, toRemoteTaskId } from "../cluster/index.ts";
import { toProvider } from "./client-provider.ts";
import type { TaskConnections } from "./task-connections.ts";
import { fromServerRef, prefixes, splitAddress, toServerRef, withAddress } from "./task-refs.ts";
import type { UseAt } from "./use-at.ts";

/** Longest id of a server that is passed on, sealed. */
const maxIdLength = 1024;
/** Most ends of tasks that are remembered. */
const maxEnds = 16_384;
/** A caller that watches many tasks of a server has each looked at more rarely: all of them together 100 times a second at most. */
const lookMs = 10;

/** Where a task is: at another replica, hosted here, or at the server. `own` is its ref there. */
type FoundTask =
  | { readonly kind: "elsewhere"; readonly at: string }
  | { readonly kind: "hosted" | "own"; readonly own: string };

interface UpstreamTasksOptions {
  readonly server: string;
  readonly clock: Clock;
  /** Uses the client of a task, or of the caller's connection. */
  readonly use: <T>(ref: string, context: CallContext, use: (client: Client) => Awaitable<T>) => Promise<T>;
  readonly connections: TaskConnections;
  /** The tasks that the gateway hosts. */
  readonly hosted: Provider;
  /** The error that a caller gets for an error of the server. */
  readonly toFailure: (error: unknown) => unknown;
  /** Whether tasks of the server end with one process of it. */
  readonly isProcess: boolean;
  /** The address of this replica, where the gateway has several, and the way to the same server at another one. */
  readonly here?: string | undefined;
  readonly useAt: UseAt;
}

/** The tasks of a server behind the gateway. */
export interface UpstreamTasks {
  /** A task that the server of a client made of a call, as callers of the gateway know it. */
  created(outcome: Outcome, client: Client): Outcome;
  /** The same for one that the gateway hosts. */
  hosted(outcome: Outcome): Outcome;
  /** Serves an operation of a task at the home of the task. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome>;
  watch(target: Target, context: CallContext, listener: (notice: Notice) => void): Awaitable<() => void>;
}

export function createUpstreamTasks(options: UpstreamTasksOptions): UpstreamTasks {
  const { server, clock, use, connections, hosted, toFailure, here, useAt, isProcess } = options;
  const assertUnchanged = createEnds(server);
  /** How many tasks each caller watches. */
  const watching = new Map<string | undefined, number>();
  const withFailure = (outcome: Outcome): Outcome =>
    outcome.kind === "failed" ? { ...outcome, error: toFailure(outcome.error) as RpcError } : outcome;
  const find = (ref: string): FoundTask => {
    const { at, local } = splitAddress(ref);
    if (at !== undefined && at !== here) return { kind: "elsewhere", at };
    if (local.startsWith(prefixes.hosted))
      return { kind: "hosted", own: local.slice(prefixes.hosted.length) };
    return { kind: "own", own: local.slice(prefixes.own.length) };
  };

  /** Looks at a task of the server. One that the server does not know any more counts no longer. */
  const lookBy = (
    client: Client,
    operation: Operation,
    own: string,
    context: CallContext,
  ): Awaitable<Outcome> =>
    tryThen(
      () => settled(toProvider(client).call(operation, context)),
      (outcome) => {
        const seen = withRef(outcome, fromServerRef(outcome.task?.ref ?? "", client));
        connections.noteState(seen);
        assertUnchanged(seen);
        return withFailure(seen);
      },
      (error) => {
        if (error instanceof NotFoundError) connections.forget(own);
        throw error;
      },
    );

  const call: UpstreamTasks["call"] = (operation, context) => {
    const { name: tool, ref = "" } = operation;
    const found = find(ref);
    const named = (outcome: Outcome): Outcome => withRef(outcome, ref);
    if (found.kind === "hosted")
      return andThen(settled(hosted.call({ ...operation, ref: found.own }, context)), named);
    if (found.kind === "elsewhere")
      return useAt(found.at, context, (client) =>
        toProvider(client).call({ ...operation, ref: toRemoteTaskId(tool, ref) }, context),
      ).then(named);
    const done = use(found.own, context, (client) => {
      const sent = { ...operation, ref: toServerRef(tool, found.own, client) };
      if (operation.method === "tasks/get") return lookBy(client, sent, found.own, context);
      return toProvider(client).call(sent, context);
    }).then(named);
    // Its caller need not look at it again, and it counts until it was seen to have ended.
    if (operation.method !== "tasks/cancel") return done;
    return done.then(async (outcome) => {
      await Promise.resolve(call(toLook(operation), context)).catch(() => {});
      return outcome;
    });
  };

  return {
    call,
    created: (outcome, client) => {
      const { ref } = outcome.task ?? { ref: "" };
      // The replica of its process named it, and checked it.
      if (isRemote(client)) return withRef(outcome, fromRemoteTaskId(ref));
      if (ref.length > maxIdLength) {
        const text = `${server} began a task with an id of ${ref.length} characters; the limit is ${maxIdLength}.`;
        throw new UpstreamError("failed", text, { server, delivery: "outcome_unknown" });
      }
      return withRef(withFailure(outcome), withAddress(prefixes.own + ref, isProcess ? here : undefined));
    },
    hosted: (outcome) => withRef(outcome, withAddress(prefixes.hosted + (outcome.task?.ref ?? ""), here)),
    watch: (target, context, listener) => {
      const { ref = "" } = target;
      const found = find(ref);
      const tell = (outcome: Outcome): void => listener({ kind: "task", outcome: withRef(outcome, ref) });
      if (found.kind !== "hosted" || hosted.watch === undefined) return watch(target, context, tell);
      return hosted.watch({ ...target, ref: found.own }, context, (notice) => {
        if (notice.kind === "task") tell(notice.outcome);
      });
    },
  };

  /** Looks at a task again and again. Servers need not tell of their tasks. */
  async function watch(
    target: Target,
    context: CallContext,
    tell: (outcome: Outcome) => void,
  ): Promise<() => void> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const own = withContext(context, { signal });
    const get = (): Promise<Outcome> => Promise.resolve().then(() => call(toLook(target), own));
    const first = await get();
    let lastText = toText(first);
    const { caller } = context;
    watching.set(caller, (watching.get(caller) ?? 0) + 1);
    const leave = (): void => {
      const others = (watching.get(caller) ?? 0) - 1;
      if (others > 0) watching.set(caller, others);
      else watching.delete(caller);
    };
    void followTask(toTaskState(first), {
      get: async () => toTaskState(await get()),
      wait: (ms) => sleep(Math.max(ms, (watching.get(caller) ?? 0) * lookMs), clock, signal),
      isGivenUp: () => signal.aborted,
      answered: new Set(),
      onState: (state) => {
        const outcome = fromTaskState(state);
        const text = toText(outcome);
        if (text !== lastText) tell(outcome);
        lastText = text;
      },
    })
      .catch(() => {})
      .finally(leave);
    return () => over.abort(new DOMException("The task is not watched any more", "AbortError"));
  }
}

/** The operation that looks at a task. */
function toLook({ name, ref }: Target): Operation {
  return createOperation("tasks/get", name, { ref });
}

/** An outcome whose task has another name. */
function withRef(outcome: Outcome, ref: string): Outcome {
  return outcome.task === undefined ? outcome : { ...outcome, task: { ...outcome.task, ref } };
}

/** Remembers how tasks ended. A server that says something else later is not believed. */
function createEnds(server: string): (outcome: Outcome) => void {
  const ends = new Map<string, string>();
  return (outcome) => {
    const { ref } = outcome.task ?? { ref: "" };
    const known = ends.get(ref);
    if (known === undefined && !hasTaskEnded(outcome)) return;
    const end = createHash("sha256").update(toText(outcome)).digest("base64url");
    if (known !== undefined && known !== end) {
      const text = `${server} changed a task after its end.`;
      throw new UpstreamError("failed", text, { server, delivery: "answered" });
    }
    ends.set(ref, end);
    const [oldest] = ends.keys();
    if (ends.size > maxEnds && oldest !== undefined) ends.delete(oldest);
  };
}

/** The state of a task as text, to compare it. Its times are left out: a change of those alone is not reported. */
function toText(outcome: Outcome): string {
  const { kind, task } = outcome;
  const facts: readonly unknown[] = [kind, task?.message];
  switch (outcome.kind) {
    case "complete":
      return JSON.stringify([...facts, outcome.result.text]);
    case "failed":
      return JSON.stringify([...facts, outcome.error.message, outcome.error.rpcCode]);
    case "input_required":
      return JSON.stringify([...facts, outcome.asks]);
    case "working":
    case "cancelled":
      return JSON.stringify(facts);
  }
}
