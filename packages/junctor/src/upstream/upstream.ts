import type { Client, ConnectOptions } from "@junctor/client";
import { QuestionHabits } from "@junctor/client/internal";
import { andThen, type Awaitable, type Clock, settled, systemClock } from "@junctor/core/async";
import { NotFoundError, RpcError, rpcCodes, UpstreamError } from "@junctor/core/errors";
import type { ListPart } from "@junctor/core/fit";
import { RawJson } from "@junctor/core/json";
import { extensionIds, type Items, methods, type Part } from "@junctor/core/mcp";
import {
  type Answers,
  type CallContext,
  type CallerInfo,
  emptyListing,
  fromTaskState,
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
import { Audiences } from "./audience.ts";
import { toProvider } from "./client-provider.ts";
import { createConnectionFactory } from "./connection-factory.ts";
import type { Connection } from "./connection.ts";
import {
  type DescribeFailure,
  describeHealth,
  type Health,
  measureAnswer,
  type ConnectionStatus,
} from "./health.ts";
import { knowsTasks, lacks } from "./held-task.ts";
import { hostTask, taskSupportOf } from "./hosted-task.ts";
import { type Listed, toListing } from "./known-lists.ts";
import type { ListKind } from "./list-keeper.ts";
import { type Loan, Pool } from "./pool.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import { Requests } from "./requests.ts";
import { createSkillList } from "./skill-list.ts";
import type { StartSlots } from "./start-slots.ts";
import { TaskConnections } from "./task-connections.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./to-upstream-error.ts";
import { UpstreamLists } from "./upstream-lists.ts";
import { createUpstreamTasks, type UpstreamTasks } from "./upstream-tasks.ts";
import { createUseAt, type OtherReplicas } from "./use-at.ts";

/** Something about a server behind the gateway changed, on one of its connections. */
export type UpstreamChange = { readonly pooled: PooledConnection } & (
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
);

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
  /** Whether lists wait for its first lists. False for one that was waited for in vain in an earlier run; true. */
  readonly isAwaited?: boolean;
  /** Called when it asks a caller something for the first time. */
  readonly onAsked?: () => void;
  /** Called when a list begins to wait for its first list. */
  readonly onAwaited?: () => void;
  /** How long after its start its first lists are waited for; 2 s. */
  readonly firstListMs?: number;
  /** The server this one takes the place of, because its config changed: its lists and watches are taken over. */
  readonly predecessor?: Upstream | undefined;
  readonly clock?: Clock;
  /** Takes the secrets of the config out of messages to callers. */
  readonly hide?: Hide;
  /** How callers are told of a failure; by its reason alone. */
  readonly describeFailure?: DescribeFailure | undefined;
  readonly onChange: (change: UpstreamChange) => void;
  /** What its process writes besides messages. */
  readonly words?: Words;
  /** Whether it may run in another process of the gateway. */
  readonly isPlaced?: boolean | undefined;
  /** Reaches the same server in other processes of the gateway. */
  readonly elsewhere?: OtherReplicas | undefined;
}

/**
 * A server behind the gateway, as a provider: kept alive, with its last good lists, on as many connections as its callers need.
 *
 * It has many members because it is the front of four parts, which do the work: the pool of its connections, its lists, its
 * requests and its tasks.
 */
export class Upstream implements Provider, AsyncDisposable {
  /** Settings that only change how things are listed may be replaced while the server runs. */
  config: ServerConfig;
  readonly pool: Pool;
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  readonly #lists: UpstreamLists;
  readonly #requests: Requests;
  readonly #habits: QuestionHabits;
  readonly #skills: (context: CallContext) => Promise<Listing<Items["skills"]>>;
  readonly #tasks: UpstreamTasks;
  readonly #taskConnections: TaskConnections;
  readonly #hosted: MemoryTasks;
  #isClosed = false;
  #stopIdle: (() => void) | undefined;

