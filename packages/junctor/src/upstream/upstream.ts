import type { Client, ConnectOptions } from "@junctor/client";
import { QuestionHabits } from "@junctor/client/internal";
import { andThen, type Awaitable, type Clock, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { NotFoundError, rpcCodes, RpcError, UpstreamError } from "@junctor/core/errors";
import type { ListPart } from "@junctor/core/fit";
import { extensionIds, type Items, methods, type Part } from "@junctor/core/mcp";
import {
  type CallContext,
  type CallerInfo,
  emptyListing,
  type Listing,
  type Notice,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
} from "@junctor/core/provider";
import { createMemoryTasks } from "@junctor/server";
import type { MemoryTasks } from "@junctor/server/internal";
import type { Parking } from "../bridge/index.ts";
import { isRemote } from "../cluster/index.ts";
import type { ServerConfig } from "../config/index.ts";
import type { Words } from "../log/index.ts";
import { CallerGroups } from "./caller-groups.ts";
import { Calls, createUseAt, type OtherReplicas, type UseAt } from "./calls.ts";
import {
  type Connection,
  type ConnectionStatus,
  type DescribeFailure,
  describeHealth,
  type Health,
  statusOf,
} from "./connection.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./failure.ts";
import { type Listed, toListing } from "./list-cache.ts";
import { createConnectionFactory } from "./open-server.ts";
import { type Loan, ownListMs, Pool, type PooledConnection, type UpstreamEvent } from "./pool.ts";
import type { StartSlots } from "./starts.ts";
import { hostTask, knowsTasks, noLongerOffers, taskSupportOf } from "./task-calls.ts";
import { TaskConnections, UpstreamTasks } from "./tasks.ts";

interface UpstreamOptions {
  readonly config: ServerConfig;
  /** Opens a client of the server: as the config says, or as a test wants. */
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly parking: Parking;
  /** The tasks that the gateway hosts for servers of 2025-11-25. */
  readonly hosted?: MemoryTasks;
  /** Limits how many processes start at the same time. */
  readonly slots?: StartSlots | undefined;
  /** The lists of an earlier run, if they are known. */
  readonly remembered?: Listed | undefined;
  /** Whether lists wait for its first lists. False for one that was waited for without success in an earlier run; true when left out. */
  readonly isAwaited?: boolean;
  /** Called when it asks a caller something for the first time. */
  readonly onAsked?: () => void;
  /** Called when a list begins to wait for its first list. */
  readonly onAwaited?: () => void;
  /** How long after its start its first lists are waited for, read when a list waits; 2 s. */
  readonly firstListMs?: () => number;
  /** The server this one takes the place of, because its config changed: its lists and watches are taken over. */
  readonly predecessor?: Upstream | undefined;
  readonly clock?: Clock;
  /** Takes the secrets of the config out of messages to callers. */
  readonly hide?: Hide;
  /** How a failure is described to callers; by its reason alone when left out. */
  readonly describeFailure?: DescribeFailure | undefined;
  /** Called for everything that happens on its connections. */
  readonly report: (event: UpstreamEvent) => void;
  /** What its process writes besides messages. */
  readonly words?: Words;
  /** Whether it may run in another process of the gateway. */
  readonly isPlaced?: boolean | undefined;
  /** Reaches the same server in other processes of the gateway. */
  readonly elsewhere?: OtherReplicas | undefined;
}

/** Lists older than this are renewed when a caller looks, unless the server said that they keep longer. */
const staleMs = 60_000;

/**
 * A server behind the gateway, as a provider: a pool of connections, each with its lists; the calls underway; the tasks.
 */
export class Upstream implements Provider, AsyncDisposable {
  #config: ServerConfig;
  readonly pool: Pool;
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  readonly #habits: QuestionHabits;
  readonly #calls: Calls;
  readonly #late: { readonly [P in LateListPart]: (context: CallContext) => Promise<Listing<Items[P]>> };
  readonly #tasks: UpstreamTasks;
  readonly #taskConnections: TaskConnections;
  readonly #hosted: MemoryTasks;
  #isClosed = false;
  #stopIdle: (() => void) | undefined;

  constructor(options: UpstreamOptions) {
    const { config, clock = systemClock, predecessor, parking } = options;
    const { hosted = createMemoryTasks({ clock }), elsewhere } = options;
    const groups = new CallerGroups(config);
    this.#config = config;
    const configNow = (): ServerConfig => this.#config;
    this.#options = options;
    this.#clock = clock;
    this.#hosted = hosted;
    this.#habits = predecessor === undefined ? new QuestionHabits(options.onAsked) : predecessor.#habits;
    this.pool = new Pool({
      config,
      configNow,
      groups,
      clock,
      onWaiting: () => parking.shortenWaits(config.name, this.#config.answerWithinMs),
      createConnection: createConnectionFactory({ ...options, configNow, clock, habits: this.#habits }),
      known: predecessor?.isListed === true ? predecessor.listedFor() : options.remembered,
      // Watches of callers are kept when the server is replaced.
      watches: predecessor?.pool.everyone.watches,
      report: (event) => {
        if (event.kind === "health" && event.health.kind === "up") this.#restLater();
        options.report(event);
      },
    });
    const { connection } = this.pool.everyone;
    const useAt = createUseAt(config.name, elsewhere, (error) => this.#toFailure(error, connection));
    this.#taskConnections = new TaskConnections({ server: config.name, pool: this.pool, clock });
    this.#calls = this.#createCalls(groups, useAt);
    this.#tasks = this.#createTasks(useAt);
    const late = { clock, pool: this.pool, calls: this.#calls };
    this.#late = {
      skills: createLateList({ part: "skills", ...late }),
      groups: createLateList({ part: "groups", ...late }),
    };
  }

  #createCalls({ isOne }: CallerGroups, useAt: UseAt): Calls {
    const { config, parking, elsewhere } = this.#options;
    const isProcess = config.launch.kind === "command";
    return new Calls({
      server: config.name,
      clock: this.#clock,
      pool: this.pool,
      useAt,
      here: elsewhere?.here,
      parking,
      isOne,
      isHttp: !isProcess,
      holdsTasks: () => this.config.tasks === "hold",
      maxTotalMs: () => this.#config.maxTotalMs,
      taskConnections: this.#taskConnections,
      send: (client, operation, context) => this.#send(client, operation, context),
      onTask: (outcome, { client, pooled }) => {
        const known = this.#tasks.toCallersTask(outcome, client);
        // Another replica keeps its own connections.
        if (isProcess && outcome.task !== undefined && !isRemote(client))
          this.#taskConnections.keep(outcome.task, pooled);
        return known;
      },
      toFailure: (error, connection) => this.#toFailure(error, connection),
      onEnded: () => this.#restLater(),
    });
  }

  #createTasks(useAt: UseAt): UpstreamTasks {
    const { config, elsewhere, hide } = this.#options;
    return new UpstreamTasks({
      server: config.name,
      clock: this.#clock,
      useAt,
      here: elsewhere?.here,
      use: async (ref, context, use) => {
        const kept = this.#taskConnections.find(ref);
        if (kept?.client === undefined) return this.#calls.useListed(context, ({ client }) => use(client));
        try {
          return await use(kept.client);
        } catch (error) {
          throw this.#toFailure(error, kept.connection);
        }
      },
      isProcess: config.launch.kind === "command",
      connections: this.#taskConnections,
      hosted: this.#hosted,
      toFailure: (error) => toUpstreamError(config.name, error, hide),
    });
  }

  get name(): string {
    return this.#config.name;
  }

  get config(): ServerConfig {
    return this.#config;
  }

  /** Settings that need no new process may be replaced while the server runs. */
  set config(next: ServerConfig) {
    const { start, idleStopMs } = this.#config;
    this.#config = next;
    if (next.start === "eager" && start === "lazy") void this.start();
    if (next.idleStopMs !== idleStopMs) this.#restLater();
  }

  /** The health of the connection for everyone. */
  get health(): Health {
    return this.pool.everyone.connection.health;
  }

  /** Everything it lists for a caller, as far as it is known; without a caller, for everyone. */
  listedFor(caller?: CallerInfo): Listed {
    const own = caller === undefined ? undefined : this.pool.find(caller)?.lists;
    return own?.isListed === true ? own.listed : this.pool.everyone.lists.listed;
  }

  /** Whether anything is known of its lists. */
  get isListed(): boolean {
    return this.pool.everyone.lists.isListed;
  }

  /** Whether lists wait for its first lists. */
  get isAwaited(): boolean {
    return this.#options.isAwaited ?? true;
  }

  /** Whether everything it lists is known, as it was last listed. */
  get isSettled(): boolean {
    return this.pool.everyone.lists.isSettled;
  }

  /** Its processes, or its conversations over HTTP, each with its reason. */
  get connections(): readonly ConnectionStatus[] {
    return this.pool.all.map(({ reason, connection, inUse }) => ({
      reason,
      status: statusOf(connection.health),
      inUse,
    }));
  }

  /** What its process wrote besides messages. */
  get words(): Words {
    return this.#options.words ?? { said: "", stray: "" };
  }

  /** How many calls it has underway. */
  get inFlight(): number {
    return this.#calls.inFlight;
  }

  /** Starts it, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  async start(): Promise<void> {
    const { connection, lists } = this.pool.everyone;
    if (connection.health.kind === "idle") lists.noteStart();
    connection.start();
    await lists.untilAll();
  }

  /**
   * A caller looks at one of its lists: a lazy server that was never listed is started, and old lists are renewed in the background.
   * A promise means that the list is not known yet; it settles when it is, or when it was waited for long enough.
   */
  beginListing(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    const { firstListMs = () => 2000, isAwaited = true, onAwaited } = this.#options;
    this.#startLazy();
    const first = this.pool.everyone.lists.untilFirst(part, isAwaited ? firstListMs() : 0);
    if (first === undefined) return this.#beginListingOn(caller, part);
    onAwaited?.();
    return first.then(() => this.#beginListingOn(caller, part));
  }

  /**
   * A caller names something that may be in one of its lists. A promise means that the list is not known yet; it settles when it is,
   * when the server failed, or when it was waited for as long as for a start.
   */
  untilListed(part: ListPart, { signal }: CallContext): Promise<unknown> | undefined {
    this.#startLazy();
    const { connection, lists } = this.pool.everyone;
    const wait = lists.untilNamed(part, this.#config.startTimeoutMs, signal);
    // A server that a call waits for is started before the others.
    if (wait !== undefined) void connection.whenUp(signal).catch(() => {});
    return wait;
  }

  /** Why a call that may have been for it was not sent: nothing is known of its lists. */
  unavailable(): UpstreamError {
    const why = describeHealth(this.health, this.#clock.now(), this.#options.describeFailure);
    const text = `${this.name} has not listed what it offers yet, so the call was not sent: ${why}.`;
    return new UpstreamError("unavailable", text, { server: this.name, delivery: "not_sent" });
  }

  list<P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>>;
  list(part: Part, context: CallContext): Awaitable<Listing<object>> {
    if (part === "skills" || part === "groups") return this.#late[part](context);
    return andThen(this.beginListing(context, part), () => toListing(this.listedFor(context), part));
  }

  /** Resumes what waits for its caller, looks for the home of a task, and sends anything else on the connection of its caller. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome> {
    if (operation.ref !== undefined) return this.#tasks.call(operation, context);
    const row = methods.get(operation.method);
    if (row !== undefined && row.asks !== true) return this.#calls.callListed(operation, context);
    return this.#isHosted(operation, context)
      ? this.#tasks.toHostedTask(
          hostTask(this.#hosted, context, (served) => this.#calls.call(operation, served)),
        )
      : this.#calls.call(operation, context);
  }

  /** A resource is watched on the caller's connection, once for all its callers. */
  watch(target: Target, context: CallContext, listener: (notice: Notice) => void): Awaitable<() => void> {
    if (target.ref !== undefined) return this.#tasks.watch(target, context, listener);
    return this.#calls.useListed(context, async (loan, keep) => {
      const stop = await this.#watchOn(loan, target.name, context, listener);
      const release = keep();
      return () => {
        stop();
        release();
      };
    });
  }

  offers(): Offers {
    return offersAll;
  }

  /** Whether the gateway makes a task of a call, for a caller that knows tasks and a server that knows those of 2025-11-25. */
  #isHosted({ method, name }: Operation, context: CallContext): boolean {
    if (context.capabilities.extensions === undefined || method !== "tools/call" || !knowsTasks(context))
      return false;
    if (this.pool.find(context)?.client?.callLegacyTask === undefined) return false;
    const isTask = taskSupportOf(this.listedFor(context).tools, name) !== undefined;
    return isTask && this.#taskConnections.refusal(context) === undefined;
  }

  /** Sends an operation by a client. A tool that a 2025-11-25 server runs as a task only is called as one, and waited for. */
  #send(client: Client, operation: Operation, context: CallContext): Awaitable<Outcome> {
    const { method, name } = operation;
    if (method !== "tools/call") {
      const isOfExtension = methods.get(method)?.extension !== undefined;
      if (!isOfExtension && !client.offers(context).serves(method)) throw noLongerOffers(this.name, method);
      return client.call(operation, context);
    }
    const declares = context.capabilities.extensions !== undefined && knowsTasks(context);
    const callLegacyTask = client.callLegacyTask?.bind(client);
    if (callLegacyTask === undefined) {
      // The replica of its process counts the tasks.
      if (!declares || isRemote(client)) return client.call(operation, context);
      return this.#taskConnections.call(context, (able) => client.call(operation, able));
    }
    const support = taskSupportOf(this.listedFor(context).tools, name);
    const refused = support === undefined ? undefined : this.#taskConnections.refusal(context);
    if (support === "required" && refused !== undefined) throw refused;
    const isTask = support === "required" || (support === "optional" && declares && refused === undefined);
    if (!isTask) return client.call(operation, context);
    return this.#taskConnections.call(context, (able) => callLegacyTask(operation, able));
  }

  async #watchOn(
    { client, pooled }: Loan,
    uri: string,
    { signal }: CallContext,
    listener: (notice: Notice) => void,
  ): Promise<() => void> {
    const { everyone } = this.pool;
    try {
      return await pooled.watches.add(uri, client, listener);
    } catch (error) {
      // Some servers watch for modern clients only, though they speak to legacy ones too.
      const isUnknown = error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
      const isLess = isUnknown || error instanceof NotFoundError;
      if (pooled === everyone || !isLess || this.config.sharing !== "shared") throw error;
    }
    return everyone.watches.add(uri, await everyone.connection.whenUp(signal), listener);
  }

  /** How long it takes to answer a request that gives it no work; undefined when it does not within `timeoutMs`. */
  async measure(timeoutMs = 5000): Promise<number | undefined> {
    const { client, era } = this.pool.everyone;
    if (client === undefined) return undefined;
    const startedAt = performance.now();
    const method = era === "modern" ? "server/discover" : "ping";
    return client.request(method, undefined, { timeoutMs, maxTotalMs: timeoutMs }).then(
      () => performance.now() - startedAt,
      () => undefined,
    );
  }

  /** Lets the calls underway finish, but not for longer than this, and ends it. */
  async retire(graceMs: number): Promise<void> {
    await this.#options.parking.giveUpServer(this.name);
    await this.#calls.untilIdle(graceMs);
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle?.();
    this.#taskConnections[Symbol.dispose]();
    await this.pool[Symbol.asyncDispose]();
  }

  #startLazy(): void {
    const { connection, lists } = this.pool.everyone;
    if (connection.health.kind === "idle" && !lists.isListed) void this.start();
  }

  /** The caller's own connection is opened, so that its lists come from where its calls go. */
  #beginListingOn(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    const { everyone } = this.pool;
    if (everyone.client === undefined) return undefined;
    const { lists, connection } = this.pool.connectionFor(caller);
    if (lists === everyone.lists || lists.isListed) {
      lists.refreshAfter(staleMs);
      return undefined;
    }
    connection.start();
    return lists.untilOwn(part, ownListMs, () => connection.whenUp(new AbortController().signal));
  }

  /** The error that a caller gets for a failure on a connection. */
  #toFailure(error: unknown, connection: Connection): unknown {
    if (isDoubtful(error)) connection.doubt();
    return toUpstreamError(this.name, error, this.#options.hide);
  }

  /** A lazy server that was not used for a while is stopped; its lists stay. */
  #restLater(): void {
    const { idleStopMs } = this.config;
    this.#stopIdle?.();
    if (idleStopMs === undefined || this.#isClosed) return;
    this.#stopIdle = this.#clock.timer(idleStopMs, () => {
      const isUsed =
        this.inFlight > 0 || this.pool.everyone.watches.size > 0 || this.#taskConnections.size > 0;
      if (!isUsed) void this.pool.everyone.connection.rest();
    });
  }
}

