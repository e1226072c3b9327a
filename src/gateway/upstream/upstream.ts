import type { Awaitable } from "../../async/awaitable.ts";
import { type Clock, settlesWithin, systemClock } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { type Relayable, toRelayable } from "../../mcp/project/capabilities.ts";
import { isLegacyRevision } from "../../mcp/revision.ts";
import type { CompletionResult } from "../../mcp/types.ts";
import type { CallContext } from "../../tools/context.ts";
import type {
  CompletionRequest,
  Outcome,
  PromptRequest,
  ResourceRequest,
  Resumption,
  ToolCall,
  ToolOutcome,
} from "../../tools/provider.ts";
import { isParkedState, type Parking } from "../bridge/parking.ts";
import { toVisits } from "../bridge/visits.ts";
import { unwrapState, wrapState } from "../bridge/wrapped-state.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Health } from "./health.ts";
import { type CreateLine, createLineFactory, toCapabilities } from "./line-factory.ts";
import type { Line } from "./line.ts";
import { type Lease, Lines } from "./lines.ts";
import type { Listed, ListKind } from "./list-keeper.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./to-upstream-error.ts";
import { UpstreamLists } from "./upstream-lists.ts";
import { Watches } from "./watches.ts";

/** Something about a server behind the gateway changed. */
export type UpstreamChange =
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
  | { readonly kind: "resource"; readonly uri: string };

export interface UpstreamOptions {
  readonly config: ServerConfig;
  /** Opens a way to the server: what the config says, unless a test or an in-process server wants another. */
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly parking: Parking;
  /** The server this one takes the place of, because its config changed: its lists and watches are taken over. */
  readonly predecessor?: Upstream | undefined;
  readonly clock?: Clock;
  /** Takes the secrets of the config out of what callers are told. */
  readonly hide?: Hide;
  readonly onChange: (change: UpstreamChange) => void;
}

/** Most calls one server has underway. */
const maxInFlight = 4096;

/** A server behind the gateway: a client kept alive, the last good lists, and as many more lines as its callers need. */
export class Upstream implements AsyncDisposable {
  /** What of it concerns only how things are listed may be replaced while it runs. */
  config: ServerConfig;
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  /** What everybody shares, as long as nothing is declared. Always kept up. */
  readonly #base: Line;
  readonly #lists: UpstreamLists;
  readonly #lines: Lines;
  readonly #createLine: CreateLine;
  readonly #watches: Watches;
  readonly #sessions = new WeakMap<object, number>();
  #nextSession = 1;
  #inFlight = 0;
  #onIdle: (() => void) | undefined;
  #isAsking = false;
  #isClosed = false;
  #stopIdle: (() => void) | undefined;
  #firstListed: Promise<void> | undefined;

