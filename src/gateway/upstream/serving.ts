import type { Awaitable } from "../../async/awaitable.ts";
import type { Clock } from "../../async/clock.ts";
import { settlesWithin } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { type Relayable, toRelayable } from "../../mcp/project/capabilities.ts";
import { isLegacyRevision } from "../../mcp/revision.ts";
import type { CallContext } from "../../tools/context.ts";
import type { Outcome, Resumption } from "../../tools/provider.ts";
import { isParkedState, type Parking } from "../bridge/parking.ts";
import { toVisits } from "../bridge/visits.ts";
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
    this.#lines = new Lines({ server: config.name, maxLines: config.maxConnections, clock });
  }

  /** How many requests are underway. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** It asked something without saying for which call: from now on, calls that may be asked do not share a line. */
  asked(): void {
    this.#isAsking = true;
  }

  /** A legacy conversation is over, and with it the lines that were its own. */
  sessionEnded(session: object): void {
    const id = this.#sessions.get(session);
    if (id !== undefined) this.#lines.end(`session:${id} `);
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
    return isParkable ? parking.run(invoke, context) : invoke(context);
  }

  /** A line for one call of a caller for whom something is declared, or who is not to share. */
  async #lend(key: string, context: CallContext): Promise<Lease> {
    const { config, variants, createLine } = this.#options;
    const { sharing } = config;
    if (sharing === "shared" && !this.#isAsking) {
      const { variant, release } = variants.use(key);
      try {
        return { client: await variant.line.whenUp(context.signal), line: variant.line, release };
      } catch (error) {
        release();
        throw error;
      }
    }
    // Where the stream does not tell whose a question is, only one call at a time makes it known.
    const isAlone = sharing !== "perSession" || (key !== "" && this.#isAsking);
    const own = { keepsAlive: false, onHealth: () => {} };
    const create = (): Line => createLine(toCapabilities(key), own);
    return this.#lines.take(`${this.#ownerOf(context)} ${key}`, { isAlone, create }, context.signal);
  }

  #attempt(
    client: Client,
    line: Line,
    resumption: Resumption | undefined,
    context: CallContext,
    work: Work,
  ): Promise<Outcome> {
    const { config, toFailure, onEnded } = this.#options;
    const { name } = config;
    if (this.#inFlight >= maxInFlight) return Promise.reject(tooBusy(name));
    const unwrapped = resumption === undefined ? undefined : unwrapState(resumption, name);
    this.#inFlight++;
    const done = (): void => {
      if (--this.#inFlight === 0) this.#onIdle?.();
      onEnded();
    };
    return work(client, context, unwrapped).then(
      (outcome) => {
        done();
        return outcome.kind === "complete" ? outcome : wrapState(outcome, name);
      },
      (error: unknown) => {
        done();
        const isModernCaller = !isLegacyRevision(context.revision);
        const visits = isModernCaller ? toVisits(error, context.capabilities, name) : undefined;
        if (visits !== undefined) return visits;
        throw toFailure(error, line);
      },
    );
  }

  get #isModern(): boolean {
    const { health } = this.#options.base;
    return health.kind === "up" && health.agreement.mode.kind === "modern";
  }

  /** Whose a line is: everybody's, or where each is to have its own, a session's or a caller's. */
  #ownerOf({ session, caller }: CallContext): string {
    if (this.#options.config.sharing !== "perSession") return "all";
    if (session === undefined) return `caller:${encodeURIComponent(caller ?? "")}`;
    let id = this.#sessions.get(session);
    if (id === undefined) this.#sessions.set(session, (id = this.#nextSession++));
    return `session:${id}`;
  }
}

function tooBusy(server: string): UpstreamError {
  const text = `${server} has ${maxInFlight} calls underway, which is the limit; this one was not sent.`;
  return new UpstreamError("busy", server, "not_sent", text);
}
