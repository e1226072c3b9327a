import type { Client } from "@junctor/client";
import { type Awaitable, waitFor, createDeferred, Quota } from "@junctor/core/async";
import { RpcError, UpstreamError } from "@junctor/core/errors";
import { toRelayable } from "@junctor/core/mcp";
import type {
  CallContext,
  OldOutcome,
  PromptRequest,
  ResourceRequest,
  Round,
  ToolOutcome,
  TaskState,
} from "@junctor/core/provider";
import {
  abandonedCall,
  toCallerError,
  toVisits,
  isParkedState,
  type Parking,
  arrived,
  heldAt,
  isHeldState,
  unwrapState,
  wrapState,
} from "../bridge/index.ts";
import { fromRemoteRound, isRemote, toRemoteRound } from "../cluster/index.ts";
import type { Connection } from "./connection.ts";
import {
  createHeldTasks,
  type HeldTasks,
  type HeldTasksOptions,
  knowsTasks,
  lacks,
  needsTasks,
} from "./held-task.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import type { UseAt } from "./use-at.ts";

/** A request by a client, on behalf of a caller. */
type Work = (client: Client, context: CallContext, round: Round | undefined) => Promise<ToolOutcome>;

export interface RequestsOptions extends HeldTasksOptions {
  readonly parking: Parking;
  /** Whether every caller uses the connection for everyone. */
  readonly isOne: boolean;
  /** Whether a tool that needs a task is called for callers that know none. */
  readonly holdsTasks: () => boolean;
  /** A call became a task on a connection. Gives the task as callers know it. */
  readonly onTask: (task: TaskState, attempt: Pick<Attempt, "client" | "pooled" | "context">) => TaskState;
  /** The error that the caller gets for a failure on a connection. */
  readonly toFailure: (error: unknown, connection: Connection) => unknown;
  readonly useAt: UseAt;
  /** Called when a request has ended. */
  readonly onEnded: () => void;
}

/** One request on a connection. */
interface Attempt {
  readonly client: Client;
  readonly pooled: PooledConnection;
  readonly round: Round | undefined;
  readonly context: CallContext;
  readonly work: Work;
}

/** Most requests one server has underway. */
const maxInFlight = 4096;

