import { waitFor } from "@junctor/core/async";
import type { Catalog, Naming } from "@junctor/core/compose";
import type { Change, Provider } from "@junctor/core/provider";
import { type Links, PerCallerServers } from "../accounts/index.ts";
import { type ServerConfig, toProcessKey, toUpstreamKey } from "../config/index.ts";
import type { ListVariety } from "../policy/index.ts";
import {
  type GatewayServer,
  instructionsOf,
  toMember,
  LocalServers,
  type SharedUpstreams,
  UpstreamFactory,
  type UpstreamFactoryOptions,
} from "../servers/index.ts";
import type { Health, Upstream, UpstreamEvent } from "../upstream/index.ts";
import { createFaultLog, createHealthLog } from "./server-log.ts";

interface FleetOptions extends UpstreamFactoryOptions {
  readonly catalog: Catalog;
  /** Providers of this process, by name. */
  readonly local: { readonly [name: string]: Provider };
  /** Called for each change that callers must be notified of. */
  readonly onChange: (change: Change) => void;
  /** Called when a server was listed, also if its lists are the same as before. */
  readonly onListed: () => void;
  /** Servers that other gateways of this process have, too. */
  readonly shared?: SharedUpstreams | undefined;
  /** Called for each change of a server: its health, or its lists. */
  readonly onServer?: OnServer | undefined;
  /** Where callers connect their own accounts; undefined where all callers are one person. */
  readonly links?: Links | undefined;
}

/** Called for each change of a server; `health` is that of the connection for everyone, if that changed. */
export type OnServer = (server: string, health?: Health) => void;

/** How long calls of a server that was removed or changed may go on. */
export const retireMs = 10_000;

