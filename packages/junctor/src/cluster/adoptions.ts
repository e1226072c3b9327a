import type { LocalSessions } from "@junctor/server/internal";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import type { ClusterStore } from "./store.ts";

/** Where a session is served. `unknown`: the store or the replica cannot be asked now. */
export type SessionPlace = "here" | "ended" | "unknown" | Replica;

/** Most sessions of dead replicas that this one adopts; the lease of the oldest is given back beyond that. */
const maxAdopted = 16_384;
/** Leases that are asked for at a time. */
const maxClaims = 500;

/** The last 32 characters identify a session: they hold the tag of the seal, or are random. */
export function endOf(token: string): string {
  return token.slice(-32);
}

/** The sessions whose leases this replica has, by the ends of their ids. */
export class Adoptions {
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
