import { type Clock, sleep, type Deadline, type Deadlines, fromSignal } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { joinMembers, RawJson, editMembers, prependMembers, withoutMembers } from "@junctor/core/json";
import {
  type Questions,
  type ToolResult,
  carriedMeta,
  notOffered,
  type ServerCapabilities,
} from "@junctor/core/mcp";
import {
  createOperation,
  type Outcome,
  type Task,
  type TaskOutcome,
  hasTaskEnded,
  type AskCaller,
  type CallContext,
  type Operation,
  toParams,
} from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import type { Agreement, RequestSpec, Send } from "./conversation.ts";
import { type QuestionHandlers, answerAll } from "./handlers.ts";
import { toSpec, answerBy } from "./on-behalf.ts";
import { type Operations, toToolResult } from "./operations.ts";

/** How long a task is waited for. */
export interface TaskWait {
  /** Aborting ends the wait, not the task; {@link ClientTask.cancel} ends the task. */
  readonly signal?: AbortSignal;
  /** How long the server may take for one answer; by default as for other requests. */
  readonly timeoutMs?: number;
  /** How long the whole wait may take; without limit when left out. */
  readonly maxTotalMs?: number;
  /** Called for each state that differs from the one before. */
  readonly onStatus?: (task: TaskReport) => void;
}

/** A task at one moment, as programs see it. */
export type TaskReport = Task &
  (
    | { readonly status: "working" | "cancelled" }
    /** The open questions by key. A key is asked once in a task. */
    | { readonly status: "input_required"; readonly asks: Questions }
    /** The result of the tool, also one with `isError`. */
    | { readonly status: "completed"; readonly result: ToolResult }
    | { readonly status: "failed"; readonly error: RpcError }
  );

/** What a started call resolves with: its result, or the task that it became. */
export type StartedCall =
  | { readonly kind: "complete"; readonly result: ToolResult }
  | { readonly kind: "task"; readonly task: ClientTask };

/** A task of a server. Any client that the server takes for the same caller can find it by its `ref`. */
export interface ClientTask {
  /** Keep it to come back later, also after a restart. */
  readonly ref: string;
  get(): Promise<TaskReport>;
  /**
   * Waits for the result. The handlers of the client answer what the task asks. Rejects with an `RpcError` if the task failed
   * or was cancelled.
   */
  result(wait?: TaskWait): Promise<ToolResult>;
  cancel(): Promise<void>;
}

interface TasksOptions {
  readonly send: Operations["send"];
  readonly deadlines: Deadlines;
  readonly handlers: QuestionHandlers;
  readonly clock: Clock;
}

/** The tasks of one server. */
export interface Tasks {
  /** Waits for the end of a task that a call became, and reports its messages. The end of the deadline cancels the task. */
  follow(first: TaskOutcome, underway: Deadline, onMessage: (message: string) => void): Promise<RawJson>;
  task(ref: string): ClientTask;
}

/** How long a call that was given up waits until its task is cancelled. */
const cancelTimeoutMs = 2000;

