import { availableParallelism } from "node:os";
import { type Clock, waitFor } from "../async/clock.ts";
import type { Client } from "../client/client.ts";
import type { ConnectOptions } from "../client/connect.ts";
import type { Catalog } from "../tools/compose/catalog.ts";
import type { Naming } from "../tools/compose/namespace.ts";
import type { Change, Provider } from "../tools/provider.ts";
import { createGuardian } from "../transports/guardian.ts";
import type { CallerKinds } from "./access.ts";
import type { Parking } from "./bridge/parking.ts";
import type { ServerConfig } from "./config/config.ts";
import {
  createLocalServer,
  type GatewayServer,
  instructionsOf,
  toLocalConfig,
  toMember,
} from "./gateway-server.ts";
import type { ListMemory } from "./list-memory.ts";
import type { Pins } from "./lock/pins.ts";
import { createFaultLog } from "./log-faults.ts";
import { createHealthLog, type HealthLog } from "./log-health.ts";
import type { GatewayLog } from "./log.ts";
import { createOpenServer } from "./open-server.ts";
import { ServerWords, type Words } from "./server-words.ts";
import { StartSlots } from "./upstream/start-slots.ts";
import { Upstream, type UpstreamChange } from "./upstream/upstream.ts";

interface FleetOptions {
  readonly catalog: Catalog;
  readonly parking: Parking;
  readonly kinds: CallerKinds;
  /** Providers of this process, by name. */
  readonly local: { readonly [name: string]: Provider };
  readonly log: GatewayLog;
  /** Takes the secrets of the config out of a text. */
  readonly hide: (text: string) => string;
  readonly clock: Clock;
  /** Remembers what servers listed, between runs. */
  readonly memory?: ListMemory | undefined;
  /** The definitions that were approved, of the config at the moment; undefined when none must be. */
  readonly pins: () => Pins | undefined;
  /** How many processes start at the same time; by the cores of this machine. */
  readonly maxStarts?: number | undefined;
  /** Told what is news to callers. */
  readonly onChange: (change: Change) => void;
  /** Told that a server was listed, whether or not that is news. */
  readonly onListed: () => void;
}

/** How long calls of a server that was removed or changed may go on. */
const retireMs = 10_000;

