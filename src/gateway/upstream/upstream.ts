import { andThen, type Awaitable } from "../../async/awaitable.ts";
import { type Clock, settlesWithin, systemClock } from "../../async/clock.ts";
import { AskHabits } from "../../client/ask-habits.ts";
import type { Client } from "../../client/client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { RpcError, rpcCodes } from "../../errors/rpc-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import type { CacheHints, CompletionResult } from "../../mcp/types.ts";
import type { CallContext } from "../../tools/context.ts";
import type { ListPart } from "../../tools/fit/list-fault.ts";
import type {
  Change,
  CompletionProvider,
  CompletionRequest,
  Hearer,
  PromptProvider,
  Provider,
  ResourceProvider,
  ToolCall,
  ToolOutcome,
} from "../../tools/provider.ts";
import type { Parking } from "../bridge/parking.ts";
import type { ServerConfig } from "../config/config.ts";
import type { LineStatus } from "../status.ts";
import { Audiences } from "./audience.ts";
import { FirstLists } from "./first-lists.ts";
import { describeHealth, type Health } from "./health.ts";
import { createLineFactory } from "./line-factory.ts";
import type { Line } from "./line.ts";
import type { Listed, ListKeeper, ListKind } from "./list-keeper.ts";
import { type Lease, ownListMs, Pool, type PooledLine } from "./pool.ts";
import { Requests } from "./requests.ts";
import type { StartSlots } from "./start-slots.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./to-upstream-error.ts";
import { Watches } from "./watches.ts";

/** Something about a server behind the gateway changed, on one of its lines. */
export type UpstreamChange = { readonly pooled: PooledLine } & (
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
  | { readonly kind: "resource"; readonly uri: string }
);

export interface UpstreamOptions {
  readonly config: ServerConfig;
  /** Opens a way to the server: as the config says, unless a test wants another. */
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly parking: Parking;
  /** Limits how many processes start at the same time. */
  readonly slots?: StartSlots | undefined;
  /** The lists of an earlier run, if they are known. */
  readonly remembered?: Listed | undefined;
  /** How long after its start its first lists are waited for; 2 s. */
  readonly firstListMs?: number;
  /** The server this one takes the place of, because its config changed: its lists and watches are taken over. */
  readonly predecessor?: Upstream | undefined;
  readonly clock?: Clock;
  /** Takes the secrets of the config out of messages to callers. */
  readonly hide?: Hide;
  readonly onChange: (change: UpstreamChange) => void;
}

/** Lists older than this are renewed when a caller looks, unless the server said that they keep longer. */
const staleMs = 60_000;

/** A server behind the gateway, as a provider: kept alive, with its last good lists, on as many lines as its callers need. */
export class Upstream implements Provider, AsyncDisposable {
  /** The part of it that concerns only how things are listed may be replaced while it runs. */
  config: ServerConfig;
  readonly resources: ResourceProvider;
  readonly prompts: PromptProvider;
  readonly completion: CompletionProvider;
  readonly pool: Pool;
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  readonly #firstLists: FirstLists;
  readonly #requests: Requests;
  readonly #watches: Watches;
  readonly #habits: AskHabits;
  /** Until when the first list on a line is waited for. */
  readonly #waitsUntil = new WeakMap<PooledLine, number>();
  #isClosed = false;
  #stopIdle: (() => void) | undefined;

