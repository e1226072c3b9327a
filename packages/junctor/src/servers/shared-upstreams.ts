import type { Clock } from "@junctor/core/async";
import { Parking } from "../bridge/index.ts";
import type { Upstream, UpstreamEvent } from "../upstream/index.ts";

/** Called for everything that happens on the connections of a server. */
type Listen = (upstream: Upstream, event: UpstreamEvent) => void;

/** A fleet that has a server. */
interface UpstreamUser {
  readonly user: object;
  readonly listen: Listen;
}

interface SharedUpstream {
  key: string;
  /** The fleets that have it. */
  readonly users: Map<object, Listen>;
}

/**
 * Servers that several gateways of one process have in common: those with the same launch and settings are one, with one process.
 * It ends when the last gateway gives it up.
 */
export class SharedUpstreams implements AsyncDisposable {
  /** Their calls that wait for answers: a gateway that ends gives up none of another's. */
  readonly parking: Parking;
  /** The one that new users of a key get. */
  readonly #current = new Map<string, Upstream>();
  /** Those that have users, also the ones that a restart replaced. */
  readonly #used = new Map<Upstream, SharedUpstream>();

  constructor(clock: Clock) {
    this.parking = new Parking({ clock });
  }

  /**
   * The server that runs as `key` says, for a fleet: the one there is, else the one that `create` makes. One that the fleet
   * `replaces` is not given again, so the first fleet that restarts a server makes the next one, and the others get that.
   */
  take(
    key: string,
    { user, listen }: UpstreamUser,
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

  /** A fleet has no use for a server any more. True when it was the last that had. */
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
