import { createHash } from "node:crypto";
import type { Client } from "@junctor/client";
import { followTask } from "@junctor/client/internal";
import { andThen, type Awaitable, type Clock, Quota, settled, sleep, tryThen } from "@junctor/core/async";
import { NotFoundError, type RpcError, UpstreamError } from "@junctor/core/errors";
import { withoutTasks } from "@junctor/core/mcp";
import {
  type CallContext,
  createOperation,
  hasTaskEnded,
  type Notice,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
  type Task,
  type TaskOutcome,
  withContext,
} from "@junctor/core/provider";
import { fromRemoteTaskId, isRemote, toRemoteTaskId } from "../cluster/index.ts";
import type { UseAt } from "./calls.ts";
import type { Pool, PooledConnection } from "./pool.ts";
import { needsTasks } from "./task-calls.ts";

/** Longest task id of a server that is passed on, sealed. */
const maxIdLength = 1024;
/** The most ends of tasks that are remembered. */
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
  /** The address of this replica, where the gateway has several. */
  readonly here?: string | undefined;
  /** Uses the same server at another replica. */
  readonly useAt: UseAt;
}

/** The tasks of a server behind the gateway. */
export class UpstreamTasks {
  readonly #options: UpstreamTasksOptions;
  readonly #assertUnchanged: (outcome: Outcome) => void;
  /** How many tasks each caller watches. */
  readonly #watching = new Map<string | undefined, number>();

  constructor(options: UpstreamTasksOptions) {
    this.#options = options;
    this.#assertUnchanged = createEnds(options.server);
  }

