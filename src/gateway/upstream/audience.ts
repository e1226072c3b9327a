import {
  type Relayable,
  everythingRelayable,
  newestModernRevision,
  toRelayable,
} from "../../mcp/revision.ts";
import type { Hearer } from "../../tools/provider.ts";
import type { ServerConfig } from "../config/config.ts";

/** For whom a line to a server is. Callers of one audience share the line, and so the state that the server keeps on it. */
export interface Audience {
  /** A legacy session, the name of a caller, or the number of a process; undefined for all callers. */
  readonly owner: object | string | number | undefined;
  /** Whose share of the lines it has: the name of the caller, also of a session; without names the owner. */
  readonly holder: Audience["owner"];
  /** The era that is tried first. */
  readonly era: "modern" | "legacy" | undefined;
  /** What is declared to a legacy server on behalf of the callers. */
  readonly declares: Relayable;
}

const nothing = toRelayable({}, newestModernRevision);
const everything = toRelayable(everythingRelayable, newestModernRevision);

/** What is known of the server on the line for everyone, once it is up. */
interface ServerEras {
  /** The era that line speaks. */
  readonly spoken: "modern" | "legacy";
  /** Whether the server turned out not to know the legacy era. */
  readonly isModernOnly: boolean;
}

const shared = { owner: undefined, holder: undefined };

/** Callers without a name and without a session are one owner. */
const unnamed = "";

/**
 * Decides which audience a caller belongs to. A process is shared by all callers unless the config says otherwise, and is
 * told everything that can be asked through us. A further conversation over HTTP is cheap, so there each caller's era is
 * spoken, exactly what the caller offers is declared, and a caller that can be asked has a conversation of its own.
 */
export class Audiences {
  /** The audience of the line that is always kept up. */
  readonly everyone: Audience;
  readonly #config: Pick<ServerConfig, "launch" | "sharing" | "era" | "instances">;
  /** Equal audiences are the same object. */
  readonly #named = new Map<string | number | undefined, Audience[]>();
  readonly #ofSessions = new WeakMap<object, Audience[]>();
  #sessions = 0;
  readonly #instances = new WeakMap<object, number>();

  constructor(config: ServerConfig) {
    this.#config = config;
    this.everyone =
      config.launch.kind === "http"
        ? { ...shared, era: undefined, declares: nothing }
        : { ...shared, era: config.era, declares: everything };
  }

  /** Whether every caller uses the line for everyone, whatever its server speaks. */
  get isOne(): boolean {
    const { launch, sharing, instances } = this.#config;
    return launch.kind === "command" && sharing === "shared" && instances === 1;
  }

  /** Whether callers have lines of their own. */
  get hasOwners(): boolean {
    return this.#config.sharing !== "shared";
  }

  /** The audience of a caller. */
  of(caller: Hearer, eras: ServerEras | undefined): Audience {
    const { launch, sharing } = this.#config;
    const relayable = toRelayable(caller.capabilities, caller.revision);
    const { isLegacy } = relayable;
    if (sharing !== "shared") {
      // A modern caller says with each request what it offers; a process is told once.
      const declares = launch.kind === "command" && !isLegacy ? everything : relayable;
      return this.#intern(ownerOf(caller), isLegacy ? "legacy" : "modern", declares, caller.caller);
    }
    if (launch.kind === "command") return this.#instanceOf(caller);
    if (eras === undefined || (eras.spoken === "modern" && (!isLegacy || eras.isModernOnly)))
      return this.everyone;
    // Where questions may come outside of any call, a conversation of its own says whose they are.
    const isOwn = relayable.key !== "";
    if (!isOwn && eras.spoken === "legacy") return this.everyone;
    if (!isOwn) return this.#intern(undefined, "legacy", relayable);
    return this.#intern(ownerOf(caller), "legacy", relayable, caller.caller);
  }

  /** Each caller stays with one of several processes. */
  #instanceOf(caller: Hearer): Audience {
    const { instances, era } = this.#config;
    if (instances === 1) return this.everyone;
    const number = this.#numberOf(ownerOf(caller)) % instances;
    return number === 0 ? this.everyone : this.#intern(number, era, everything);
  }

  #numberOf(owner: object | string): number {
    if (typeof owner === "string")
      return Array.from(owner).reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 0);
    const known = this.#instances.get(owner) ?? this.#sessions++;
    this.#instances.set(owner, known);
    return known;
  }

  #intern(
    owner: Audience["owner"],
    era: "modern" | "legacy",
    declares: Relayable,
    holder: Audience["owner"] = owner,
  ): Audience {
    const known = this.#listOf(owner);
    const same = known.find((each) => each.era === era && each.declares === declares);
    if (same !== undefined) return same;
    const audience: Audience = { owner, holder, era, declares };
    known.push(audience);
    return audience;
  }

  #listOf(owner: Audience["owner"]): Audience[] {
    const known = typeof owner === "object" ? this.#ofSessions.get(owner) : this.#named.get(owner);
    if (known !== undefined) return known;
    const list: Audience[] = [];
    if (typeof owner === "object") this.#ofSessions.set(owner, list);
    else this.#named.set(owner, list);
    return list;
  }
}

function ownerOf({ session, caller }: Hearer): object | string {
  return session ?? caller ?? unnamed;
}

/** Why a server has a line, for people who look at its processes. */
export function describeAudience({ owner, era, declares }: Audience, isEveryone: boolean): string {
  if (isEveryone) return "for all callers";
  if (typeof owner === "number") return `process ${owner + 1} for all callers`;
  if (typeof owner === "object") return "for one session";
  if (owner !== undefined) return owner === unnamed ? "for callers without a name" : `for ${owner}`;
  const offered = Object.keys(declares.capabilities);
  const offering = offered.length === 0 ? "offer nothing" : `offer ${offered.join(", ")}`;
  return `for ${era ?? "all"} callers that ${offering}`;
}
