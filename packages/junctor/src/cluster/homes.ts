import { type Clock, systemClock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { sessionHeader } from "@junctor/core/mcp";
import {
  addressOf,
  type Admission,
  type Elsewhere,
  type HttpRequest,
  type LocalService,
  type LocalSessions,
  refuse,
  type Routed,
  sendError,
  sessionNotFound,
} from "@junctor/server/internal";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import { openPipe, type Pipe, usePipe } from "./pipe.ts";
import type { ClusterStore } from "./store.ts";
import type { Trunk } from "./trunk.ts";

interface HomesOptions {
  readonly membership: Membership;
  readonly store: ClusterStore;
  readonly trunk: Trunk;
  readonly onWarning: (text: string) => void;
  /** How long ids of sessions are good. */
  readonly sessionTtlMs?: number;
  readonly clock?: Clock;
}

/** Pause before the leases of busy sessions are claimed again, after the store could not be asked. */
const proveAgainMs = 1000;

/** A request is passed on at most so often: to the home, and from there to the replica that adopted the session. */
const maxHops = 2;

/**
 * Finds where legacy sessions live. An id names the replica where its session began: its home. When that replica is dead, the one
 * that gets the next request adopts the session by taking its lease; the sealed id has all it needs.
 */
export class Homes implements Elsewhere {
  readonly #options: HomesOptions;
  readonly #adoptions: Adoptions;

  /**
   * Whether this replica lost its place among the others at some time. Another one may have adopted its sessions then, so each
   * must be proven by its lease, those that begin later included.
   */
  #wasOut = false;
  /** The sessions in the memory of this replica. */
  #local: LocalSessions = { busy: () => [], handOver: () => {} };
  #stopProving: () => void = () => {};

  constructor(options: HomesOptions) {
    this.#options = options;
    this.#adoptions = new Adoptions(options.membership, options.store);
    options.membership.onIn(() => this.doubt());
  }

  /**
   * This replica was out, so others may have adopted its sessions. From now on each session needs its lease before it is served.
   * Leases of busy sessions are taken now: their clients wait for an answer here, and may send their own answers to the other replica.
   */
  doubt(): void {
    this.#wasOut = true;
    this.#stopProving();
    const { membership, clock = systemClock } = this.#options;
    if (!membership.isIn) return;
    void this.#adoptions.proveBusy(this.#local).then((isWhole) => {
      if (!isWhole) this.#stopProving = clock.timer(proveAgainMs, () => this.doubt());
    });
  }

  watch(sessions: LocalSessions): void {
    this.#local = sessions;
  }

  get address(): string {
    return this.#options.membership.id;
  }

  isAbout(http: HttpRequest): boolean {
    const token = tokenOf(http);
    const home = token === undefined ? undefined : addressOf(token);
    const isProven = home === this.address && !(this.#wasOut && this.#options.membership.isIn);
    if (token === undefined || home === undefined || isProven) return false;
    // A stream of 2024-11-05 ends with its replica, and is where it began or nowhere.
    if (home === this.address && isSse(http)) return false;
    return !this.#adoptions.has(endOf(token));
  }

  pass(admission: Admission, local: LocalService): Routed {
    const { http, reply } = admission;
    const { maxBytes } = local;
    if (http.method !== "POST") return this.#pass(admission, local, undefined);
    return {
      maxBytes,
      take: (body) => {
        if (body === "aborted") return;
        if (body === "too_large") return refuse(reply, 413, `The body is larger than ${maxBytes} bytes`);
        return this.#pass(admission, local, body);
      },
    };
  }

  ended(token: string): void {
    const { store, onWarning, sessionTtlMs = 24 * 3_600_000 } = this.#options;
    const end = endOf(token);
    store
      .write(`gone:${end}`, "1", sessionTtlMs)
      .catch(() =>
        onWarning("A session that ended may be adopted by another replica: the store cannot be reached"),
      );
    this.left(token);
  }

  left(token: string): void {
    this.#adoptions.release(endOf(token));
  }

  async #pass(admission: Admission, local: LocalService, body: Uint8Array | undefined): Promise<void> {
    let way: Exclude<SessionPlace, Replica> | Pipe = "unknown";
    const isLost = (admission.piped?.hops ?? 0) >= maxHops;
    // A home that cannot be reached may have died since the last look at the store.
    for (const look of isLost ? [] : (["find", "findAnew"] as const)) {
      try {
        const place = await this.#find(admission.http, local, look);
        way = typeof place === "string" ? place : await openPipe(place, admission, body, this.#options);
        if (way !== "unknown") break;
      } catch {
        // The home is alive by its lease and cannot be reached now, or the store cannot be: the client may try again.
      }
    }
    if (way === "here") return serveHere(local, body);
    if (way === "ended") return sendError(admission.reply, 404, sessionNotFound());
    if (way !== "unknown") return usePipe(way, admission, body);
    const text = "The replica that has this session cannot be reached; nothing was sent, try again";
    const data = { code: "rpc.overloaded", delivery: "not_sent", retryAfterMs: 1000 };
    sendError(admission.reply, 503, new RpcError("rpc.overloaded", text, { data }), {
      headers: { "retry-after": "1" },
    });
  }

  /** Where a session lives now. Rejects when the store cannot be asked. */
  async #find(http: HttpRequest, local: LocalService, look: "find" | "findAnew"): Promise<SessionPlace> {
    const { membership } = this.#options;
    const token = tokenOf(http) ?? "";
    const home = addressOf(token) ?? "";
    const session = endOf(token);
    // While the store cannot be asked, no other replica can adopt a session that is ours.
    if (home === this.address)
      return this.#adoptions.has(session) ? "here" : this.#adoptions.claim(session).catch(() => "here");
    const alive = await membership[look](home);
    if (alive !== undefined) return alive;
    // A stream of 2024-11-05 ended with its replica. An id that was made up is no reason to take a lease.
    if (isSse(http)) return "here";
    return local.isGood() ? this.#adoptions.claim(session) : "ended";
  }
}