/** The servers behind a gateway, as the config has them at the moment. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #local = new Map<string, GatewayServer>();
  /** Stop listening to the providers of this process. */
  readonly #stops = new Set<() => void>();
  /** All of them, in the order of the config. */
  #servers: readonly GatewayServer[] = [];
  /** Those of an earlier config whose calls are let finish. */
  readonly #retiring = new Map<Upstream, Promise<void>>();
  readonly #guardian: ReturnType<typeof createGuardian>;
  readonly #slots: StartSlots;
  readonly #words = new Map<string, ServerWords>();
  readonly #logFaults: ReturnType<typeof createFaultLog>;
  readonly #logHealth: HealthLog;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#logFaults = createFaultLog(log);
    this.#logHealth = createHealthLog(log, clock);
    this.#guardian = createGuardian({ clock, onWarning: (text) => log.warn({}, text) });
    const { maxStarts = Math.max(4, 2 * availableParallelism()) } = options;
    this.#slots = new StartSlots({ clock, maxStarts });
  }

  /** Every server, in the order of the config. */
  get servers(): readonly GatewayServer[] {
    return this.#servers;
  }

  /** The servers that are not of this process, by name. */
  get upstreams(): ReadonlyMap<string, Upstream> {
    return this.#upstreams;
  }

  /**
   * Has these servers from now on: those that are new or changed are started, those that are gone are let finish their
   * calls, the others are not touched. Lists wait up to `firstListMs` for those that were started and of which nothing is
   * known. Resolves when each of them is listed or has failed, at the latest after that time.
   */
  async have(configured: readonly ServerConfig[], naming: Naming, firstListMs: number): Promise<void> {
    const { catalog, clock, local, pins } = this.#options;
    const missing = Object.keys(local).filter((name) => !configured.some((server) => server.name === name));
    const servers = [...missing.flatMap(toLocalConfig), ...configured];
    const remote = servers.filter(({ name }) => !this.#isLocal(name));
    const before = new Map(this.#upstreams);
    const added = remote
      .filter((server) => !runsTheSame(before.get(server.name)?.config, server))
      .map((server) => this.#create(server, firstListMs));
    for (const server of remote) {
      const running = before.get(server.name);
      if (running !== undefined && runsTheSame(running.config, server)) running.config = server;
    }
    const kept = new Set(remote.map(({ name }) => name));
    const gone = [...before.values()].filter(({ name }) => !kept.has(name));
    const replaced = added.flatMap(({ name }) => before.get(name) ?? []);
    for (const { name } of gone) {
      this.#upstreams.delete(name);
      this.#words.delete(name);
    }
    for (const upstream of added) this.#upstreams.set(upstream.name, upstream);
    this.#servers = servers.flatMap((server): readonly GatewayServer[] => {
      const upstream = this.#upstreams.get(server.name);
      return upstream === undefined ? this.#haveLocal(server) : [upstream];
    });
    const isOwn = this.#servers.some(({ config }) => config.sharing === "perSession");
    const isHttp = this.#servers.some(({ config }) => config.launch.kind === "http");
    this.#options.kinds.owners = isOwn ? "all" : isHttp ? "askable" : "none";
    catalog.members = this.#servers.map((server) => toMember(server, naming, pins()));
    for (const upstream of this.#upstreams.values())
      pins()?.look(upstream.name, upstream.listedFor(), instructionsOf(upstream));
    for (const upstream of [...replaced, ...gone]) this.#retire(upstream);
    const eager = added.filter(({ config }) => config.start === "eager");
    const started = Promise.all(eager.map((upstream) => upstream.start()));
    await waitFor(started, { ms: firstListMs, clock });
  }

  /** What the process of a server wrote besides messages; undefined for one that is no process. */
  wordsOf(name: string): Words | undefined {
    return this.#words.get(name);
  }

  /** Resolves when what was replaced or removed has ended. */
  async untilRetired(): Promise<void> {
    await Promise.all(this.#retiring.values());
  }

  /** A legacy conversation is over. */
  sessionEnded(session: object): void {
    for (const { pool } of this.#upstreams.values()) pool.sessionEnded(session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) stop();
    const all = [...this.#upstreams.values(), ...this.#retiring.keys()];
    await Promise.all(all.map((upstream) => upstream[Symbol.asyncDispose]()));
    await Promise.all(this.#retiring.values());
    await this.#options.memory?.flush();
  }

  #create(config: ServerConfig, firstListMs: number): Upstream {
    const { parking, clock, hide, memory } = this.#options;
    const upstream: Upstream = new Upstream({
      config,
      firstListMs,
      slots: this.#slots,
      remembered: memory?.recall(config),
      connect: this.#openerOf(config),
      parking,
      clock,
      hide,
      predecessor: this.#upstreams.get(config.name),
      onChange: (change) => {
        if (this.#upstreams.get(config.name) === upstream) this.#heard(config.name, change);
      },
    });
    return upstream;
  }

  #isLocal(name: string): boolean {
    return Object.hasOwn(this.#options.local, name);
  }

  /** A provider of this process that the config may name; it is made anew when the config says something else of it. */
  #haveLocal(config: ServerConfig): readonly GatewayServer[] {
    const { local, log, catalog, onChange } = this.#options;
    const provider = local[config.name];
    const known = this.#local.get(config.name);
    if (provider === undefined || JSON.stringify(known?.config) === JSON.stringify(config))
      return known === undefined ? [] : [known];
    const server = createLocalServer(config, provider, {
      onChanged: () => catalog.outdated(),
      onListError: (name, error) =>
        log.warn({ server: name, error: String(error) }, `${name} cannot be listed`),
    });
    if (known === undefined) {
      const tell = (inner: Change): void => onChange({ ...inner, origin: config.name, inner });
      const stop = provider.onChange?.(tell);
      if (stop !== undefined) this.#stops.add(stop);
    }
    this.#local.set(config.name, server);
    return [server];
  }

  #openerOf(config: ServerConfig): (given: ConnectOptions) => Promise<Client> {
    const { log, clock } = this.#options;
    const words = new ServerWords();
    this.#words.set(config.name, words);
    return createOpenServer(config, { log, clock, guardian: this.#guardian, words });
  }

  #heard(name: string, { pooled, ...change }: UpstreamChange): void {
    const { catalog, memory, onChange, onListed } = this.#options;
    const upstream = this.#upstreams.get(name);
    if (upstream === undefined) return;
    const isForAll = pooled === upstream.pool.everyone;
    const from = { origin: name, line: pooled };
    if (change.kind === "resource") return onChange({ ...change, ...from });
    // Lists tell of the health of the line for everyone. That of other lines changes with each session that comes and goes.
    if (change.kind === "listed" || isForAll) catalog.outdated();
    this.#options.pins()?.look(name, pooled.lists.listed, isForAll ? instructionsOf(upstream) : undefined);
    if (change.kind === "health")
      return this.#logHealth(isForAll ? name : `${name} (${pooled.reason})`, change.health);
    if (isForAll) {
      const listed = upstream.listedFor();
      this.#logFaults(name, listed.faults);
      memory?.keep(upstream.config, listed);
    }
    for (const kind of change.changed) onChange({ kind, ...from });
    if (isForAll) onListed();
  }

  #retire(upstream: Upstream): void {
    const retired = upstream.retire(retireMs).finally(() => this.#retiring.delete(upstream));
    this.#retiring.set(upstream, retired);
  }
}

/** Whether a server goes on as it is: what concerns only how its things are listed needs no other process. */
function runsTheSame(one: ServerConfig | undefined, other: ServerConfig): boolean {
  return one !== undefined && JSON.stringify(toRun(one)) === JSON.stringify(toRun(other));
}

/** Configs are plain data, written in the same order each time. */
function toRun(server: ServerConfig): object {
  const inLists = { prefix: undefined, allow: undefined, deny: undefined, tools: undefined };
  return { ...server, ...inLists, onlyTools: undefined, withoutTools: undefined, audit: undefined };
}
