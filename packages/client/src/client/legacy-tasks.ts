import { fromSignal, type Clock, sleep, type Deadline, type Deadlines } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { RawJson, editMembers, prependMembers, withoutMembers } from "@junctor/core/json";
import { carriedMeta, notOffered, type ServerCapabilities } from "@junctor/core/mcp";
import {
  type AskCaller,
  type CallContext,
  type Operation,
  type Outcome,
  toParams,
} from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import type { Agreement, RequestSpec } from "./conversation.ts";
import type { Send } from "./conversations.ts";
import { answerBy, toSpec } from "./on-behalf.ts";

/** Tells which task a message of a server is about (2025-11-25, tasks). */
const relatedTask = "io.modelcontextprotocol/related-task";

/** The looks at a task, in growing intervals: a server tells where the work is when it is asked. */
const firstLookMs = 500;
const maxLookMs = 10_000;
/** How long the wish to cancel a task may take. */
const cancelMs = 2000;

/** Whether a server takes calls of tools as tasks of 2025-11-25. */
export function hasLegacyTasks({ mode, capabilities }: Agreement): boolean {
  if (mode.kind !== "legacy" || mode.revision !== "2025-11-25") return false;
  const { tasks } = capabilities as ServerCapabilities & {
    readonly tasks?: { readonly requests?: { readonly tools?: { readonly call?: unknown } } };
  };
  return typeof tasks?.requests?.tools?.call === "object";
}

/** Calls of tools as tasks of 2025-11-25, which are another protocol than those of SEP-2663. */
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

  /** Calls a tool as a task, asks its caller what it asks, and resolves with its result. Giving it up cancels the task. */
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

  /** Tells the messages of a task until it has ended. */
  async #watch(taskId: string, context: CallContext, underway: Deadline, over: AbortSignal): Promise<void> {
    let lastMessage: unknown;
    for (let waitMs = firstLookMs; ; waitMs = Math.min(2 * waitMs, maxLookMs)) {
      await sleep(waitMs, this.#clock, over);
      const params = RawJson.fromValue({ taskId });
      const task = await this.#send("tasks/get", params, { stop: underway.stop });
      // The result is waited for by a request that stays silent, so this is the sign of life.
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

/** How the caller of a task is asked. The wait is the caller's, so the server is not idle. */
function toAsker({ ask }: CallContext, underway: Deadline): AskCaller {
  if (ask === undefined) return (question) => Promise.reject(notOffered(question, {}));
  return (question, signal) => ask(question, signal).finally(underway.hold());
}

/** A result says which task it is of, on one hop. */
function withoutTask(result: RawJson): RawJson {
  const meta = result.kind === "object" ? result.at("_meta") : undefined;
  if (meta?.kind !== "object" || !meta.has(relatedTask)) return result;
  return editMembers(result, { _meta: editMembers(meta, { [relatedTask]: undefined }) });
}