  constructor(options: UpstreamOptions) {
    const { config, clock = systemClock, onChange, predecessor, parking } = options;
    const { firstListMs = 2000, isAwaited = true, onAwaited = () => {} } = options;
    const { hosted = createMemoryTasks({ clock }) } = options;
    this.config = config;
    this.#options = options;
    this.#clock = clock;
    this.#habits = predecessor === undefined ? new QuestionHabits(options.onAsked) : predecessor.#habits;
    const onWaiting = (): (() => void) => parking.wants(config.name, config.answerWithinMs);
    const audiences = new Audiences(config);
    const pool = new Pool({
      config,
      audiences,
      clock,
      onWaiting,
      createConnection: createConnectionFactory({ ...options, clock, habits: this.#habits }),
      known: predecessor?.isListed === true ? predecessor.listedFor() : options.remembered,
      onListed: (pooled, changed) => onChange({ kind: "listed", changed, pooled }),
      onUp: () => this.#restLater(),
      onHealth: (pooled, health, cause) => {
        if (pooled === pool.everyone) lists.note(health);
        onChange({ kind: "health", health, cause, pooled });
      },
    });
    const { everyone } = pool;
    const awaited = { firstListMs: isAwaited ? firstListMs : 0, onAwaited };
    const lists = new UpstreamLists({ config, clock, pool, ...awaited });
    // Watches of callers are kept when the server is replaced.
    if (predecessor !== undefined) everyone.watches = predecessor.pool.everyone.watches;
    const server = config.name;
    const toFailure = (error: unknown, connection: Connection): unknown => {
      if (isDoubtful(error)) connection.doubt();
      return toUpstreamError(server, error, options.hide);
    };
    const useAt = createUseAt(server, options.elsewhere, (error) => toFailure(error, everyone.connection));
    const taskConnections = new TaskConnections({ server, pool, clock });
    const common = { server, clock, pool, useAt, here: options.elsewhere?.here };
    const isProcess = config.launch.kind === "command";
    const requests = new Requests({
      ...common,
      parking,
      isOne: audiences.isOne,
      isHttp: !isProcess,
      holdsTasks: () => this.config.tasks === "hold",
      maxTotalMs: config.maxTotalMs,
      taskConnections,
      send: (client, operation, context) => this.#send(client, operation, context),
      onTask: (outcome, { client, pooled }) => {
        const known = tasks.created(outcome, client);
        // Another replica keeps its own connections.
        if (isProcess && outcome.task !== undefined && !isRemote(client))
          taskConnections.keep(outcome.task, pooled);
        return known;
      },
      toFailure,
      onEnded: () => this.#restLater(),
    });
    const tasks = createUpstreamTasks({
      ...common,
      use: async (ref, context, use) => {
        const kept = taskConnections.find(ref);
        if (kept?.client === undefined) return requests.useListed(context, ({ client }) => use(client));
        try {
          return await use(kept.client);
        } catch (error) {
          throw toFailure(error, kept.connection);
        }
      },
      isProcess,
      connections: taskConnections,
      hosted: toHome(hosted),
      toFailure: (error) => toUpstreamError(server, error, options.hide),
    });
    this.pool = pool;
    this.#lists = lists;
    this.#requests = requests;
    this.#skills = createSkillList({ clock, pool, requests });
    this.#tasks = tasks;
    this.#taskConnections = taskConnections;
    this.#hosted = hosted;
  }

  get name(): string {
    return this.config.name;
  }

  /** The health of the connection for everyone. */
  get health(): Health {
    return this.pool.everyone.connection.health;
  }

  /** Everything it lists for a caller, as far as it is known; without a caller, for everyone. */
  listedFor(caller?: CallerInfo): Listed {
    return this.#lists.listedFor(caller);
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
    return this.pool.everyone.keeper.isSettled;
  }

  /** Its processes, or its conversations over HTTP, each with its reason. */
  get connections(): readonly ConnectionStatus[] {
    return this.pool.all.map(({ reason, connection, inUse }) => ({
      reason,
      status: connection.health.kind,
      inUse,
    }));
  }

  /** What its process wrote besides messages. */
  get words(): Words {
    return this.#options.words ?? { said: "", stray: "" };
  }

  /** How many calls it has underway. */
  get inFlight(): number {
    return this.#requests.inFlight;
  }

  /** Starts it, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  start(): Promise<void> {
    return this.#lists.start();
  }

  /** A caller looks at one of its lists; see {@link UpstreamLists.beginListing}. */
  beginListing(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    return this.#lists.beginListing(caller, part);
  }

  /** A caller names something that may be in one of its lists; see {@link UpstreamLists.untilListed}. */
  untilListed(part: ListPart, { signal }: CallContext): Promise<unknown> | undefined {
    return this.#lists.untilListed(part, signal);
  }

  /** Why a call that may have been for it was not sent: nothing is known of its lists. */
  unavailable(): UpstreamError {
    const why = describeHealth(this.health, this.#clock.now(), this.#options.describeFailure);
    const text = `${this.name} has not listed what it offers yet, so the call was not sent: ${why}.`;
    return new UpstreamError("unavailable", text, { server: this.name, delivery: "not_sent" });
  }

  list<P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>>;
  list(part: Part, context: CallContext): Awaitable<Listing<object>> {
    if (part === "skills") return this.#skills(context);
    return andThen(this.#lists.beginListing(context, part), () => toListing(this.listedFor(context), part));
  }

  /** Resumes what waits for its caller, looks for the home of a task, and sends anything else on the connection of its caller. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome> {
    if (operation.ref !== undefined) return this.#tasks.call(operation, context);
    const row = methods.get(operation.method);
    if (row !== undefined && row.asks !== true) return this.#requests.callListed(operation, context);
    return this.#isHosted(operation, context)
      ? this.#tasks.hosted(
          hostTask(this.#hosted, context, (served) => this.#requests.call(operation, served)),
        )
      : this.#requests.call(operation, context);
  }

  /** A resource is watched on the caller's connection, once for all its callers. */
  watch(target: Target, context: CallContext, listener: (notice: Notice) => void): Awaitable<() => void> {
    if (target.ref !== undefined) return this.#tasks.watch(target, context, listener);
    return this.#requests.useListed(context, async (loan, keep) => {
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
    const provider = toProvider(client);
    const { method, name } = operation;
    if (method !== "tools/call") {
      const isOfExtension = methods.get(method)?.extension !== undefined;
      if (!isOfExtension && !provider.offers(context).serves(method)) throw lacks(this.name, method);
      return provider.call(operation, context);
    }
    const declares = context.capabilities.extensions !== undefined && knowsTasks(context);
    const callLegacyTask = client.callLegacyTask?.bind(client);
    if (callLegacyTask === undefined) {
      // The replica of its process counts the tasks.
      if (!declares || isRemote(client)) return provider.call(operation, context);
      return this.#taskConnections.call(context, (able) => provider.call(operation, able));
    }
    const support = taskSupportOf(this.listedFor(context).tools, name);
    const refused = support === undefined ? undefined : this.#taskConnections.refusal(context);
    if (support === "required" && refused !== undefined) throw refused;
    const isTask = support === "required" || (support === "optional" && declares && refused === undefined);
    if (!isTask) return provider.call(operation, context);
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
    this.#taskConnections[Symbol.dispose]();
    await this.pool[Symbol.asyncDispose]();
  }

  /** A lazy server that was not used for a while is stopped; its lists stay. */
  #restLater(): void {
    const { idleStopMs } = this.config;
    if (idleStopMs === undefined || this.#isClosed) return;
    this.#stopIdle?.();
    this.#stopIdle = this.#clock.timer(idleStopMs, () => {
      const isUsed =
        this.inFlight > 0 || this.pool.everyone.watches.size > 0 || this.#taskConnections.size > 0;
      if (!isUsed) void this.pool.everyone.connection.rest();
    });
  }
}

/** A server may turn out to have anything, whatever its connection for everyone was told. */
export const offersAll: Offers = {
  serves: () => true,
  extensions: { [extensionIds.skills]: { directoryRead: true }, [extensionIds.tasks]: {} },
};

/** Tasks that the gateway hosts, as the provider that has them. */
function toHome(hosted: MemoryTasks): Provider {
  return {
    list: () => emptyListing,
    call: ({ method, ref = "", arguments: args }, context) => {
      switch (method) {
        case "tasks/get":
          return andThen(settled(hosted.get(ref, context)), fromTaskState);
        case "tasks/update":
          return andThen(settled(hosted.update(ref, toAnswers(args), context)), () => taken);
        case "tasks/cancel":
          return andThen(settled(hosted.cancel(ref, context)), () => taken);
        default:
          throw new NotFoundError("task", ref);
      }
    },
    watch: ({ ref = "" }, context, listener) => {
      const { watch } = hosted;
      if (watch === undefined) throw new NotFoundError("task", ref);
      return watch(ref, context, (state) => listener({ kind: "task", outcome: fromTaskState(state) }));
    },
    offers: () => offersAll,
  };
}

const taken: Outcome = { kind: "complete", result: RawJson.fromText("{}") };

/** The answers that `tasks/update` brings, by key. */
function toAnswers(args: RawJson): Answers {
  const keys = Object.keys(args.value as object);
  return Object.fromEntries(keys.map((key) => [key, args.at(key) as RawJson]));
}