/** A server may turn out to have anything, whatever it declared on the connection for everyone. */
export const offersAll: Offers = {
  serves: () => true,
  extensions: { [extensionIds.skills]: { directoryRead: true }, [extensionIds.tasks]: {} },
};

/** How long a list of skills or groups of one server is waited for, the first time and later: a caller's list is of all servers. */
const maxFirstMs = 5000;
const maxAgainMs = 1000;
/** How long a list that was late is not waited for. */
const lateMs = 30_000;

/** Lists of an extension, which are fetched when a caller wants them. */
type LateListPart = "skills" | "groups";

interface LateListOptions<P extends LateListPart> {
  readonly part: P;
  readonly clock: Clock;
  readonly pool: Pick<Pool, "everyone" | "find">;
  readonly calls: Pick<Calls, "useListed">;
}

/**
 * Lists the skills or the groups of a server. One that never listed them is waited for; one that is down or late has what it listed
 * last.
 */
export function createLateList<P extends LateListPart>(
  options: LateListOptions<P>,
): (context: CallContext) => Promise<Listing<Items[P]>> {
  const { part, clock, pool, calls } = options;
  /** The last list of the connection for everyone: lists of other connections are for their callers alone. */
  let last: Listing<Items[P]> | undefined;
  /** By connection: until when its list is not waited for, because it was late. 0 for a connection that gave it. */
  const lateUntil = new WeakMap<PooledConnection, number>();
  const list = (context: CallContext): Promise<Listing<Items[P]>> =>
    calls.useListed(context, async ({ client, pooled }) => {
      const listed = await client.list(part, context);
      if (pooled === pool.everyone) last = listed;
      if (!lateUntil.has(pooled)) lateUntil.set(pooled, 0);
      return listed;
    });
  return async (context) => {
    const connection = pool.find(context);
    const until = connection && lateUntil.get(connection);
    const isAway = pool.everyone.client === undefined || clock.now() < (until ?? 0);
    if (isAway && last !== undefined) return last;
    const listed = list(context).catch(() => undefined);
    const found = await waitFor(listed, { ms: until === undefined ? maxFirstMs : maxAgainMs, clock });
    const used = pool.find(context);
    if (found === timedOut && used !== undefined) lateUntil.set(used, clock.now() + lateMs);
    context.signal.throwIfAborted();
    last ??= emptyListing;
    return found === undefined || found === timedOut ? last : found;
  };
}