export function createTasks({ send, deadlines, handlers, clock }: TasksOptions): Tasks {
  /** The operation has no tool name: it is not known here, and the server does not need it. */
  const request = (method: string, ref: string, deadline: Deadline, args?: RawJson): Promise<Outcome> =>
    send(createOperation(method, "", { ref, arguments: args }), toSpec(deadline));
  /** The cast is safe: where the answer is read, anything but a task is refused. */
  const get = async (ref: string, deadline: Deadline): Promise<TaskOutcome> =>
    (await request("tasks/get", ref, deadline)) as TaskOutcome;
  const cancel = async (ref: string, timeoutMs?: number): Promise<void> => {
    await deadlines.run({ timeoutMs }, (deadline) => request("tasks/cancel", ref, deadline));
  };

  const untilEnd = (
    first: TaskOutcome,
    underway: Deadline,
    onState: (outcome: TaskOutcome) => void,
  ): Promise<TaskOutcome> =>
    followTask(first, {
      get: () => get(first.task.ref, underway),
      // The pause is ours, so the server is not idle.
      wait: (ms) => sleep(ms, clock, underway.stop.signal).finally(underway.hold()),
      isGivenUp: () => underway.stop.isAborted,
      onState,
      answered: new Set(),
      answer: async (asks) => {
        const answers = await answerAll(asks, handlers, underway.stop.signal, clock).finally(underway.hold());
        await request("tasks/update", first.task.ref, underway, joinMembers(answers));
        return true;
      },
    });

  return {
    follow: async (first, underway, onMessage) => {
      let lastMessage: string | undefined;
      const onState = ({ task: { message } }: TaskOutcome): void => {
        if (message !== undefined && message !== lastMessage) onMessage(message);
        lastMessage = message;
      };
      const ended = await untilEnd(first, underway, onState).catch(async (error: unknown) => {
        // Nobody waits for the result any more. Cancel before rejecting, because the client may be closed next.
        await cancel(first.task.ref, cancelTimeoutMs).catch(() => {});
        throw error;
      });
      return toEnd(ended);
    },
    task: (ref) => ({
      ref,
      get: () => deadlines.run({}, async (deadline) => toReport(await get(ref, deadline))),
      result: ({ onStatus, maxTotalMs = Number.POSITIVE_INFINITY, ...limits } = {}) =>
        deadlines.run({ ...limits, maxTotalMs }, async (deadline) => {
          const first = await get(ref, deadline);
          const ended = await untilEnd(
            first,
            deadline,
            onChange((task) => onStatus?.(toReport(task))),
          );
          return toToolResult(toEnd(ended));
        }),
      cancel: () => cancel(ref),
    }),
  };
}

/** Passes a state on only when it says something new. */
function onChange(report: (outcome: TaskOutcome) => void): (outcome: TaskOutcome) => void {
  let last: TaskOutcome | undefined;
  return (outcome) => {
    const isNew = outcome.kind !== last?.kind || outcome.task.message !== last.task.message;
    last = outcome;
    if (isNew) report(outcome);
  };
}

function toEnd(outcome: TaskOutcome): RawJson {
  if (outcome.kind === "complete") return outcome.result;
  if (outcome.kind === "failed") throw outcome.error;
  const { message } = outcome.task;
  const text = message === undefined ? "The task was cancelled" : `The task was cancelled: ${message}`;
  throw new RpcError("rpc.other", text);
}

function toReport({ task, ...outcome }: TaskOutcome): TaskReport {
  switch (outcome.kind) {
    case "complete":
      return { ...task, status: "completed", result: toToolResult(outcome.result) };
    case "failed":
      return { ...task, status: outcome.kind, error: outcome.error };
    case "input_required":
      return { ...task, status: outcome.kind, asks: outcome.asks };
    case "working":
    case "cancelled":
      return { ...task, status: outcome.kind };
  }
}

/** How a task is followed. */
interface Following {
  /** Gets the state of the task. */
  get(): Promise<TaskOutcome>;
  /** Waits before the next poll; rejects when the task is no longer followed. */
  wait(ms: number): Promise<void>;
  /** Whether it was given up, so that a failed poll is not repeated. */
  isGivenUp(): boolean;
  /** Called for each state. */
  onState(outcome: TaskOutcome): void;
  /** The keys of answered questions: each is answered once, whatever the server asks. */
  readonly answered: Set<string>;
  /** Answers questions; false to stop following the task with them open. Without it all questions are left open. */
  answer?(asks: Questions): Promise<boolean>;
}

/** The wait before the first poll. It doubles with each poll, up to what the server wants. */
const firstPollMs = 200;
const maxPollMs = 60_000;
/** The longest wait if the server names none. */
const usualPollMs = 10_000;
/** Polls that may fail in a row: a server may be restarting. */
const maxFailures = 5;
/** The most questions of one task. */
const maxQuestions = 1024;

