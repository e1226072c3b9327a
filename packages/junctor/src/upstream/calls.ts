import type { Client } from "@junctor/client";
import { type Awaitable, createDeferred, ending, isPromise, Quota, waitFor } from "@junctor/core/async";
import { RpcError, UpstreamError } from "@junctor/core/errors";
import { toRelayable } from "@junctor/core/mcp";
import type { CallContext, Operation, Outcome, Round } from "@junctor/core/provider";
import {
  abandonedCall,
  abandonedTask,
  toCallerError,
  toPageQuestions,
  isParkedState,
  type Parking,
  arrived,
  followedAt,
  isFollowedState,
  unwrapState,
  wrapState,
} from "../bridge/index.ts";
import { type Cluster, fromRemoteRound, isRemote, toRemoteRound } from "../cluster/index.ts";
import type { Connection } from "./connection.ts";
import type { Loan, PooledConnection } from "./pool.ts";
import {
  createFollowedTasks,
  type FollowedTasks,
  type FollowedTasksOptions,
  knowsTasks,
  needsTasks,
} from "./task-calls.ts";

interface CallsOptions extends FollowedTasksOptions {
  readonly parking: Parking;
  /** Whether every caller uses the connection for everyone. */
  readonly isOne: boolean;
  /** Sends an operation by a client, on behalf of a caller. */
  readonly send: (client: Client, operation: Operation, context: CallContext) => Awaitable<Outcome>;
  /** Whether a tool that needs a task is called for callers that do not know tasks. */
  readonly holdsTasks: () => boolean;
  /** A call became a task on a connection. Returns the task as callers know it. */
  readonly onTask: (outcome: Outcome, attempt: Pick<Attempt, "client" | "pooled">) => Outcome;
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
  readonly operation: Operation;
  readonly context: CallContext;
}

/** The most requests one server has underway. */
const maxInFlight = 4096;

/** The requests to one server: each is sent on its caller's connection, and parked where its caller must be asked in another era. */
export class Calls {
  readonly #options: CallsOptions;
  /** The requests underway, by caller: one must not take all of them. */
  readonly #underway = new Quota({ what: "requests underway", total: maxInFlight });
  readonly #followed: FollowedTasks;
  #onIdle: (() => void) | undefined;

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#followed = createFollowedTasks(options);
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