/** The requests to one server: each is sent on its caller's connection, and parked where its caller must be asked in another era. */
export class Requests {
  readonly #options: RequestsOptions;
  /** The requests underway, by caller: one must not take all of them. */
  readonly #underway = new Quota({ what: "requests underway", total: maxInFlight });
  readonly #held: HeldTasks;
  #onIdle: (() => void) | undefined;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#held = createHeldTasks(options);
  }

  /** How many requests are underway. */
  get inFlight(): number {
    return this.#underway.held;
  }

  /** Waits until nothing is underway, but not for longer than this. */
  async untilIdle(maxMs: number): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + maxMs;
    while (this.#underway.held > 0 && clock.now() < until) {
      const idle = createDeferred<void>();
      this.#onIdle = idle.resolve;
      await waitFor(idle.promise, { ms: until - clock.now(), clock });
    }
  }

  /** Makes one request for a caller. Most take the short way: the connection for everyone is up, and nothing can be asked on it. */
  make(given: Round | undefined, context: CallContext, work: Work): Awaitable<ToolOutcome> {
    const { parking, pool, isOne, here, useAt } = this.#options;
    let round = given;
    if (given !== undefined) {
      const { state } = given;
      const isParked = isParkedState(state);
      const at = isParked ? state.at : heldAt(state);
      if (at !== undefined && at !== here) return resumeAt(at, given, { context, work, useAt });
      if (isParked) return parking.resume(state, given, context);
      if (at !== undefined) round = arrived(given);
    }
    const pooled = isOne ? pool.everyone : pool.find(context);
    const client = pooled?.client;
    if (pooled === undefined || client === undefined || this.#mayPark(pooled, context))
      return this.#makeLater(round, context, work);
    const attempt = { client, pooled, round, context, work };
    if (pooled === pool.everyone) return this.#attempt(attempt);
    const { owner, declares } = pooled.audience;
    // A connection that callers share on which nothing can be asked needs no lease: it is only kept open meanwhile.
    if (owner !== undefined || declares.key !== "" || pooled.isEnding)
      return this.#makeLater(round, context, work);
    const release = pool.keep(pooled);
    if (context.session !== undefined) pooled.sessions.add(context.session);
    return this.#attempt(attempt).finally(release);
  }

  /** Reads a resource. Only tools have tasks, so the outcome is never one. */
  read(request: ResourceRequest, context: CallContext): Awaitable<OldOutcome> {
    return this.make(request.round, context, async ({ resources }, served, round) => {
      if (resources === undefined) throw lacks(this.#options.server, "resources");
      return resources.readResource({ ...request, round }, served);
    }) as Awaitable<OldOutcome>;
  }

  getPrompt(request: PromptRequest, context: CallContext): Awaitable<OldOutcome> {
    return this.make(request.round, context, async ({ prompts }, served, round) => {
      if (prompts === undefined) throw lacks(this.#options.server, "prompts");
      return prompts.getPrompt({ ...request, round }, served);
    }) as Awaitable<OldOutcome>;
  }

  async #makeLater(round: Round | undefined, context: CallContext, work: Work): Promise<ToolOutcome> {
    const { pool, parking, server, isOne } = this.#options;
    if (isOne) await pool.everyone.connection.whenUp(context.signal);
    const invoke = async (served: CallContext): Promise<ToolOutcome> => {
      const { client, pooled, release } = await pool.lend(served, served.signal);
      let isOver = false;
      try {
        const outcome = await this.#attempt({ client, pooled, round, context: served, work });
        isOver = true;
        return outcome;
      } catch (error) {
        isOver = error instanceof RpcError;
        throw error;
      } finally {
        release(!isOver && pooled.audience.declares.key !== "");
      }
    };
    // A legacy caller is asked in the middle of its call. A modern one leaves with the question and comes back.
    const isParkable = this.#mayPark(pool.find(context), context);
    return isParkable ? parking.run(server, invoke, context) : invoke(context);
  }

  /** Whether a server may ask a modern caller something in the middle of its call. */
  #mayPark(pooled: PooledConnection | undefined, { ask, capabilities, revision }: CallContext): boolean {
    if (ask !== undefined || toRelayable(capabilities, revision).key === "") return false;
    return pooled?.era !== "modern";
  }

  #attempt(attempt: Attempt): Promise<ToolOutcome> {
    const { server } = this.#options;
    const { client, round, context, work, pooled } = attempt;
    const holder = context.caller ?? context.session;
    if (this.#underway.refusal(holder) !== undefined) return Promise.reject(tooBusy(server));
    const unwrapped = round === undefined ? undefined : unwrap(round, client, this.#options);
    this.#underway.add(holder);
    const sent = context.observation?.sent(pooled.era);
    const over = (outcome: ToolOutcome | undefined, error?: unknown): void => {
      this.#ended(holder);
      sent?.ended(outcome?.kind === "complete" ? outcome.result : undefined, error);
    };
    const made =
      unwrapped !== undefined && isHeldState(unwrapped.state)
        ? this.#held.resume(client, context, unwrapped.state, unwrapped)
        : work(client, context, unwrapped);
    return made.then(
      (outcome) => {
        over(outcome);
        return outcome.kind === "complete" ? outcome : passOn(outcome, attempt, this.#options);
      },
      (error: unknown) => {
        if (!this.#options.holdsTasks() || !needsTasks(error) || knowsTasks(context)) {
          over(undefined, error);
          return this.#failed(error, attempt);
        }
        const again: Work = (able, declaring) => work(able, declaring, unwrapped);
        return this.#held.begin(client, context, again).then(
          (outcome) => {
            over(outcome);
            return outcome.kind === "complete" ? outcome : passOn(outcome, attempt, this.#options);
          },
          (failure: unknown) => {
            over(undefined, failure);
            return this.#failed(failure, attempt);
          },
        );
      },
    );
  }

  #failed(error: unknown, { context, pooled }: Attempt): ToolOutcome {
    const { server, toFailure } = this.#options;
    const { isLegacy } = toRelayable(context.capabilities, context.revision);
    const visits = !isLegacy ? toVisits(error, context.capabilities, server) : undefined;
    if (visits !== undefined) return visits;
    throw toFailure(toCallerError(error, context, server), pooled.connection);
  }

  #ended(holder: unknown): void {
    this.#underway.give(holder);
    if (this.#underway.held === 0) this.#onIdle?.();
    this.#options.onEnded();
  }
}

/** Resumes a call that waits at another replica. */
async function resumeAt(
  at: string,
  round: Round,
  { context, work, useAt }: Pick<Attempt, "context" | "work"> & Pick<RequestsOptions, "useAt">,
): Promise<ToolOutcome> {
  const outcome = await useAt(
    at,
    context,
    (client) => work(client, context, toRemoteRound(round)),
    (server) => abandonedCall(server, "the replica that it waited in is gone"),
  );
  return outcome.kind === "input_required" ? fromRemoteRound(outcome) : outcome;
}

/** A resumption as the server of a client takes it. */
function unwrap(round: Round, client: Client, { here, server }: RequestsOptions): Round | undefined {
  const isOther = here !== undefined && isRemote(client);
  return isOther ? toRemoteRound(round) : unwrapState(round, server);
}

/** An outcome that is not the end, as it leaves the gateway. */
function passOn(
  outcome: Exclude<ToolOutcome, { readonly kind: "complete" }>,
  attempt: Attempt,
  { here, server, onTask }: RequestsOptions,
): ToolOutcome {
  if (outcome.kind === "task") return { kind: "task", task: onTask(outcome.task, attempt) };
  return here !== undefined && isRemote(attempt.client)
    ? fromRemoteRound(outcome)
    : wrapState(outcome, server);
}

function tooBusy(server: string): UpstreamError {
  const text = `${server} has ${maxInFlight} calls underway for all callers, or its share of them for this one; this one was not sent.`;
  return new UpstreamError("busy", text, { server, delivery: "not_sent" });
}
