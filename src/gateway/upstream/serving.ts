import type { Awaitable } from "../../async/awaitable.ts";
import type { Clock } from "../../async/clock.ts";
import { settlesWithin } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { type Relayable, toRelayable } from "../../mcp/capabilities.ts";
import { isLegacyRevision } from "../../mcp/revision.ts";
import type { CallContext } from "../../tools/context.ts";
import type { Outcome, Resumption } from "../../tools/provider.ts";
import { toCallerError, toVisits } from "../bridge/caller-error.ts";
import { isParkedState, type Parking } from "../bridge/parking.ts";
import { unwrapState, wrapState } from "../bridge/wrapped-state.ts";
import type { ServerConfig } from "../config/config.ts";
import { type CreateLine, toCapabilities } from "./line-factory.ts";
import type { Line } from "./line.ts";
import { type Lease, Lines } from "./lines.ts";
import type { Variants } from "./variants.ts";

/** A request by a client, on behalf of a caller. */
export type Work = (
  client: Client,
  context: CallContext,
  resumption: Resumption | undefined,
) => Promise<Outcome>;

export interface ServingOptions {
  readonly config: ServerConfig;
  readonly clock: Clock;
  /** What everybody shares, as long as nothing is declared. */
  readonly base: Line;
  readonly variants: Variants;
  readonly createLine: CreateLine;
  readonly parking: Parking;
  /** What the caller is told of a failure on a line. */
  readonly toFailure: (error: unknown, line: Line) => unknown;
  /** Told when a request has ended. */
  readonly onEnded: () => void;
}

/** Most requests one server has underway. */
const maxInFlight = 4096;

/** Most lines of one server over HTTP that are not shared by all. */
const maxHttpLines = 256;

/** Finds the line for each request to one server, and sees it through: shared, its caller's own, or parked. */
export class Serving implements AsyncDisposable {
  readonly #options: ServingOptions;
  readonly #lines: Lines;
  readonly #sessions = new WeakMap<object, number>();
  #nextSession = 1;
  #inFlight = 0;
  #onIdle: (() => void) | undefined;
  #isAsking = false;

  constructor(options: ServingOptions) {
    this.#options = options;
    const { config, clock } = options;
    // Another line over HTTP is a few kilobytes here and a session there; a process is more.
    const maxLines = this.#hasCallStreams
      ? Math.max(maxHttpLines, config.maxConnections)
      : config.maxConnections;
    this.#lines = new Lines({ server: config.name, maxLines, clock });
  }

  /** How many requests are underway. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** It asked something without saying for which call: from now on, a call that may be asked has its line for itself. */
  asked(): void {
    this.#isAsking = true;
  }

  /** A legacy conversation is over, and with it the lines that were its own. */
  sessionEnded(session: object): void {
    const id = this.#sessions.get(session);
    if (id !== undefined) this.#lines.end(`session:${id}`);
  }