  constructor(options: UpstreamOptions) {
    const { config, clock = systemClock, onChange, connect, predecessor, parking, slots } = options;
    const { firstListMs = 2000 } = options;
    this.config = config;
    this.#options = options;
    this.#clock = clock;
    this.#habits = predecessor === undefined ? new AskHabits() : predecessor.#habits;
    const onWaiting = (): (() => void) => parking.wants(config.name, config.answerWithinMs);
    const audiences = new Audiences(config);
    this.pool = new Pool({
      config,
      audiences,
      clock,
      createLine: createLineFactory({ config, connect, clock, slots, habits: this.#habits, onWaiting }),
      known: predecessor?.isListed === true ? predecessor.listedFor() : options.remembered,
      onListed: (pooled, changed) => onChange({ kind: "listed", changed, pooled }),
      onResource: (pooled, uri) => onChange({ kind: "resource", uri, pooled }),
      onUp: (pooled, client) => {
        if (pooled === this.pool.everyone) this.#watches.renew(client);
        this.#restLater();
      },
      onHealth: (pooled, health, cause) => {
        if (pooled === this.pool.everyone) this.#firstLists.note(health);
        onChange({ kind: "health", health, cause, pooled });
      },
    });
    const { everyone } = this.pool;
    const { startTimeoutMs } = config;
    this.#firstLists = new FirstLists({ clock, firstListMs, startTimeoutMs, lists: everyone.lists });
    // A caller that watches a resource goes on watching when the server is replaced.
    this.#watches = predecessor === undefined ? new Watches() : predecessor.#watches;
    this.#watches.onMissed = (uri) => onChange({ kind: "resource", uri, pooled: everyone });
    this.#requests = new Requests({
      server: config.name,
      clock,
      pool: this.pool,
      parking,
      isOne: audiences.isOne,
      toFailure: (error, line) => this.#failed(error, line),
      onEnded: () => this.#restLater(),
    });
    this.resources = this.#toResources();
    this.prompts = this.#toPrompts();
    this.completion = { complete: (request, context) => this.#complete(request, context) };
  }

  get name(): string {
    return this.config.name;
  }

  /** Itself: servers of this process are other objects than their providers. */
  get provider(): Provider {
    return this;
  }

  /** The health of the line for everyone. */
  get health(): Health {
    return this.pool.everyone.line.health;
  }

  /** Everything it lists for a caller, as far as it is known; without a caller, for everyone. */
  listedFor(caller?: Hearer): Listed {
    const { everyone } = this.pool;
    const own = caller === undefined ? undefined : this.pool.find(caller)?.lists;
    return own?.isListed === true ? own.listed : everyone.lists.listed;
  }

  /** Whether anything is known of its lists. */
  get isListed(): boolean {
    return this.pool.everyone.lists.isListed;
  }

  /** Whether everything it lists is known, as it was last listed. */
  get isSettled(): boolean {
    return this.pool.everyone.lists.isSettled;
  }

  /** Its processes, or its conversations over HTTP, each with its reason. */
  get lines(): readonly LineStatus[] {
    return this.pool.all.map(({ reason, line, inUse }) => ({ reason, status: line.health.kind, inUse }));
  }

  /** How many calls it has underway. */
  get inFlight(): number {
    return this.#requests.inFlight;
  }

  /** Starts it, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  async start(): Promise<void> {
    if (this.health.kind === "idle") this.#firstLists.begin();
    this.pool.everyone.line.start();
    await this.#firstLists.all();
  }

  /**
   * A caller looks at one of its lists: a lazy server that was never listed is started, and old lists are renewed in the
   * background. A promise means that the list is not known yet; it settles when it is, or when it was waited for long enough.
   */
  looked(caller: Hearer, part: ListPart): Promise<unknown> | undefined {
    if (this.health.kind === "idle" && !this.isListed) void this.start();
    const first = this.#firstLists.forList(part);
    if (first !== undefined) return first.then(() => this.#lookedOn(caller, part));
    return this.#lookedOn(caller, part);
  }

  /**
   * A caller names something that may be in one of its lists. A promise means that the list is not known yet; it settles when
   * it is, when the server failed, or when it was waited for as long as for a start.
   */
  untilListed(part: ListPart, { signal }: CallContext): Promise<unknown> | undefined {
    if (this.health.kind === "idle" && !this.isListed) void this.start();
    const wait = this.#firstLists.forCall(part, signal);
    // A server that a call waits for is started before the others.
    if (wait !== undefined) void this.pool.everyone.line.whenUp(signal).catch(() => {});
    return wait;
  }

  /** Why a call that may have been for it was not sent: nothing is known of its lists. */
  unavailable(): UpstreamError {
    const why = describeHealth(this.health, this.#clock.now());
    const text = `${this.name} has not listed what it offers yet, so the call was not sent: ${why}.`;
    return new UpstreamError("unavailable", text, { server: this.name, delivery: "not_sent" });
  }

  /** An announcement concerns the callers of its line. Those whose own line lists or watches nothing hear that for everyone. */
  mayHear({ line, kind }: Change, caller: Hearer): boolean {
    const own = this.pool.find(caller);
    if (line === undefined || own === line) return true;
    if (line !== this.pool.everyone) return false;
    return kind === "resource" ? own?.watchesElsewhere !== false : own?.lists.isListed !== true;
  }

  get cacheHints(): CacheHints {
    return this.listedFor().hints;
  }

  listTools(context: CallContext): Awaitable<Listed["tools"]> {
    return this.#list(context, "tools");
  }

  callTool(call: ToolCall, context: CallContext): Awaitable<ToolOutcome> {
    return this.#requests.make(call.resumption, context, (client, served, resumption) =>
      client.callTool(resumption === call.resumption ? call : { ...call, resumption }, served),
    );
  }

  /** How long it takes to answer a request that gives it no work; undefined when it does not within `timeoutMs`. */
  async measure(timeoutMs = 5000): Promise<number | undefined> {
    const { client, health } = this.pool.everyone.line;
    if (client === undefined) return undefined;
    const startedAt = performance.now();
    const isModern = health.kind === "up" && health.agreement.mode.kind === "modern";
    const limits = { timeoutMs, maxTotalMs: timeoutMs };
    return client.request(isModern ? "server/discover" : "ping", undefined, limits).then(
      () => performance.now() - startedAt,
      () => undefined,
    );
  }

  /** Lets the calls underway finish, but not for longer than this, and ends it. */
  async retire(graceMs: number): Promise<void> {
    await this.#options.parking.leave(this.name);
    await this.#requests.untilIdle(graceMs);
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle?.();
    await this.pool[Symbol.asyncDispose]();
  }

  #list<Part extends ListPart>(context: CallContext, part: Part): Awaitable<Listed[Part]> {
    return andThen(this.looked(context, part), () => this.listedFor(context)[part]);
  }

  /** The caller's own line is opened, so that its lists come from where its calls go. */
  #lookedOn(caller: Hearer, part: ListPart): Promise<unknown> | undefined {
    if (this.health.kind !== "up") return undefined;
    const pooled = this.pool.lineFor(caller);
    if (pooled === this.pool.everyone || pooled.lists.isListed) return refresh(pooled.lists);
    const until = this.#waitsUntil.get(pooled) ?? this.#clock.now() + ownListMs;
    this.#waitsUntil.set(pooled, until);
    const leftMs = until - this.#clock.now();
    const first = pooled.lists.fresh(part);
    pooled.line.start();
    if (first === undefined || leftMs <= 0) return undefined;
    const failed = pooled.line.whenUp(new AbortController().signal).then(
      () => first,
      () => {},
    );
    return settlesWithin(Promise.race([first, failed]), leftMs, this.#clock);
  }

  #toResources(): ResourceProvider {
    return {
      listResources: async (context) => this.#list(context, "resources"),
      listTemplates: async (context) => this.#list(context, "templates"),
      readResource: async (request, context) =>
        this.#requests.make(request.resumption, context, async (client, served, resumption) => {
          if (client.resources === undefined) throw this.#lacks("resources");
          return client.resources.readResource({ ...request, resumption }, served);
        }),
      watch: (uri, context) => this.#watch(uri, context),
    };
  }

  #toPrompts(): PromptProvider {
    return {
      listPrompts: async (context) => this.#list(context, "prompts"),
      getPrompt: async (request, context) =>
        this.#requests.make(request.resumption, context, async (client, served, resumption) => {
          if (client.prompts === undefined) throw this.#lacks("prompts");
          return client.prompts.getPrompt({ ...request, resumption }, served);
        }),
    };
  }

  /** A resource is watched on the caller's line; on the line for everyone it is watched once for all. */
  async #watch(uri: string, context: CallContext): Promise<() => void> {
    const lease = await this.pool.lendListed(context, context.signal);
    try {
      const stop = await this.#watchOn(lease, uri, context);
      return () => {
        stop();
        lease.release();
        this.#restLater();
      };
    } catch (error) {
      lease.release();
      throw this.#failed(error, lease.pooled.line);
    }
  }

  async #watchOn({ client, pooled }: Lease, uri: string, context: CallContext): Promise<() => void> {
    const { everyone } = this.pool;
    if (pooled === everyone) return this.#watches.add(uri, client);
    try {
      const stop = await client.resources?.watch?.(uri, context);
      if (stop !== undefined) return stop;
    } catch (error) {
      // Some servers watch for modern clients only, though they speak to legacy ones too.
      const isUnknown = error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
      if (!isUnknown || this.config.sharing !== "shared") throw error;
    }
    pooled.watchesElsewhere = true;
    return this.#watches.add(uri, await everyone.line.whenUp(context.signal));
  }

  async #complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult> {
    const { client, pooled, release } = await this.pool.lendListed(context, context.signal);
    try {
      if (client.completion === undefined) throw this.#lacks("completion");
      return await client.completion.complete(request, context);
    } catch (error) {
      throw this.#failed(error, pooled.line);
    } finally {
      release();
      this.#restLater();
    }
  }

  /** A lazy server that was not used for a while is stopped; its lists stay. */
  #restLater(): void {
    const { idleStopMs } = this.config;
    if (idleStopMs === undefined || this.#isClosed) return;
    this.#stopIdle?.();
    this.#stopIdle = this.#clock.timer(idleStopMs, () => {
      if (this.inFlight === 0 && this.#watches.size === 0) void this.pool.everyone.line.rest();
    });
  }

  #failed(error: unknown, line: Line): unknown {
    if (isDoubtful(error)) line.doubt();
    return toUpstreamError(this.name, error, this.#options.hide);
  }

  #lacks(facet: string): UpstreamError {
    return new UpstreamError("failed", `${this.name} no longer offers ${facet}.`, {
      server: this.name,
      delivery: "not_sent",
    });
  }
}

function refresh(lists: ListKeeper): undefined {
  lists.refreshAfter(Math.max(staleMs, lists.listed.hints.ttlMs));
  return undefined;
}