  constructor(options: UpstreamOptions) {
    const { config, clock = systemClock, onChange, connect, predecessor } = options;
    this.config = config;
    this.#options = options;
    this.#clock = clock;
    const onResource = (uri: string): void => onChange({ kind: "resource", uri });
    const onAsked = (): void => {
      this.#isAsking = true;
    };
    this.#createLine = createLineFactory({ config, connect, clock, onAsked });
    this.#lists = new UpstreamLists({
      clock,
      createLine: this.#createLine,
      known: predecessor?.listedFor(""),
      onListed: (changed) => onChange({ kind: "listed", changed }),
      onResource,
    });
    // Whoever watches a resource goes on watching, whatever became of its server.
    this.#watches = predecessor === undefined ? new Watches(onResource) : predecessor.#watches;
    this.#watches.onMissed = onResource;
    this.#base = this.#createBase();
    this.#lines = new Lines({ server: config.name, maxLines: config.maxConnections, clock });
  }

  get name(): string {
    return this.config.name;
  }

  get health(): Health {
    return this.#base.health;
  }

  /** What it lists for callers of a kind; for one that was not seen yet, what it lists for everybody. */
  listedFor(key: string): Listed {
    return this.#lists.listedFor(key);
  }

  /** Whether it is not started and nothing is known of it. */
  get isUnknown(): boolean {
    return this.health.kind === "idle" && !this.#lists.isListed;
  }

  /** How many calls it has underway. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Starts it, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  async start(): Promise<void> {
    this.#base.start();
    await this.#base.whenUp(new AbortController().signal).catch(() => {});
    await this.#firstListed;
  }

  /**
   * Somebody looks at its lists: a lazy one that was never listed is started, and old lists are renewed in the background. A
   * promise means that something was never listed and will be soon.
   */
  looked({ capabilities, revision }: CallContext): Promise<void> | undefined {
    if (this.isUnknown) return this.start();
    if (this.health.kind !== "up") return undefined;
    return this.#lists.looked(this.#isModern ? "" : toRelayable(capabilities, revision).key);
  }

  /** A legacy conversation is over, and with it the lines that were its own. */
  sessionEnded(session: object): void {
    const id = this.#sessions.get(session);
    if (id !== undefined) this.#lines.end(`session:${id} `);
  }

  callTool(call: ToolCall, context: CallContext): Awaitable<ToolOutcome> {
    return this.#serve(call.resumption, context, (client, served, resumption) =>
      client.callTool(resumption === call.resumption ? call : { ...call, resumption }, served),
    );
  }

  readResource(request: ResourceRequest, context: CallContext): Awaitable<Outcome> {
    return this.#serve(request.resumption, context, async (client, served, resumption) => {
      if (client.resources === undefined) throw this.#lacks("resources");
      return client.resources.readResource({ ...request, resumption }, served);
    });
  }

  getPrompt(request: PromptRequest, context: CallContext): Awaitable<Outcome> {
    return this.#serve(request.resumption, context, async (client, served, resumption) => {
      if (client.prompts === undefined) throw this.#lacks("prompts");
      return client.prompts.getPrompt({ ...request, resumption }, served);
    });
  }

  /** How long it takes to answer a request that gives it no work. */
  async measure(): Promise<number | undefined> {
    const { client } = this.#base;
    if (client === undefined) return undefined;
    const startedAt = performance.now();
    const method = this.#isModern ? "server/discover" : "ping";
    const limits = { timeoutMs: 5000, maxTotalMs: 5000 };
    return client.request(method, undefined, limits).then(
      () => performance.now() - startedAt,
      () => undefined,
    );
  }

  async complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult> {
    try {
      const client = await this.#base.whenUp(context.signal);
      if (client.completion === undefined) throw this.#lacks("completion");
      return await client.completion.complete(request, context);
    } catch (error) {
      throw this.#failed(error, this.#base);
    }
  }

  /** Hears of changes of one resource until the returned function is called; also after the server was started again. */
  async watch(uri: string, context: CallContext): Promise<() => void> {
    try {
      const client = await this.#base.whenUp(context.signal);
      const stop = await this.#watches.add(uri, client);
      return () => {
        stop();
        this.#restLater();
      };
    } catch (error) {
      throw this.#failed(error, this.#base);
    }
  }

  /** Lets what is underway finish, but not for longer than this, and ends it. */
  async retire(graceMs: number): Promise<void> {
    const until = this.#clock.now() + graceMs;
    while (this.#inFlight > 0 && this.#clock.now() < until) {
      const idle = createDeferred<void>();
      this.#onIdle = idle.resolve;
      await settlesWithin(idle.promise, until - this.#clock.now(), this.#clock);
    }
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle?.();
    await Promise.all([
      this.#base[Symbol.asyncDispose](),
      this.#lists[Symbol.asyncDispose](),
      this.#lines[Symbol.asyncDispose](),
    ]);
  }

  /**
   * Makes one request for a caller. Most take the first way out: everybody shares one line to a server that asks nothing,
   * or asks in its results.
   */
  #serve(resumption: Resumption | undefined, context: CallContext, work: Work): Awaitable<Outcome> {
    const state = resumption?.state;
    if (resumption !== undefined && isParkedState(state))
      return this.#options.parking.resume(state, resumption, context);
    const { client } = this.#base;
    const relayable = toRelayable(context.capabilities, context.revision);
    const isPlain = this.config.sharing === "shared" && (relayable.key === "" || this.#isModern);
    if (client !== undefined && isPlain) return this.#attempt(client, this.#base, resumption, context, work);
    return this.#serveApart(resumption, context, work, relayable);
  }

  async #serveApart(
    resumption: Resumption | undefined,
    context: CallContext,
    work: Work,
    relayable: Relayable,
  ): Promise<Outcome> {
    const client = await this.#base.whenUp(context.signal);
    const key = this.#isModern ? "" : relayable.key;
    if (this.config.sharing === "shared" && key === "")
      return this.#attempt(client, this.#base, resumption, context, work);
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
    return isParkable ? this.#options.parking.run(invoke, context) : invoke(context);
  }

  /** A line for one call of a caller for whom something is declared, or who is not to share. */
  async #lend(key: string, context: CallContext): Promise<Lease> {
    const { sharing } = this.config;
    const isShared = sharing === "shared" && !this.#isAsking;
    if (isShared) {
      const { variant, release } = this.#lists.variants.use(key);
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
    const create = (): Line => this.#createLine(toCapabilities(key), own);
    return this.#lines.take(`${this.#ownerOf(context)} ${key}`, { isAlone, create }, context.signal);
  }

  #attempt(
    client: Client,
    line: Line,
    resumption: Resumption | undefined,
    context: CallContext,
    work: Work,
  ): Awaitable<Outcome> {
    if (this.#inFlight >= maxInFlight) throw this.#busy();
    const unwrapped = resumption === undefined ? undefined : unwrapState(resumption, this.name);
    this.#inFlight++;
    const done = (): void => {
      if (--this.#inFlight === 0) this.#onIdle?.();
      this.#restLater();
    };
    return work(client, context, unwrapped).then(
      (outcome) => {
        done();
        return outcome.kind === "complete" ? outcome : wrapState(outcome, this.name);
      },
      (error: unknown) => {
        done();
        const visits = isLegacyRevision(context.revision)
          ? undefined
          : toVisits(error, context.capabilities, this.name);
        if (visits !== undefined) return visits;
        throw this.#failed(error, line);
      },
    );
  }

  get #isModern(): boolean {
    return this.health.kind === "up" && this.health.agreement.mode.kind === "modern";
  }

  /** Whose a line is: everybody's, or where each is to have its own, a session's or a caller's. */
  #ownerOf({ session, caller }: CallContext): string {
    if (this.config.sharing !== "perSession") return "all";
    if (session === undefined) return `caller:${encodeURIComponent(caller ?? "")}`;
    let id = this.#sessions.get(session);
    if (id === undefined) this.#sessions.set(session, (id = this.#nextSession++));
    return `session:${id}`;
  }

  #createBase(): Line {
    return this.#createLine(
      {},
      {
        keepsAlive: true,
        onUp: (client) => {
          this.#firstListed = this.#lists.begin(client);
          this.#watches.renew(client);
          this.#restLater();
        },
        onHealth: (health, cause) => {
          if (health.kind !== "up") this.#lists.end();
          this.#options.onChange({ kind: "health", health, cause });
        },
      },
    );
  }

  /** A lazy server that nobody used for a while is stopped; its lists stay. */
  #restLater(): void {
    const { idleStopMs } = this.config;
    if (idleStopMs === undefined || this.#isClosed) return;
    this.#stopIdle?.();
    this.#stopIdle = this.#clock.timer(idleStopMs, () => {
      if (this.#inFlight === 0 && this.#watches.size === 0) void this.#base.rest();
    });
  }

  #failed(error: unknown, line: Line): unknown {
    if (isDoubtful(error)) line.doubt();
    return toUpstreamError(this.name, error, this.#options.hide);
  }

  #busy(): UpstreamError {
    const text = `${this.name} has ${maxInFlight} calls underway, which is the limit; this one was not sent.`;
    return new UpstreamError("busy", this.name, "not_sent", text);
  }

  #lacks(what: string): UpstreamError {
    return new UpstreamError("failed", this.name, "not_sent", `${this.name} no longer offers ${what}.`);
  }
}

/** A request by a client, on behalf of a caller. */
type Work = (client: Client, context: CallContext, resumption: Resumption | undefined) => Promise<Outcome>;
