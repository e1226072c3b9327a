import { waitFor } from "../async/clock.ts";
import type { Client } from "../client/client.ts";
import { connect, type ConnectOptions } from "../client/connect.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { ConnectError } from "../errors/connect-error.ts";
import { markLine } from "./line-server.ts";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import type { Trunk } from "./trunk.ts";

type Open = (options: ConnectOptions) => Promise<Client>;

interface PlacementOptions {
  readonly membership: Membership;
  readonly trunk: Trunk;
}

/** How often a replica that was said to own a server, and does not any more, is looked for again. */
const maxLooks = 3;

/**
 * Runs each server that is one process in all. The replica that holds the lease of a server starts it; the others open a line to
 * that replica. When the owner is gone, the next that needs the server takes the lease.
 */
export class Placement {
  readonly #options: PlacementOptions;
  /** Ends of processes whose leases were not given back yet, by lease. */
  readonly #ending = new Map<string, Promise<void>>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** Opens a server wherever it runs. `open` starts it here. */
  place(server: string, open: Open): Open {
    const key = `own:${server}`;
    return async (options) => {
      const { membership } = this.#options;
      for (let look = 1; ; look++) {
        // Another start waits for the end of the last process: there must not be two.
        await waitFor(this.#ending.get(key) ?? Promise.resolve(), { signal: options.signal });
        const lost = new AbortController();
        const lease = await membership.hold(key, () => lost.abort());
        if ("release" in lease) return this.#start(key, { lease, lost: lost.signal }, open, options);
        const owner = await membership.find(lease.holder);
        if (owner !== undefined) return this.openLine(owner, server, options);
        if (look === maxLooks)
          throw new ConnectError(server, "the replica that runs it is gone, and its lease is still good");
      }
    };
  }

  /** Opens a line to a server of another replica. It speaks the newest revision, whatever the server itself speaks. */
  async openLine(replica: Replica, server: string, options: ConnectOptions): Promise<Client> {
    const { era: _, relays, ...others } = options;
    const signal = options.signal ?? new AbortController().signal;
    const stream = await this.#options.trunk.openLine(replica, server, signal).catch((error: unknown) => {
      throw new ConnectError(server, "the replica that runs it cannot be reached", { cause: error });
    });
    const told = relays === undefined ? {} : { relays: { ...relays, tellsCaller: true } };
    return markLine(await connect({ readable: stream, writable: stream }, { ...others, ...told }));
  }

  /** Starts a server here, and gives its lease back when its process has ended. */
  async #start(
    key: string,
    { lease, lost }: { readonly lease: HeldLease; readonly lost: AbortSignal },
    open: Open,
    options: ConnectOptions,
  ): Promise<Client> {
    let client: Client;
    try {
      client = await open(options);
    } catch (error) {
      await lease.release();
      throw error;
    }
    const end = async (): Promise<void> => {
      await client[Symbol.asyncDispose]();
      this.#ending.delete(key);
      await lease.release();
    };
    let ended: Promise<void> | undefined;
    const close = (): Promise<void> => {
      if (ended === undefined) this.#ending.set(key, (ended = end()));
      return ended;
    };
    const lose = (): void => {
      options.onLost?.(new ClosedError("outcome_unknown", "another replica runs the server now"));
      void close();
    };
    if (lost.aborted) lose();
    else lost.addEventListener("abort", lose, { once: true });
    // Everything else is the client's own, its getters included.
    return Object.setPrototypeOf({ close, [Symbol.asyncDispose]: close }, client) as Client;
  }
}