  /**
   * Makes one request that may have to ask its caller something. Most take the short way: the connection for everyone is up, and
   * nothing can be asked on it.
   */
  call(given: Operation, context: CallContext): Awaitable<Outcome> {
    const { parking, pool, isOne, here } = this.#options;
    const { round } = given;
    let operation = given;
    if (round !== undefined) {
      const { state } = round;
      const isParked = isParkedState(state);
      const at = isParked ? state.at : followedAt(state);
      if (at !== undefined && at !== here) return this.#resumeAt(at, given, round, context);
      if (isParked) return parking.resume(state, round, context);
      if (at !== undefined) operation = { ...given, round: arrived(round) };
    }
    const pooled = isOne ? pool.everyone : pool.find(context);
    const client = pooled?.client;
    if (pooled === undefined || client === undefined || this.#mayPark(pooled, context))
      return this.#callLater(operation, context);
    const attempt = { client, pooled, operation, context };
    if (pooled === pool.everyone) return this.#attempt(attempt);
    const { owner, declares } = pooled.group;
    // A connection that callers share on which nothing can be asked needs no loan: it is only kept open meanwhile.
    if (owner !== undefined || declares.key !== "" || pooled.isEnding)
      return this.#callLater(operation, context);
    const release = pool.keep(pooled);
    if (context.session !== undefined) pooled.sessions.add(context.session);
    return ending(this.#attempt(attempt), release);
  }

  /** Makes a request that asks nothing, on the connection of the caller's lists. */
  callListed(operation: Operation, context: CallContext): Promise<Outcome> {
    return this.useListed(context, ({ client }) => this.#options.send(client, operation, context));
  }

  /** Uses the connection of a caller's lists. It is given back at the end; `keep` takes that over. */
  async useListed<T>(
    context: CallContext,
    use: (loan: Loan, keep: () => () => void) => Awaitable<T>,
  ): Promise<T> {
    const { pool, toFailure, onEnded } = this.#options;
    const loan = await pool.lendListed(context, context.signal);
    const release = (): void => {
      loan.release();
      onEnded();
    };
    let isKept = false;
    const keep = (): (() => void) => {
      isKept = true;
      return release;
    };
    try {
      const used = await use(loan, keep);
      if (!isKept) release();
      return used;
    } catch (error) {
      release();
      throw toFailure(error, loan.pooled.connection);
    }
  }

  async #callLater(operation: Operation, context: CallContext): Promise<Outcome> {
    const { pool, parking, server, isOne } = this.#options;
    if (isOne) await pool.everyone.connection.whenUp(context.signal);
    const invoke = async (served: CallContext): Promise<Outcome> => {
      const { client, pooled, release } = await pool.lend(served, served.signal);
      let isOver = false;
      try {
        const outcome = await this.#attempt({ client, pooled, operation, context: served });
        isOver = true;
        return outcome;
      } catch (error) {
        isOver = error instanceof RpcError;
        throw error;
      } finally {
        release(!isOver && pooled.group.declares.key !== "");
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

  #attempt(attempt: Attempt): Promise<Outcome> {
    const { server } = this.#options;
    const { client, context, pooled } = attempt;
    const holder = context.caller ?? context.session;
    if (this.#underway.refusal(holder) !== undefined) return Promise.reject(tooBusy(server));
    const operation = unwrap(attempt, this.#options);
    this.#underway.add(holder);
    const sent = context.observation?.sent(pooled.era);
    const over = (outcome: Outcome | undefined, error?: unknown): void => {
      this.#ended(holder);
      sent?.ended(outcome !== undefined && isResult(outcome) ? outcome.result : undefined, error);
    };
    const done = (outcome: Outcome): Outcome => {
      over(outcome);
      return isResult(outcome) ? outcome : passOn(outcome, attempt, this.#options);
    };
    const failed = (error: unknown): Outcome => {
      over(undefined, error);
      return this.#failed(error, attempt);
    };
    return this.#send(client, operation, context).then(done, (error: unknown) => {
      if (!this.#options.holdsTasks() || !needsTasks(error) || knowsTasks(context)) return failed(error);
      return this.#followed.begin(client, operation, context).then(done, failed);
    });
  }

  /** Sends one request, or goes on waiting for a task that the gateway holds. */
  #send(client: Client, operation: Operation, context: CallContext): Promise<Outcome> {
    const { round } = operation;
    try {
      if (round !== undefined && isFollowedState(round.state))
        return this.#followed.resume(client, operation, context, round.state);
      const made = this.#options.send(client, operation, context);
      return isPromise(made) ? made : Promise.resolve(made);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #failed(error: unknown, { context, pooled }: Attempt): Outcome {
    const { server, toFailure } = this.#options;
    const { isLegacy } = toRelayable(context.capabilities, context.revision);
    const pages = !isLegacy ? toPageQuestions(error, context.capabilities, server) : undefined;
    if (pages !== undefined) return pages;
    throw toFailure(toCallerError(error, context, server), pooled.connection);
  }

  #ended(holder: unknown): void {
    this.#underway.give(holder);
    if (this.#underway.held === 0) this.#onIdle?.();
    this.#options.onEnded();
  }

  /** Resumes a call that waits at another replica. */
  async #resumeAt(at: string, operation: Operation, round: Round, context: CallContext): Promise<Outcome> {
    const { useAt, send } = this.#options;
    const outcome = await useAt(
      at,
      context,
      (client) => send(client, { ...operation, round: toRemoteRound(round) }, context),
      (server) => abandonedCall(server, "the replica that it waited in is gone"),
    );
    return outcome.kind === "input_required" ? fromRemoteRound(outcome) : outcome;
  }
}

/** Whether an outcome is the end of a call that became no task. */
function isResult(outcome: Outcome): outcome is Extract<Outcome, { readonly kind: "complete" }> {
  return outcome.kind === "complete" && outcome.task === undefined;
}

/** An operation as the server of a client takes it. */
function unwrap({ operation, client }: Attempt, { here, server }: CallsOptions): Operation {
  const { round } = operation;
  if (round === undefined) return operation;
  const isOther = here !== undefined && isRemote(client);
  return { ...operation, round: isOther ? toRemoteRound(round) : unwrapState(round, server) };
}

/** An outcome that is not the end, as it leaves the gateway. */
function passOn(outcome: Outcome, attempt: Attempt, { here, server, onTask }: CallsOptions): Outcome {
  if (outcome.task !== undefined) return onTask(outcome, attempt);
  if (outcome.kind !== "input_required") return outcome;
  return here !== undefined && isRemote(attempt.client)
    ? fromRemoteRound(outcome)
    : wrapState(outcome, server);
}

function tooBusy(server: string): UpstreamError {
  const text = `${server} has ${maxInFlight} calls underway for all callers, or its share of them for this one; this one was not sent.`;
  return new UpstreamError("busy", text, { server, delivery: "not_sent" });
}

/**
 * Makes a request by a client of the same server at another replica, the home of a parked call or a task. `gone` makes the error
 * for a replica that has ended; by default the one for a task.
 */
export type UseAt = <T>(
  at: string,
  context: CallContext,
  use: (client: Client) => Awaitable<T>,
  gone?: (server: string) => UpstreamError,
) => Promise<T>;

/** The other replicas of the gateway. */
export interface OtherReplicas {
  /** The id of this replica. */
  readonly here: string;
  readonly clientAt: Cluster["clientAt"];
}

export function createUseAt(
  server: string,
  others: OtherReplicas | undefined,
  toFailure: (error: unknown) => unknown,
): UseAt {
  return async (at, context, use, gone = abandonedTask) => {
    try {
      const client = others && (await waitFor(others.clientAt(at, server), context));
      if (client === undefined) throw gone(server);
      return await use(client);
    } catch (error) {
      throw toFailure(toCallerError(error, context, server));
    }
  };
}
