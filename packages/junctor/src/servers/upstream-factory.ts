import { availableParallelism } from "node:os";
import { type Authorizer, createGuardian } from "@junctor/client";
import type { CredentialEvent } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { createMemoryTasks } from "@junctor/server";
import type { MemoryTasks } from "@junctor/server/internal";
import { Parking } from "../bridge/index.ts";
import type { Cluster } from "../cluster/index.ts";
import { type GatewayConfig, placementOf, type ServerConfig } from "../config/index.ts";
import type { Logins } from "../credentials/index.ts";
import { type Pins, withPreparedLists } from "../lock/index.ts";
import { type GatewayLog, type HideSecrets, ServerWords } from "../log/index.ts";
import {
  createOpenServer,
  type DescribeFailure,
  StartSlots,
  Upstream,
  type UpstreamEvent,
} from "../upstream/index.ts";
import type { ListMemory } from "./list-memory.ts";

export interface UpstreamFactoryOptions {
  readonly parking: Parking;
  readonly log: GatewayLog;
  /** Takes the secrets of the config out of a text. */
  readonly hide: HideSecrets;
  /** How a failure is described to callers; by its reason alone when left out. */
  readonly describeFailure?: DescribeFailure | undefined;
  readonly clock: Clock;
  /** Remembers what servers listed, between runs. */
  readonly memory?: ListMemory | undefined;
  /** The definitions that were approved, of the config at the moment; undefined when none need approval. */
  readonly pins: () => Pins | undefined;
  /** The credentials of servers that want OAuth. */
  readonly logins: Logins;
  /** Called for each event of a credential. */
  readonly onCredential?: ((server: string, event: CredentialEvent) => void) | undefined;
  /** The other processes of the gateway, if there are any. */
  readonly cluster?: Cluster | undefined;
  /** Drafts of the protocol that the config tries. */
  readonly drafts?: GatewayConfig["drafts"] | undefined;
  /** How many processes start at the same time, read when one starts; by the cores of this machine when undefined. */
  readonly maxStarts?: (() => number | undefined) | undefined;
  /** Open until no child is left; see `GuardianOptions`. */
  readonly heldFd?: number | undefined;
}

interface NewUpstream {
  readonly config: ServerConfig;
  readonly firstListMs: () => number;
  readonly predecessor: Upstream | undefined;
  readonly report: (upstream: Upstream, event: UpstreamEvent) => void;
  /** Gives requests the token of one caller. Then nothing that is remembered of the server is shown. */
  readonly authorizer?: Authorizer;
}

/** Makes upstreams. They share the process that ends their children, the slots for starts, and the memory of lists. */
export class UpstreamFactory {
  readonly #options: UpstreamFactoryOptions;
  readonly #guardian: ReturnType<typeof createGuardian>;
  readonly slots: StartSlots;
  readonly #hosted: MemoryTasks;

  constructor(options: UpstreamFactoryOptions) {
    const { clock, log, heldFd } = options;
    const usualStarts = Math.max(4, 2 * availableParallelism());
    this.#options = options;
    this.#guardian = createGuardian({ clock, heldFd, onWarning: (text) => log.warn({}, text) });
    this.slots = new StartSlots({ clock, maxStarts: () => options.maxStarts?.() ?? usualStarts });
    this.#hosted = createMemoryTasks({ clock });
  }

  create({ config, firstListMs, predecessor, report, authorizer }: NewUpstream): Upstream {
    const { parking, clock, hide, describeFailure, log, memory, pins, logins, onCredential, cluster } =
      this.#options;
    const words = new ServerWords();
    const openHere = createOpenServer(config, {
      log,
      clock,
      guardian: this.#guardian,
      words,
      logins,
      drafts: this.#options.drafts,
      authorizer,
      onCredential,
    });
    // What one caller's account lists is not what others see.
    const lists = authorizer === undefined ? memory : undefined;
    const remembered = lists?.recall(config);
    const isPlaced = cluster !== undefined && isOneInAll(config);
    const open = isPlaced ? cluster.placement.place(config.name, openHere) : openHere;
    const upstream: Upstream = new Upstream({
      config,
      firstListMs,
      slots: this.slots,
      hosted: this.#hosted,
      remembered,
      isAwaited: remembered !== undefined || lists?.wasMissed(config) !== true,
      onAwaited: () => lists?.miss(config),
      onAsked: () => lists?.noteAsked(config),
      connect: withPreparedLists(config.name, open, pins),
      parking,
      clock,
      hide: (text) => hide(text, config.name),
      describeFailure: describeFailure && ((failure) => describeFailure(failure, config.name)),
      predecessor,
      isPlaced,
      words,
      elsewhere: cluster && { here: cluster.membership.id, clientAt: cluster.clientAt },
      report: (event) => report(upstream, event),
    });
    return upstream;
  }
}

/** Whether a server is one process for all replicas of the gateway. */
function isOneInAll(config: ServerConfig): boolean {
  return placementOf(config) === "single" && config.sharing === "shared" && config.instances === 1;
}

/** Called for everything that happens on the connections of a server. */
type Listen = (upstream: Upstream, event: UpstreamEvent) => void;

/**
 * Servers that several gateways of one process have in common: those with the same launch and settings are one, with one process.
 * It ends when the last gateway gives it up.
 */
export class SharedUpstreams implements AsyncDisposable {
  /** Their parked calls: a gateway that ends does not give up those of another. */
  readonly parking: Parking;
  /** The upstream that new users of a key get. */
  readonly #current = new Map<string, Upstream>();
  /** The upstreams that have users, also those that a restart replaced. */
  readonly #used = new Map<
    Upstream,
    {
      key: string;
      /** The fleets that have it. */
      readonly users: Map<object, Listen>;
    }
  >();

  constructor(clock: Clock) {
    this.parking = new Parking({ clock });
  }

  /**
   * The server that runs as `key` says, for a fleet: the one there is, else the one that `create` makes. One that the fleet
   * `replaces` is not given again, so the first fleet that restarts a server makes the next one, and the others get that.
   */
  take(
    key: string,
    {
      user,
      listen,
    }: {
      readonly user: object;
      readonly listen: Listen;
    },
    create: (listen: Listen) => Upstream,
    replaces?: Upstream,
  ): Upstream {
    const known = this.#current.get(key);
    if (known !== undefined && known !== replaces) {
      this.#used.get(known)?.users.set(user, listen);
      return known;
    }
    const users = new Map([[user, listen]]);
    const upstream = create((...event) => users.forEach((each) => each(...event)));
    this.#current.set(key, upstream);
    this.#used.set(upstream, { key, users });
    return upstream;
  }

  /** The config of a server was edited and it goes on: from now on it is given for this key. */
  setKey(upstream: Upstream, key: string): void {
    const shared = this.#used.get(upstream);
    if (shared === undefined || shared.key === key) return;
    if (this.#current.get(shared.key) === upstream) this.#current.delete(shared.key);
    shared.key = key;
    if (!this.#current.has(key)) this.#current.set(key, upstream);
  }

  /** A fleet no longer uses a server. True when no other fleet does. */
  leave(upstream: Upstream, user: object): boolean {
    const shared = this.#used.get(upstream);
    if (shared === undefined) return true;
    shared.users.delete(user);
    if (shared.users.size > 0) return false;
    this.#used.delete(upstream);
    if (this.#current.get(shared.key) === upstream) this.#current.delete(shared.key);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.parking.close();
  }
}
