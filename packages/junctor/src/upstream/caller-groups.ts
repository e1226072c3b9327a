import {
  type Declared,
  nothingDeclared,
  toDeclared,
  type Relayable,
  everythingRelayable,
  newestModernRevision,
  toRelayable,
} from "@junctor/core/mcp";
import type { CallerInfo } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";

/** Callers that share a connection to a server, and so the state that the server keeps on it. */
export interface CallerGroup {
  /** A legacy session, the name of a caller, or the number of a process; undefined for all callers. */
  readonly owner: object | string | number | undefined;
  /** Whose share of the connections it counts towards: the name of the caller, also of a session; without names the owner. */
  readonly holder: CallerGroup["owner"];
  /** The era that is tried first. */
  readonly era: "modern" | "legacy" | undefined;
  /** The capabilities that are declared to a legacy server on behalf of the callers. */
  readonly declares: Relayable;
  /** The extensions that are declared on their behalf: to a legacy server once, to a modern one for its lists. */
  readonly extensions: Declared;
}

const nothingRelayable = toRelayable({}, newestModernRevision);
const allRelayable = toRelayable(everythingRelayable, newestModernRevision);

/** Facts about the server, from the connection for everyone once that is up. */
interface ServerEras {
  /** The era that connection speaks. */
  readonly spoken: "modern" | "legacy";
  /** Whether the server turned out not to know the legacy era. */
  readonly isModernOnly: boolean;
}

const shared = { owner: undefined, holder: undefined, extensions: nothingDeclared };

/** The most groups that are remembered for one owner: what callers declare may differ without end. */
const maxCallerGroups = 256;

/** Callers without a name and without a session are one owner. */
const unnamed = "";

/**
 * Decides which callers share a connection. A process is shared by all callers unless the config says otherwise. All
 * capabilities that the gateway can relay are declared to it, and no extension, because those differ from caller to caller. A further
 * conversation over HTTP is cheap, so there the gateway speaks each caller's era and declares exactly the caller's capabilities, and a
 * caller that can be asked has a conversation of its own.
 */
export class CallerGroups {
  /** The group of the connection that is always kept up. */
  readonly everyone: CallerGroup;
  readonly #config: Pick<ServerConfig, "launch" | "sharing" | "era" | "instances">;
  /** The ids of extensions that the config opened for the server. */
  readonly #opened: readonly string[];
  /** Equal groups are the same object. */
  readonly #named = new Map<string | number | undefined, CallerGroup[]>();
  readonly #ofSessions = new WeakMap<object, CallerGroup[]>();
  #sessions = 0;
  readonly #instances = new WeakMap<object, number>();

  constructor(config: ServerConfig) {
    this.#config = config;
    this.#opened = Object.keys(config.extensions);
    this.everyone =
      config.launch.kind === "http"
        ? { ...shared, era: undefined, declares: nothingRelayable }
        : { ...shared, era: config.era, declares: allRelayable };
  }

  /** Whether every caller uses the connection for everyone, whatever its server speaks. */
  get isOne(): boolean {
    const { launch, sharing, instances } = this.#config;
    return launch.kind !== "http" && sharing === "shared" && instances === 1;
  }

  /** Whether callers have connections of their own. */
  get hasOwners(): boolean {
    return this.#config.sharing !== "shared";
  }

  /** The group of a caller. */
  of(caller: CallerInfo, eras: ServerEras | undefined): CallerGroup {
    const { launch, sharing } = this.#config;
    const relayable = toRelayable(caller.capabilities, caller.revision);
    const { isLegacy } = relayable;
    if (sharing === "shared" && launch.kind !== "http") return this.#instanceOf(caller);
    const extensions = toDeclared(caller.capabilities, this.#opened);
    const owner = ownerOf(caller);
    const holder = caller.caller ?? owner;
    if (sharing !== "shared") {
      // A modern request declares its caller's capabilities; a legacy process gets them once, at the handshake.
      const declares = launch.kind !== "http" && !isLegacy ? allRelayable : relayable;
      const era = isLegacy ? "legacy" : "modern";
      return this.#intern({ owner, era, declares, extensions, holder });
    }
    if (eras === undefined) return this.everyone;
    const isSpoken = eras.spoken === "modern" && (!isLegacy || eras.isModernOnly);
    // Questions may come outside of any call: only a conversation of its own tells which caller they are for.
    const isOwn = !isSpoken && relayable.key !== "";
    if (isOwn) return this.#intern({ owner, era: "legacy", declares: relayable, extensions, holder });
    const isEveryones = (isSpoken || eras.spoken === "legacy") && extensions.key === "";
    if (isEveryones) return this.everyone;
    const era = isSpoken ? "modern" : "legacy";
    const ofAll = extensions.key === "" ? undefined : caller.caller;
    return this.#intern({ owner: undefined, era, declares: nothingRelayable, extensions, holder: ofAll });
  }

  /** Each caller stays with one of several processes. */
  #instanceOf(caller: CallerInfo): CallerGroup {
    const { instances, era } = this.#config;
    if (instances === 1) return this.everyone;
    const number = this.#numberOf(ownerOf(caller)) % instances;
    if (number === 0) return this.everyone;
    return this.#intern({ ...shared, owner: number, holder: number, era, declares: allRelayable });
  }

  #numberOf(owner: object | string): number {
    if (typeof owner === "string")
      return Array.from(owner).reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 0);
    const known = this.#instances.get(owner) ?? this.#sessions++;
    this.#instances.set(owner, known);
    return known;
  }

  /** Equal groups are the same object; the first caller of one is its holder. */
  #intern(group: CallerGroup): CallerGroup {
    const { owner, era, declares, extensions } = group;
    const known = this.#listOf(owner);
    const same = known.find(
      (each) => each.era === era && each.declares === declares && each.extensions.key === extensions.key,
    );
    if (same !== undefined) return same;
    if (known.length >= maxCallerGroups) known.shift();
    known.push(group);
    return group;
  }

  #listOf(owner: CallerGroup["owner"]): CallerGroup[] {
    const known = typeof owner === "object" ? this.#ofSessions.get(owner) : this.#named.get(owner);
    if (known !== undefined) return known;
    const list: CallerGroup[] = [];
    if (typeof owner === "object") this.#ofSessions.set(owner, list);
    else this.#named.set(owner, list);
    return list;
  }
}

function ownerOf({ session, caller }: CallerInfo): object | string {
  return session ?? caller ?? unnamed;
}

/** Why a server has a connection, for people who look at its processes. */
export function describeGroup(group: CallerGroup, isEveryone: boolean): string {
  const { owner, era, declares, extensions } = group;
  if (isEveryone) return "for all callers";
  if (typeof owner === "number") return `process ${owner + 1} for all callers`;
  if (typeof owner === "object") return "for one session";
  if (owner !== undefined) return owner === unnamed ? "for callers without a name" : `for ${owner}`;
  const offered = [...Object.keys(declares.capabilities), ...Object.keys(extensions.extensions)];
  const offering = offered.length === 0 ? "offer nothing" : `offer ${offered.join(", ")}`;
  return `for ${era ?? "all"} callers that ${offering}`;
}