/** Whether a request belongs to a stream of 2024-11-05. */
function isSse(http: HttpRequest): boolean {
  return http.path === "/messages";
}

function tokenOf(http: HttpRequest): string | undefined {
  return isSse(http) ? (http.query.get("sessionId") ?? undefined) : http.header(sessionHeader);
}

async function serveHere(local: LocalService, body: Uint8Array | undefined): Promise<void> {
  const wanted = await local.serve();
  if (wanted !== undefined && body !== undefined) await wanted.take(body);
}

/** Where a session is served. `unknown`: the store or the replica cannot be asked now. */
type SessionPlace = "here" | "ended" | "unknown" | Replica;

/** Most sessions of dead replicas that this one adopts; the lease of the oldest is given back beyond that. */
const maxAdopted = 16_384;
/** Leases that are asked for at a time. */
const maxClaims = 500;

/** The last 32 characters identify a session: they hold the tag of the seal, or are random. */
export function endOf(token: string): string {
  return token.slice(-32);
}

/** The sessions whose leases this replica has, by the ends of their ids. */
class Adoptions {
  readonly #membership: Membership;
  readonly #store: ClusterStore;
  /** Oldest first. */
  readonly #adopted = new Map<string, HeldLease>();
  /** Those that it is about to adopt. */
  readonly #adopting = new Map<string, Promise<SessionPlace>>();

  constructor(membership: Membership, store: ClusterStore) {
    this.#membership = membership;
    this.#store = store;
  }

  has(session: string): boolean {
    return this.#adopted.has(session);
  }

  /** Takes the lease of a session. All requests of a session that come at once wait for one claim. */
  claim(session: string): Promise<SessionPlace> {
    const known = this.#adopting.get(session);
    if (known !== undefined) return known;
    const adopting = this.#adopt(session).finally(() => this.#adopting.delete(session));
    this.#adopting.set(session, adopting);
    return adopting;
  }

  release(session: string): void {
    const lease = this.#adopted.get(session);
    this.#adopted.delete(session);
    void lease?.release();
  }

  /**
   * Takes the leases of all busy sessions here. Where another replica has the lease, the calls of the session end here. False if
   * the store could not be asked for some.
   */
  async proveBusy(local: LocalSessions): Promise<boolean> {
    const tokens = local.busy().filter((token) => !this.has(endOf(token)));
    let isWhole = true;
    for (let from = 0; from < tokens.length; from += maxClaims) {
      const claimed = tokens.slice(from, from + maxClaims).map(async (token) => {
        const place = await this.claim(endOf(token)).catch(() => "unknown" as const);
        if (place === "unknown") isWhole = false;
        else if (place !== "here") local.handOver(token);
        return token;
      });
      await Promise.all(claimed);
    }
    // The lease of a session that left meanwhile would be kept for nothing.
    const busy = new Set(local.busy());
    for (const token of tokens) if (!busy.has(token)) this.release(endOf(token));
    return isWhole;
  }

  /** Takes over a session whose home is dead, unless another replica has done so or it was deleted. */
  async #adopt(session: string): Promise<SessionPlace> {
    if ((await this.#store.read(`gone:${session}`)) !== undefined) return "ended";
    const lease = await this.#membership.hold(`home:${session}`, () => this.#adopted.delete(session));
    if (!("release" in lease)) return (await this.#membership.findAnew(lease.holder)) ?? "unknown";
    this.#adopted.set(session, lease);
    const [oldest] = this.#adopted.keys();
    if (this.#adopted.size > maxAdopted && oldest !== undefined) this.release(oldest);
    return "here";
  }
}