/** Polls a task until it has ended or is left with open questions. Resolves with its last state. */
export async function followTask(first: TaskOutcome, following: Following): Promise<TaskOutcome> {
  let outcome = first;
  for (let waitMs = firstPollMs; ; waitMs = Math.min(waitMs * 2, toPollMs(outcome.task.pollMs))) {
    following.onState(outcome);
    if (hasTaskEnded(outcome)) return outcome;
    const answered = outcome.kind === "input_required" ? await answerNew(outcome.asks, following) : undefined;
    if (answered === false) return outcome;
    if (answered === true) waitMs = firstPollMs;
    outcome = await poll(answered === true ? 0 : waitMs, following);
  }
}

/** Whether the new questions were answered; undefined when there are no new ones, or questions are left open. */
async function answerNew(asks: Questions, { answered, answer }: Following): Promise<boolean | undefined> {
  const fresh = newAsks(asks, answered);
  const keys = Object.keys(fresh);
  if (keys.length === 0 || answer === undefined) return undefined;
  if (answered.size + keys.length > maxQuestions)
    throw new RpcError("rpc.other", `The task asked more than ${maxQuestions} questions; giving up`);
  const isAnswered = await answer(fresh);
  if (isAnswered) for (const key of keys) answered.add(key);
  return isAnswered;
}

/** The questions that are not answered yet. */
export function newAsks(asks: Questions, answered: ReadonlySet<string>): Questions {
  return Object.fromEntries(Object.entries(asks).filter(([key]) => !answered.has(key)));
}

/** Gets the state after a pause. Repeats a poll that failed for a reason outside of the task. */
async function poll(waitMs: number, { get, wait, isGivenUp }: Following): Promise<TaskOutcome> {
  for (let failures = 1; ; failures++) {
    await wait(waitMs);
    try {
      return await get();
    } catch (error) {
      if (error instanceof RpcError || isGivenUp() || failures >= maxFailures) throw error;
    }
  }
}

function toPollMs(wanted: number | undefined): number {
  return Math.min(Math.max(wanted ?? usualPollMs, firstPollMs), maxPollMs);
}

/** Names the task that a message of a server is about (2025-11-25, tasks). */
const relatedTask = "io.modelcontextprotocol/related-task";

/** The growing intervals of polling a legacy task, whose server reports progress only when asked. */
const firstWatchMs = 500;
const maxWatchMs = 10_000;
/** How long a request to cancel a task may take. */
const cancelMs = 2000;

/** Whether a server takes calls of tools as tasks of 2025-11-25. */
export function hasLegacyTasks({ mode, capabilities }: Agreement): boolean {
  if (mode.kind !== "legacy" || mode.revision !== "2025-11-25") return false;
  const { tasks } = capabilities as ServerCapabilities & {
    readonly tasks?: { readonly requests?: { readonly tools?: { readonly call?: unknown } } };
  };
  return typeof tasks?.requests?.tools?.call === "object";
}

/** Calls of tools as tasks of 2025-11-25, a different protocol from the tasks of SEP-2663. */
export class LegacyTasks {
  readonly #send: Send;
  readonly #deadlines: Deadlines;
  readonly #clock: Clock;
  /** The callers of the tasks that run, by the server's ids. */
  readonly #callers = new Map<string, AskCaller>();
  /** Calls whose tasks have no id yet: a question may come before it. */
  readonly #creating = new Set<Promise<unknown>>();

  constructor(send: Send, deadlines: Deadlines, clock: Clock) {
    this.#send = send;
    this.#deadlines = deadlines;
    this.#clock = clock;
  }

  /** Calls a tool as a task, passes its questions to its caller, and resolves with its result. Aborting cancels the task. */
  call(operation: Operation, context: CallContext): Promise<Extract<Outcome, { readonly kind: "complete" }>> {
    const stop = context.cancellation ?? fromSignal(context.signal);
    return this.#deadlines.run({ stop }, async (underway) => {
      const ask = toAsker(context, underway);
      const spec: RequestSpec = {
        ...toSpec(underway),
        meta: carriedMeta(context.meta, context.observation?.traceparent),
        onAsked: (request, signal) => answerBy(ask, request, signal),
      };
      const { created, id } = await this.#create(operation, spec, ask);
      if (typeof id !== "string") return { kind: "complete", result: created };
      try {
        return { kind: "complete", result: withoutTask(await this.#follow(id, context, spec, underway)) };
      } finally {
        this.#callers.delete(id);
      }
    });
  }

