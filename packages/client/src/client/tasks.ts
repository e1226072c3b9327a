import { type Clock, sleep, type Deadline, type Deadlines } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { joinMembers, type RawJson } from "@junctor/core/json";
import type { Questions, ToolResult } from "@junctor/core/mcp";
import { createOperation, type Outcome, type Task, type TaskOutcome } from "@junctor/core/provider";
import { followTask } from "./follow-task.ts";
import { type QuestionHandlers, answerAll } from "./handlers.ts";
import { toSpec } from "./on-behalf.ts";
import type { Operations } from "./operations.ts";
import { toToolResult } from "./parse-result.ts";

/** How long a task is waited for. */
export interface TaskWait {
  /** Aborting ends the wait and not the task; {@link ClientTask.cancel} ends the task. */
  readonly signal?: AbortSignal;
  /** How long the server may take for one answer; as for other requests when left out. */
  readonly timeoutMs?: number;
  /** How long the whole wait may take; without end when left out. */
  readonly maxTotalMs?: number;
  /** Called for each state that differs from the one before. */
  readonly onStatus?: (task: TaskReport) => void;
}

/** A task at one moment, for people. */
export type TaskReport = Task &
  (
    | { readonly status: "working" | "cancelled" }
    /** The open questions by key. A key is asked once in a task. */
    | { readonly status: "input_required"; readonly asks: Questions }
    /** The result of the tool, also one with `isError`. */
    | { readonly status: "completed"; readonly result: ToolResult }
    | { readonly status: "failed"; readonly error: RpcError }
  );

/** What a call that was started gives: its result, or the task that it became. */
export type StartedCall =
  | { readonly kind: "complete"; readonly result: ToolResult }
  | { readonly kind: "task"; readonly task: ClientTask };

/** A task of a server. It is found by its `ref` from any client that the server takes for the same caller. */
export interface ClientTask {
  /** Keep it to come back later, also after a restart. */
  readonly ref: string;
  get(): Promise<TaskReport>;
  /**
   * Waits for the result, and answers what the task asks by the handlers of the client. Rejects with the `RpcError` of a task
   * that failed or was cancelled.
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
  /** Waits for the end of a task that a call became, and tells its messages. The end of the deadline cancels it. */
  follow(first: TaskOutcome, underway: Deadline, onMessage: (message: string) => void): Promise<RawJson>;
  task(ref: string): ClientTask;
}

/** How long a call that was given up waits for the server to hear of it. */
const cancelTimeoutMs = 2000;

export function createTasks({ send, deadlines, handlers, clock }: TasksOptions): Tasks {
  /** The tool of a task is not known here, and the server does not need it. */
  const request = (method: string, ref: string, deadline: Deadline, args?: RawJson): Promise<Outcome> =>
    send(createOperation(method, "", { ref, arguments: args }), toSpec(deadline));
  /** What `tasks/get` answers is a task; anything else is refused where the answer is read. */
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
      // The wait is ours.
      wait: (ms) => sleep(ms, clock, underway.stop.signal).finally(underway.hold()),
      isGivenUp: () => underway.stop.isAborted,
      onState,
      answered: new Set(),
      answer: async (asks) => {
        const given = await answerAll(asks, handlers, underway.stop.signal, clock).finally(underway.hold());
        await request("tasks/update", first.task.ref, underway, joinMembers(given));
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
        // The result is not waited for any more. The server is asked to cancel now, because the client may be closed next.
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

/** Tells a state only when it says something new. */
function onChange(tell: (outcome: TaskOutcome) => void): (outcome: TaskOutcome) => void {
  let last: TaskOutcome | undefined;
  return (outcome) => {
    const isNew = outcome.kind !== last?.kind || outcome.task.message !== last.task.message;
    last = outcome;
    if (isNew) tell(outcome);
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