/** The servers behind a gateway, as the config has them at the moment. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #local: LocalServers;
  /** The servers at which each caller has an account of its own. */
  readonly perCaller: PerCallerServers;
  /** All of them, in the order of the config. */
  #servers: readonly GatewayServer[] = [];
  #named: ReadonlyMap<string, GatewayServer> = new Map();
  #variety: ListVariety = { owners: "none", hasVariants: false, opened: [] };
  /** Servers of an earlier config whose calls may finish. */
  readonly #retiring = new Map<Upstream, Promise<void>>();
  readonly factory: UpstreamFactory;
  readonly #report: ReturnType<typeof createReport>;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { local, catalog, log, onChange } = options;
    const providers = { ...local };
    this.#local = new LocalServers({ providers, catalog, log, onChange });
    this.factory = new UpstreamFactory(options);
    this.perCaller = new PerCallerServers({ ...options, links: options.links, factory: this.factory });
    this.#report = createReport(options);
  }

  /** Every server, in the order of the config. */
  get servers(): readonly GatewayServer[] {
    return this.#servers;
  }

  /** The facts about a caller that the lists of these servers depend on. */
  get variety(): ListVariety {
    return this.#variety;
  }

  /** A server by its name. */
  serverNamed(name: string): GatewayServer | undefined {
    return this.#named.get(name);
  }

  /** The servers that are not of this process, by name. Other gateways may have them too: what this one's config says is in {@link servers}. */
  get upstreams(): ReadonlyMap<string, Upstream> {
    return this.#upstreams;
  }

  /**
   * Replaces the servers: new and changed ones are started, removed ones may finish their calls, the others are not touched. Lists wait up
   * to `firstListMs` for started servers of which nothing is known. Resolves when each of them is listed or has failed, at the latest after
   * that time. `renewed` names a server that is restarted though its config is the same.
   */
  async setServers(
    configured: readonly ServerConfig[],
    naming: Naming,
    firstListMs: () => number,
    renewed?: string,
  ): Promise<void> {
    const { catalog, clock, memory, pins, shared } = this.#options;
    const servers = [...this.#local.missingIn(configured), ...configured];
    const isNotLocal = (server: ServerConfig): boolean => !this.#local.has(server.name);
    const remote = servers.filter((server) => isNotLocal(server) && !this.perCaller.has(server));
    const runsTheSame = (one: ServerConfig | undefined, other: ServerConfig): boolean =>
      other.name !== renewed && one !== undefined && toProcessKey(one) === toProcessKey(other);
    this.perCaller.update(servers.filter(isNotLocal), naming, runsTheSame);
    const before = new Map(this.#upstreams);
    const goesOn = (server: ServerConfig): boolean => runsTheSame(before.get(server.name)?.config, server);
    const added = remote
      .filter((server) => !goesOn(server))
      .map((server) => this.#create(server, firstListMs));
    const running = new Map([...before, ...added.map((upstream) => [upstream.name, upstream] as const)]);
    for (const server of remote) {
      const upstream = running.get(server.name);
      if (upstream === undefined || upstream.config === server) continue;
      upstream.config = server;
      shared?.setKey(upstream, this.#keyOf(server));
    }
    this.factory.slots.begin();
    const kept = new Set(remote.map(({ name }) => name));
    const gone = [...before.values()].filter(({ name }) => !kept.has(name));
    const replaced = added.flatMap(({ name }) => before.get(name) ?? []);
    for (const { name } of gone) this.#upstreams.delete(name);
    for (const upstream of added) this.#upstreams.set(upstream.name, upstream);
    this.#servers = servers.flatMap((server) => {
      const upstream = this.#upstreams.get(server.name);
      if (upstream !== undefined) return toServer(upstream, server);
      return this.perCaller.get(server.name) ?? this.#local.get(server) ?? [];
    });
    this.#named = new Map(this.#servers.map((server) => [server.config.name, server]));
    const isOwn =
      this.perCaller.all.length > 0 || this.#servers.some(({ config }) => config.sharing === "perSession");
    const isHttp = this.#servers.some(({ config }) => config.launch.kind === "http");
    this.#variety = {
      owners: isOwn ? "all" : isHttp ? "askable" : "none",
      hasVariants: isOwn || isHttp,
      opened: [...new Set(this.#servers.flatMap(({ config }) => Object.keys(config.extensions)))],
    };
    catalog.members = this.#servers.map((server) => toMember(server, naming, pins()));
    for (const upstream of this.#upstreams.values())
      pins()?.logUnapproved(upstream.name, upstream.listedFor(), instructionsOf(upstream));
    for (const upstream of [...replaced, ...gone]) {
      if (shared?.leave(upstream, this) === false) continue;
      const retired = upstream.retire(retireMs).finally(() => this.#retiring.delete(upstream));
      this.#retiring.set(upstream, retired);
    }
    const eager = added.filter(({ config }) => config.start === "eager" || config.name === renewed);
    const isAwaited = (upstream: Upstream): boolean => upstream.isAwaited || upstream.name === renewed;
    // A server that was waited for without success before is not waited for again. It starts first, so that its tools come soon.
    const unawaited = eager.filter((upstream) => !isAwaited(upstream));
    const awaited = eager.filter(isAwaited);
    // With every list remembered, the first list waits for no server. Servers that start should not slow it down either.
    if (before.size === 0 && eager.every(({ isListed }) => isListed)) this.factory.slots.startGently();
    for (const upstream of unawaited) void upstream.start();
    await waitFor(Promise.all(awaited.map((upstream) => upstream.start())), { ms: firstListMs(), clock });
    for (const upstream of awaited)
      if (!upstream.isListed && upstream.health.kind !== "stopped") memory?.miss(upstream.config);
  }

  /** Resolves when what was replaced or removed has ended. */
  async untilRetired(): Promise<void> {
    await Promise.all(this.#retiring.values());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#local[Symbol.dispose]();
    const { shared } = this.#options;
    const own = [...this.#upstreams.values()].filter((upstream) => shared?.leave(upstream, this) !== false);
    const all = [...own, ...this.#retiring.keys()];
    await Promise.all([...all, this.perCaller].map((each) => each[Symbol.asyncDispose]()));
    await Promise.all(this.#retiring.values());
    await this.#options.memory?.flush();
  }

  /** What servers of two gateways must have in common to be one: drafts are declared to the server. */
  #keyOf(config: ServerConfig): string {
    return `${toUpstreamKey(config)}${this.#options.drafts?.join(" ") ?? ""}`;
  }

  #create(config: ServerConfig, firstListMs: () => number): Upstream {
    const { shared } = this.#options;
    const predecessor = this.#upstreams.get(config.name);
    // Events of a server that was replaced are dropped.
    const listen = (upstream: Upstream, event: UpstreamEvent): void => {
      if (this.#upstreams.get(config.name) === upstream) this.#report(upstream, event);
    };
    const create = (report: typeof listen): Upstream =>
      this.factory.create({ config, firstListMs, predecessor, report });
    if (shared === undefined) return create(listen);
    return shared.take(this.#keyOf(config), { user: this, listen }, create, predecessor);
  }
}

/** A server as this gateway's config has it: the same upstream may have another prefix, or other rules, in another gateway. */
function toServer(upstream: Upstream, config: ServerConfig): GatewayServer {
  return {
    config,
    provider: upstream,
    get health() {
      return upstream.health;
    },
    get isListed() {
      return upstream.isListed;
    },
    get isSettled() {
      return upstream.isSettled;
    },
    get connections() {
      return upstream.connections;
    },
    get words() {
      return upstream.words;
    },
    listedFor: (caller) => upstream.listedFor(caller),
    beginListing: (caller, part) => upstream.beginListing(caller, part),
    untilListed: (part, context) => upstream.untilListed(part, context),
    unavailable: () => upstream.unavailable(),
  };
}

/** Tells the catalog, the memory, the log and callers what changed at a server. */
function createReport({ catalog, memory, log, clock, pins, ...listeners }: FleetOptions) {
  const { onChange, onListed, onServer } = listeners;
  const logFaults = createFaultLog(log);
  const logHealth = createHealthLog(log, clock);
  return (upstream: Upstream, { pooled, ...change }: UpstreamEvent): void => {
    const { name } = upstream;
    const isForAll = pooled === upstream.pool.everyone;
    // Lists mention only the health of the connection for everyone: that of others changes with each session that comes and goes.
    if (change.kind === "listed" || isForAll) catalog.outdated();
    pins()?.logUnapproved(name, pooled.lists.listed, isForAll ? instructionsOf(upstream) : undefined);
    onServer?.(name, change.kind === "health" && isForAll ? change.health : undefined);
    const hasFailed = change.kind === "health" && isForAll && change.health.kind === "down";
    if (hasFailed && !upstream.isListed) memory?.miss(upstream.config);
    if (change.kind === "health")
      return logHealth(isForAll ? name : `${name} (${pooled.reason})`, change.health);
    if (isForAll) {
      const listed = upstream.listedFor();
      logFaults(name, listed.faults);
      memory?.keep(upstream.config, listed);
    }
    for (const part of change.changed) onChange({ part, origin: name, isFor: pooled.isFor });
    if (isForAll) onListed();
  };
}