  /** A task that the server of a client made of a call, as callers of the gateway know it. */
  toCallersTask(outcome: Outcome, client: Client): Outcome {
    const { server, isProcess, here } = this.#options;
    const { ref } = outcome.task ?? { ref: "" };
    // The replica of its process named it, and checked it.
    if (isRemote(client)) return withRef(outcome, fromRemoteTaskId(ref));
    if (ref.length > maxIdLength) {
      const text = `${server} began a task with an id of ${ref.length} characters; the limit is ${maxIdLength}.`;
      throw new UpstreamError("failed", text, { server, delivery: "outcome_unknown" });
    }
    const known = withAddress(prefixes.own + ref, isProcess ? here : undefined);
    return withRef(this.#withFailure(outcome), known);
  }

  /** The same for a task that the gateway hosts. */
  toHostedTask(outcome: Outcome): Outcome {
    const { ref } = outcome.task ?? { ref: "" };
    return withRef(outcome, withAddress(prefixes.hosted + ref, this.#options.here));
  }

  /** Serves an operation of a task at the home of the task. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome> {
    const { use, useAt, hosted } = this.#options;
    const { name: tool, ref = "" } = operation;
    const found = this.#find(ref);
    const named = (outcome: Outcome): Outcome => withRef(outcome, ref);
    if (found.kind === "hosted")
      return andThen(settled(hosted.call({ ...operation, ref: found.own }, context)), named);
    if (found.kind === "elsewhere")
      return useAt(found.at, context, (client) =>
        client.call({ ...operation, ref: toRemoteTaskId(tool, ref) }, context),
      ).then(named);
    const done = use(found.own, context, (client) => {
      const sent = { ...operation, ref: toServerRef(tool, found.own, client) };
      if (operation.method === "tasks/get") return this.#look(client, sent, found.own, context);
      return client.call(sent, context);
    }).then(named);
    // The task counts until it was seen to have ended, and its caller need not look at it again.
    if (operation.method !== "tasks/cancel") return done;
    return done.then(async (outcome) => {
      await Promise.resolve(this.call(toLook(operation), context)).catch(() => {});
      return outcome;
    });
  }

  watch(target: Target, context: CallContext, listener: (notice: Notice) => void): Awaitable<() => void> {
    const { hosted } = this.#options;
    const { ref = "" } = target;
    const found = this.#find(ref);
    const tell = (outcome: Outcome): void => listener({ kind: "task", outcome: withRef(outcome, ref) });
    if (found.kind !== "hosted" || hosted.watch === undefined) return this.#poll(target, context, tell);
    return hosted.watch({ ...target, ref: found.own }, context, (notice) => {
      if (notice.kind === "task") tell(notice.outcome);
    });
  }

  #find(ref: string): FoundTask {
    const { at, local } = splitAddress(ref);
    if (at !== undefined && at !== this.#options.here) return { kind: "elsewhere", at };
    if (local.startsWith(prefixes.hosted))
      return { kind: "hosted", own: local.slice(prefixes.hosted.length) };
    return { kind: "own", own: local.slice(prefixes.own.length) };
  }

  /** Looks at a task of the server. One that the server does not know any more counts no longer. */
  #look(client: Client, operation: Operation, own: string, context: CallContext): Awaitable<Outcome> {
    const { connections } = this.#options;
    return tryThen(
      () => settled(client.call(operation, context)),
      (outcome) => {
        const named = withRef(outcome, fromServerRef(outcome.task?.ref ?? "", client));
        connections.noteOutcome(named);
        this.#assertUnchanged(named);
        return this.#withFailure(named);
      },
      (error) => {
        if (error instanceof NotFoundError) connections.forget(own);
        throw error;
      },
    );
  }

  /** Looks at a task again and again. Servers need not announce changes of their tasks. */
  async #poll(target: Target, context: CallContext, tell: (outcome: Outcome) => void): Promise<() => void> {
    const { clock } = this.#options;
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const own = withContext(context, { signal });
    const get = (): Promise<Outcome> => Promise.resolve().then(() => this.call(toLook(target), own));
    const first = await get();
    let lastText = toText(first);
    const { caller } = context;
    const count = (): number => this.#watching.get(caller) ?? 0;
    this.#watching.set(caller, count() + 1);
    const leave = (): void => {
      const others = count() - 1;
      if (others > 0) this.#watching.set(caller, others);
      else this.#watching.delete(caller);
    };
    void followTask(first as TaskOutcome, {
      get: async () => (await get()) as TaskOutcome,
      wait: (ms) => sleep(Math.max(ms, count() * lookMs), clock, signal),
      isGivenUp: () => signal.aborted,
      answered: new Set(),
      onState: (outcome) => {
        const text = toText(outcome);
        if (text !== lastText) tell(outcome);
        lastText = text;
      },
    })
      .catch(() => {})
      .finally(leave);
    return () => over.abort(new DOMException("The task is not watched any more", "AbortError"));
  }

  #withFailure(outcome: Outcome): Outcome {
    if (outcome.kind !== "failed") return outcome;
    return { ...outcome, error: this.#options.toFailure(outcome.error) as RpcError };
  }
}

/** The operation that looks at a task. */
function toLook({ name, ref }: Target): Operation {
  return createOperation("tasks/get", name, { ref });
}

/** An outcome with another ref for its task. */
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
  const facts: readonly unknown[] = [kind, task?.message, task?.more?.text];
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

/** Tasks of the server, and tasks that the gateway hosts for one that knows only those of 2025-11-25. */
const prefixes: { readonly own: "m:"; readonly hosted: "h:" } = { own: "m:", hosted: "h:" };

/** A ref with the replica where its task lives; without one where the task is found from any replica. */
function withAddress(ref: string, at: string | undefined): string {
  return at === undefined ? ref : `@${at}:${ref}`;
}

/** The replica where a task lives, if its ref says so, and its ref there. */
function splitAddress(ref: string): { readonly at: string | undefined; readonly local: string } {
  const end = ref.startsWith("@") ? ref.indexOf(":") : -1;
  return end < 0 ? { at: undefined, local: ref } : { at: ref.slice(1, end), local: ref.slice(end + 1) };
}

/** The ref of a server's own task, as the server of a client knows it. Another replica knows it by the ref that callers have. */
function toServerRef(tool: string, ref: string, client: Client): string {
  return isRemote(client) ? toRemoteTaskId(tool, prefixes.own + ref) : ref;
}

/** The reverse of {@link toServerRef}. */
function fromServerRef(ref: string, client: Client): string {
  return isRemote(client) ? fromRemoteTaskId(ref).slice(prefixes.own.length) : ref;
}

interface RunningTask {
  readonly holder: unknown;
  connection?: {
    readonly pooled: PooledConnection;
    /** The process that the task runs in. */
    readonly client: PooledConnection["client"];
    readonly release: () => void;
  };
  stopTimer: () => void;
}

interface TaskConnectionsOptions {
  /** The name of the server. */
  readonly server: string;
  readonly pool: Pick<Pool, "keep">;
  readonly clock: Clock;
}

/** The most tasks of one server: servers of the toolkit allow as many for one caller, and the gateway is one caller to them. */
const maxTasks = 1024;
/** How long a task that no caller looks at is counted, and its connection kept. */
const unseenMs = 3_600_000;

/**
 * The tasks that callers have at one server, counted by caller: to the server all callers are one, so one of them could take all
 * its room. A task counts until it was seen to have ended, expires, or is not asked for.
 *
 * Until then the connection of a task that runs in a process stays open: a task ends with its process, and another process does not
 * know it.
 */
export class TaskConnections {
  readonly #options: TaskConnectionsOptions;
  readonly #tasks = new Map<string, RunningTask>();
  readonly #quota: Quota;