  /** Answers a question that belongs to a task; undefined for any other. */
  answer(request: Request, signal: AbortSignal): Promise<RawJson> | undefined {
    const id = request.params?.at("_meta")?.at(relatedTask)?.at("taskId")?.value;
    if (typeof id !== "string") return undefined;
    const find = async (): Promise<RawJson> => {
      if (!this.#callers.has(id)) await Promise.all(this.#creating);
      const ask = this.#callers.get(id);
      if (ask !== undefined) return answerBy(ask, request, signal);
      throw new RpcError("rpc.invalid_params", "The question belongs to no task that runs here");
    };
    return find();
  }

  async #create(
    operation: Operation,
    spec: RequestSpec,
    ask: AskCaller,
  ): Promise<{ readonly created: RawJson; readonly id: unknown }> {
    const params = prependMembers(`"task":{}`, withoutMembers(toParams(operation), ["task"]));
    const made = this.#send("tools/call", params, spec, operation.name).then((created) => {
      const id = created.at("task")?.at("taskId")?.value;
      if (typeof id === "string") this.#callers.set(id, ask);
      return { created, id };
    });
    const settled = made.catch(() => {});
    this.#creating.add(settled);
    return made.finally(() => this.#creating.delete(settled));
  }

  async #follow(
    taskId: string,
    context: CallContext,
    spec: RequestSpec,
    underway: Deadline,
  ): Promise<RawJson> {
    const over = new AbortController();
    void this.#watch(taskId, context, underway, over.signal).catch(() => {});
    try {
      return await this.#send("tasks/result", RawJson.fromValue({ taskId }), spec);
    } catch (error) {
      if (!(error instanceof RpcError)) await this.#cancel(taskId);
      throw error;
    } finally {
      over.abort();
    }
  }

  /** Reports the messages of a task until it has ended. */
  async #watch(taskId: string, context: CallContext, underway: Deadline, over: AbortSignal): Promise<void> {
    let lastMessage: unknown;
    for (let waitMs = firstWatchMs; ; waitMs = Math.min(2 * waitMs, maxWatchMs)) {
      await sleep(waitMs, this.#clock, over);
      const params = RawJson.fromValue({ taskId });
      const task = await this.#send("tasks/get", params, { stop: underway.stop });
      // The request for the result stays silent, so this counts as the sign of life.
      underway.touch();
      const message = task.at("statusMessage")?.value;
      if (typeof message === "string" && message !== lastMessage)
        context.emit({ kind: "progress", message }).catch(() => {});
      lastMessage = message;
    }
  }

  async #cancel(taskId: string): Promise<void> {
    const params = RawJson.fromValue({ taskId });
    const cancelled = this.#deadlines.run({ timeoutMs: cancelMs }, (deadline) =>
      this.#send("tasks/cancel", params, toSpec(deadline)),
    );
    await cancelled.catch(() => {});
  }
}

/** Asks the caller of a task. Its time to answer is not counted against the server. */
function toAsker({ ask }: CallContext, underway: Deadline): AskCaller {
  if (ask === undefined) return (question) => Promise.reject(notOffered(question, {}));
  return (question, signal) => ask(question, signal).finally(underway.hold());
}

/** The result without the id of its task, which is for one hop only. */
function withoutTask(result: RawJson): RawJson {
  const meta = result.kind === "object" ? result.at("_meta") : undefined;
  if (meta?.kind !== "object" || !meta.has(relatedTask)) return result;
  return editMembers(result, { _meta: editMembers(meta, { [relatedTask]: undefined }) });
}
