import { andThen, type Awaitable } from "../../async/awaitable.ts";
import { type Clock, systemClock } from "../../async/clock.ts";
import { AskHabits } from "../../client/ask-habits.ts";
import type { Client } from "../../client/client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { NotFoundError } from "../../errors/not-found-error.ts";
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
import { describeHealth, type Health, measureAnswer } from "./health.ts";
import { createLineFactory } from "./line-factory.ts";
import type { Line } from "./line.ts";
import type { Listed, ListKind } from "./list-keeper.ts";
import { type Lease, Pool } from "./pool.ts";
import type { PooledLine } from "./pooled-line.ts";
import { lacks, Requests } from "./requests.ts";
import type { StartSlots } from "./start-slots.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./to-upstream-error.ts";
import { UpstreamLists } from "./upstream-lists.ts";

/** Something about a server behind the gateway changed, on one of its lines. */
export type UpstreamChange = { readonly pooled: PooledLine } & (
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
  | { readonly kind: "resource"; readonly uri: string }
);

interface UpstreamOptions {
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
  readonly #lists: UpstreamLists;
  readonly #requests: Requests;
  readonly #habits: AskHabits;
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
      onWaiting,
      createLine: createLineFactory({ config, connect, clock, slots, habits: this.#habits, onWaiting }),
      known: predecessor?.isListed === true ? predecessor.listedFor() : options.remembered,
      onListed: (pooled, changed) => onChange({ kind: "listed", changed, pooled }),
      onResource: (pooled, uri) => onChange({ kind: "resource", uri, pooled }),
      onUp: () => this.#restLater(),
      onHealth: (pooled, health, cause) => {
        if (pooled === this.pool.everyone) this.#lists.note(health);
        onChange({ kind: "health", health, cause, pooled });
      },
    });
    const { everyone } = this.pool;
    this.#lists = new UpstreamLists({ config, clock, firstListMs, pool: this.pool });
    // A caller that watches a resource goes on watching when the server is replaced.
    if (predecessor !== undefined) everyone.watches = predecessor.pool.everyone.watches;
    everyone.watches.onMissed = (uri) => onChange({ kind: "resource", uri, pooled: everyone });
    this.#requests = new Requests({
      server: config.name,
      clock,
      pool: this.pool,
      parking,
      isOne: audiences.isOne,
      toFailure: (error, line) => this.#failed(error, line),
      onEnded: () => this.#restLater(),
    });
    this.resources = {
      listResources: async (context) => this.#list(context, "resources"),
      listTemplates: async (context) => this.#list(context, "templates"),
      readResource: async (request, context) => this.#requests.read(request, context),
      watch: (uri, context) => this.#watch(uri, context),
    };
    this.prompts = {
      listPrompts: async (context) => this.#list(context, "prompts"),
      getPrompt: async (request, context) => this.#requests.getPrompt(request, context),
    };
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
    return this.#lists.listedFor(caller);
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
  start(): Promise<void> {
    return this.#lists.start();
  }

  /** A caller looks at one of its lists; see {@link UpstreamLists.looked}. */
  looked(caller: Hearer, part: ListPart): Promise<unknown> | undefined {
    return this.#lists.looked(caller, part);
  }

  /** A caller names something that may be in one of its lists; see {@link UpstreamLists.untilListed}. */
  untilListed(part: ListPart, { signal }: CallContext): Promise<unknown> | undefined {
    return this.#lists.untilListed(part, signal);
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
    const { client, era } = this.pool.everyone;
    return client && measureAnswer(client, era === "modern" ? "server/discover" : "ping", timeoutMs);
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

  /** A resource is watched on the caller's line, once for all its callers. */
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
    try {
      return await pooled.watches.add(uri, client);
    } catch (error) {
      // Some servers watch for modern clients only, though they speak to legacy ones too.
      const isUnknown = error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
      const isLess = isUnknown || error instanceof NotFoundError;
      if (pooled === everyone || !isLess || this.config.sharing !== "shared") throw error;
    }
    pooled.watchesElsewhere = true;
    return everyone.watches.add(uri, await everyone.line.whenUp(context.signal));
  }

  async #complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult> {
    const { client, pooled, release } = await this.pool.lendListed(context, context.signal);
    try {
      if (client.completion === undefined) throw lacks(this.name, "completion");
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
      if (this.inFlight === 0 && this.pool.everyone.watches.size === 0) void this.pool.everyone.line.rest();
    });
  }

  #failed(error: unknown, line: Line): unknown {
    if (isDoubtful(error)) line.doubt();
    return toUpstreamError(this.name, error, this.#options.hide);
  }
}