  constructor(options: TaskConnectionsOptions) {
    this.#options = options;
    this.#quota = new Quota({ what: `tasks of ${options.server}`, total: maxTasks });
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** The connection of a task; undefined when any will do. */
  find(ref: string): PooledConnection | undefined {
    return this.#tasks.get(ref)?.connection?.pooled;
  }

  /** The error for a caller that has its share of the tasks; undefined while it may begin another one. */
  refusal(context: CallContext): RpcError | undefined {
    const holder = holderOf(context);
    if (this.#quota.refusal(holder) === undefined) return undefined;
    for (const [ref, { connection }] of this.#tasks)
      if (connection !== undefined && connection.pooled.client !== connection.client) this.forget(ref);
    return this.#quota.refusal(holder);
  }

  /**
   * Makes a call that may become a task. For a caller that has its share of them it is made without tasks, and refused if it needs
   * one.
   */
  async call(context: CallContext, make: (context: CallContext) => Awaitable<Outcome>): Promise<Outcome> {
    const refused = this.refusal(context);
    if (refused !== undefined) {
      try {
        return await make(withContext(context, { capabilities: withoutTasks(context.capabilities) }));
      } catch (error) {
        throw needsTasks(error) ? refused : error;
      }
    }
    const holder = holderOf(context);
    this.#quota.add(holder);
    try {
      const outcome = await make(context);
      if (outcome.task !== undefined && !hasTaskEnded(outcome)) this.#begin(outcome.task, holder);
      return outcome;
    } finally {
      this.#quota.give(holder);
    }
  }

  /** Keeps the connection of a task open while the task counts. */
  keep({ ref }: Task, pooled: PooledConnection): void {
    const task = this.#tasks.get(ref);
    if (task === undefined || task.connection !== undefined) return;
    task.connection = { pooled, client: pooled.client, release: this.#options.pool.keep(pooled) };
  }

  /** A caller looked at a task. */
  noteOutcome(outcome: Outcome): void {
    const { task } = outcome;
    if (task === undefined) return;
    if (hasTaskEnded(outcome)) this.forget(task.ref);
    else this.#renew(task);
  }

  forget(ref: string): void {
    const task = this.#tasks.get(ref);
    if (task === undefined) return;
    this.#tasks.delete(ref);
    this.#quota.give(task.holder);
    task.stopTimer();
    task.connection?.release();
  }

  [Symbol.dispose](): void {
    for (const ref of this.#tasks.keys()) this.forget(ref);
  }

  #begin(task: Task, holder: unknown): void {
    if (this.#tasks.has(task.ref)) return;
    this.#quota.add(holder);
    this.#tasks.set(task.ref, { holder, stopTimer: () => {} });
    this.#renew(task);
  }

  #renew({ ref, ttlMs }: Task): void {
    const task = this.#tasks.get(ref);
    if (task === undefined) return;
    task.stopTimer();
    const ms = Math.min(ttlMs ?? unseenMs, unseenMs);
    task.stopTimer = this.#options.clock.timer(ms, () => this.forget(ref));
  }
}

function holderOf({ caller, session }: CallContext): unknown {
  return caller ?? session;
}