  /** Waits until nothing is underway, but not for longer than this. */
  async untilIdle(maxMs: number): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + maxMs;
    while (this.#inFlight > 0 && clock.now() < until) {
      const idle = createDeferred<void>();
      this.#onIdle = idle.resolve;
      await settlesWithin(idle.promise, until - clock.now(), clock);
    }
  }

  /**
   * Makes one request for a caller. Most take the first way out: everybody shares one line to a server that asks nothing,
   * or asks in its results.
   */
  serve(resumption: Resumption | undefined, context: CallContext, work: Work): Awaitable<Outcome> {
    const { parking, base, config } = this.#options;
    const state = resumption?.state;
    if (resumption !== undefined && isParkedState(state)) return parking.resume(state, resumption, context);
    const relayable = toRelayable(context.capabilities, context.revision);
    const isPlain = config.sharing === "shared" && (relayable.key === "" || this.#isModern);
    const { client } = base;
    if (client !== undefined && isPlain) return this.#attempt(client, base, resumption, context, work);
    return this.#serveApart(resumption, context, work, relayable);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#lines[Symbol.asyncDispose]();
  }

  async #serveApart(
    resumption: Resumption | undefined,
    context: CallContext,
    work: Work,
    relayable: Relayable,
  ): Promise<Outcome> {
    const { base, config, parking } = this.#options;
    const client = await base.whenUp(context.signal);
    const key = this.#isModern ? "" : relayable.key;
    if (config.sharing === "shared" && key === "")
      return this.#attempt(client, base, resumption, context, work);
    const invoke = async (served: CallContext): Promise<Outcome> => {
      const lease = await this.#lend(key, served);
      let isOver = false;
      try {
        const outcome = await this.#attempt(lease.client, lease.line, resumption, served, work);
        isOver = true;
        return outcome;
      } catch (error) {
        isOver = error instanceof RpcError;
        throw error;
      } finally {
        lease.release(key !== "" && !isOver);
      }
    };
    // A legacy caller is asked in the middle of its call. A modern one is sent away with the question.
    const isParkable = key !== "" && context.ask === undefined;
    return isParkable ? parking.run(config.name, invoke, context) : invoke(context);
  }

  /** A line for one call of a caller for whom something is declared, or who is not to share. */
  async #lend(key: string, context: CallContext): Promise<Lease> {
    const { config, createLine } = this.#options;
    const { sharing } = config;
    if (sharing === "shared" && !this.#isAsking) return this.#lendShared(key, context);
    const need = {
      isAlone: sharing === "exclusive" || (key !== "" && this.#isAsking),
      isOnly: sharing === "perSession",
      create: () => createLine(toCapabilities(key), { keepsAlive: false, onHealth: () => {} }),
    };
    // What was declared for one caller is never used for another: a late question would reach the wrong one.
    const owner = sharing === "exclusive" && key === "" ? "all" : this.#ownerOf(context);
    return this.#lines.take(owner, key, need, context.signal);
  }

  /** The line of all callers for whom the same is declared, as long as the server has not asked without saying whom. */
  async #lendShared(key: string, context: CallContext): Promise<Lease> {
    const { variant, release } = this.#options.variants.use(key);
    try {
      const client = await variant.line.whenUp(context.signal);
      const giveBack = (isSpoiled = false): void => {
        // What the server asks from now on may be for the call that was given up, where nothing tells.
        if (isSpoiled && !this.#hasCallStreams) this.#isAsking = true;
        release();
      };
      return { client, line: variant.line, release: giveBack };
    } catch (error) {
      release();
      throw error;
    }
  }

  #attempt(
    client: Client,
    line: Line,
    resumption: Resumption | undefined,
    context: CallContext,
    work: Work,
  ): Promise<Outcome> {
    const { config, toFailure } = this.#options;
    const { name } = config;
    if (this.#inFlight >= maxInFlight) return Promise.reject(tooBusy(name));
    const unwrapped = resumption === undefined ? undefined : unwrapState(resumption, name);
    this.#inFlight++;
    return work(client, context, unwrapped).then(
      (outcome) => {
        this.#ended();
        return outcome.kind === "complete" ? outcome : wrapState(outcome, name);
      },
      (error: unknown) => {
        this.#ended();
        const isModernCaller = !isLegacyRevision(context.revision);
        const visits = isModernCaller ? toVisits(error, context.capabilities, name) : undefined;
        if (visits !== undefined) return visits;
        throw toFailure(toCallerError(error, context, name), line);
      },
    );
  }

  #ended(): void {
    if (--this.#inFlight === 0) this.#onIdle?.();
    this.#options.onEnded();
  }

  get #isModern(): boolean {
    const { health } = this.#options.base;
    return health.kind === "up" && health.agreement.mode.kind === "modern";
  }

  /** Whether questions come on the stream of the call they belong to, as a rule: Streamable HTTP. */
  get #hasCallStreams(): boolean {
    const { launch } = this.#options.config;
    return launch.kind === "http" && launch.transport === "auto";
  }

  /** Whose a line is: a session's, a caller's, or that of all who have no name. */
  #ownerOf({ session, caller }: CallContext): string {
    if (session === undefined) return `caller:${caller ?? ""}`;
    let id = this.#sessions.get(session);
    if (id === undefined) this.#sessions.set(session, (id = this.#nextSession++));
    return `session:${id}`;
  }
}

function tooBusy(server: string): UpstreamError {
  const text = `${server} has ${maxInFlight} calls underway, which is the limit; this one was not sent.`;
  return new UpstreamError("busy", server, "not_sent", text);
}
