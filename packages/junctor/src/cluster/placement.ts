import { type Client, connect, type ConnectOptions } from "@junctor/client";
import { type Clock, sleep, waitFor, createDeferred } from "@junctor/core/async";
import { ClosedError, ConnectError, StoreError } from "@junctor/core/errors";
import type { Outcome } from "@junctor/core/provider";
import { markRemote } from "./connection-server.ts";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import type { Trunk } from "./trunk.ts";

type OpenPlaced = (options: ConnectOptions) => Promise<Client>;

interface PlacementOptions {
  readonly membership: Membership;
  readonly trunk: Trunk;
  readonly clock: Clock;
}

/** Pause before a lease is claimed again, after the store could not be asked. */
const retryMs = 1000;

/** Pause between two questions to an engine that has just started. */
const startingMs = 250;

/** Most claims of a server whose lease belongs to a replica that is not alive. */
const maxLooks = 3;

/**
 * Runs each server that is one process in all. The replica that holds the lease of a server starts it; the others open a connection to
 * that replica. When the owner is gone, the next that needs the server takes the lease.
 */
export class ServerPlacement {
  readonly #options: PlacementOptions;
  /** The servers that run here, by lease: each settles when its process has ended. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /**
   * Opens a server wherever it runs. `open` starts it here. While the engine is too young to give leases, it waits, as it would for a
   * server that takes long to start; aborting its signal ends that.
   */
  place(server: string, open: OpenPlaced): OpenPlaced {
    const { membership, clock } = this.#options;
    const key = `own:${server}`;
    return async (options) => {
      for (let look = 1; ; look++) {
        // The earlier process of the server has not ended yet. There must not be two.
        const before = this.#running.get(key);
        if (before !== undefined) await waitFor(before, { signal: options.signal });
        const owned = new OwnedServer(membership, key, clock);
        const holder = await this.#untilStarted(() => owned.take(), options.signal);
        if (holder === undefined) return this.#start(owned, open, options);
        const find = look === 1 ? membership.find : membership.findAnew;
        const owner = await this.#untilStarted(() => find(holder), options.signal);
        if (owner !== undefined && holder !== membership.id)
          return this.openConnection(owner, server, options);
        if (look >= maxLooks)
          throw new ConnectError(server, "the replica that runs it is gone, and its lease is still good");
      }
    };
  }

  /** Opens a connection to a server of another replica. It speaks the newest revision, whatever the server itself speaks. */
  async openConnection(replica: Replica, server: string, options: ConnectOptions): Promise<Client> {
    // `onOpen` counts starts of the server: a connection starts no process, and a broken connection is no fault of the server.
    const { era: _, onOpen: _start, relays, ...others } = options;
    const signal = options.signal ?? new AbortController().signal;
    const stream = await this.#options.trunk
      .openConnection(replica, server, signal)
      .catch((error: unknown) => {
        throw new ConnectError(server, "the replica that runs it cannot be reached", { cause: error });
      });
    const relaying = relays === undefined ? {} : { relays: { ...relays, tellsCaller: true } };
    return markRemote(await connect({ readable: stream, writable: stream }, { ...others, ...relaying }));
  }

  /** Asks the store again and again while its engine has just started and says so. */
  async #untilStarted<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "store.starting") throw error;
      }
      await sleep(startingMs, this.#options.clock, signal);
    }
  }

  /** Starts a server here, and gives its lease back when its process has ended. */
  async #start(owned: OwnedServer, open: OpenPlaced, options: ConnectOptions): Promise<Client> {
    const { key } = owned;
    const over = createDeferred<void>();
    this.#running.set(key, over.promise);
    const end = async (): Promise<void> => {
      await owned.leave();
      if (this.#running.get(key) === over.promise) this.#running.delete(key);
      over.resolve();
    };
    const client = await open(options).catch(async (error: unknown) => {
      await end();
      throw error;
    });
    let ended: Promise<void> | undefined;
    const close = (): Promise<void> => (ended ??= client.close().then(end, end));
    owned.onTaken = () => {
      options.onLost?.(new ClosedError("outcome_unknown", "another replica runs the server now"));
      void close();
    };
    const guarded = <Call extends (...given: never[]) => Promise<unknown>>(call: Call): Call =>
      ((...given) => {
        const refusal = owned.refusal();
        return refusal === undefined ? call(...given) : Promise.reject(refusal);
      }) as Call;
    const own = {
      call: guarded((...made: Parameters<Client["call"]>) => client.call(...made) as Promise<Outcome>),
      callTool: guarded((...call: Parameters<Client["callTool"]>) => client.callTool(...call)),
      get callLegacyTask() {
        return client.callLegacyTask && guarded(client.callLegacyTask);
      },
      close,
      [Symbol.asyncDispose]: close,
    };
    // Everything else is the client's own, its getters included.
    return Object.setPrototypeOf(own, client) as Client;
  }
}

/**
 * The lease of a server that runs here. While this replica is cut off from the store, the process stays and is not used: another
 * replica may run the server. When the store is back and none does, the process is used again.
 */
class OwnedServer {
  readonly key: string;
  readonly #membership: Membership;
  readonly #clock: Clock;
  #lease: HeldLease | undefined;
  #isLeft = false;
  #stopWaiting: () => void = () => {};
  /** Called when another replica has the server. */
  onTaken: () => void = () => {};

  constructor(membership: Membership, key: string, clock: Clock) {
    this.#membership = membership;
    this.key = key;
    this.#clock = clock;
  }

  /** Takes the lease. Resolves with the replica that has it, if another one does. */
  async take(): Promise<string | undefined> {
    const lease = await this.#membership.hold(this.key, () => this.#lost());
    if (!("release" in lease)) return lease.holder;
    if (this.#isLeft) await lease.release();
    else this.#lease = lease;
    return undefined;
  }

  /** Why nothing may be sent at this moment; undefined while this replica has the lease. */
  refusal(): ClosedError | undefined {
    if (this.#membership.isIn && this.#lease !== undefined) return undefined;
    return new ClosedError("not_sent", "this replica is cut off from the others");
  }

  async leave(): Promise<void> {
    this.#isLeft = true;
    this.#stopWaiting();
    await this.#lease?.release();
  }

  #lost(): void {
    this.#lease = undefined;
    if (this.#isLeft) return;
    if (this.#membership.isIn) return this.onTaken();
    this.#stopWaiting = this.#membership.onIn((isIn) => {
      if (!isIn) return;
      this.#stopWaiting();
      this.#takeAgain();
    });
  }

  /** Asks for the lease until the store says who has it. A store that does not answer took nothing away. */
  #takeAgain(): void {
    this.take().then(
      (holder) => {
        if (holder !== undefined) this.onTaken();
      },
      () => {
        if (!this.#isLeft) this.#stopWaiting = this.#clock.timer(retryMs, () => this.#takeAgain());
      },
    );
  }
}
