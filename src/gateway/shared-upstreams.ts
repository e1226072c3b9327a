import type { Clock } from "../async/clock.ts";
import { Parking } from "./bridge/parking.ts";
import type { Upstream, UpstreamChange } from "./upstream/upstream.ts";

/** Called for each change of a server. */
type Listen = (upstream: Upstream, change: UpstreamChange) => void;

/** A fleet that has a server. */
interface UpstreamUser {
  readonly user: object;
  readonly listen: Listen;
}

interface SharedUpstream {
  readonly upstream: Upstream;
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
  readonly #known = new Map<string, SharedUpstream>();

  constructor(clock: Clock) {
    this.parking = new Parking({ clock });
  }

  /** The server that runs as `key` says, for a fleet: the one there is, else the one that `create` makes. */
  take(key: string, { user, listen }: UpstreamUser, create: (listen: Listen) => Upstream): Upstream {
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.users.set(user, listen);
      return known.upstream;
    }
    const users = new Map([[user, listen]]);
    const upstream = create((...change) => users.forEach((each) => each(...change)));
    this.#known.set(key, { upstream, users });
    return upstream;
  }

  /** A fleet has no use for a server any more. True when it was the last that had. */
  leave(upstream: Upstream, user: object): boolean {
    for (const [key, { upstream: each, users }] of this.#known) {
      if (each !== upstream) continue;
      users.delete(user);
      if (users.size > 0) return false;
      this.#known.delete(key);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.parking.close();
  }
}
