import { type Client, connect, type ConnectOptions } from "@junctor/client";
import {
  type Awaitable,
  type Clock,
  createDeferred,
  isPromise,
  LazyAbort,
  sleep,
  waitFor,
} from "@junctor/core/async";
import { ClosedError, ConnectError, StoreError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { callerKey, type Implementation, type Seal, type Server, type WireContext } from "@junctor/core/mcp";
import type { InputRequired, Outcome, Provider, Round } from "@junctor/core/provider";
import { createServer } from "@junctor/server";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import { isCaller, type Trunk } from "./trunk.ts";

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

/** The most claims of a server whose lease belongs to a replica that is not alive. */
const maxLooks = 3;

/**
 * Runs each server of which all replicas share one process. The replica that holds the lease of a server starts it; the others open a
 * connection to that replica. When the owner is gone, the next replica that needs the server takes the lease.
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
        const find = look === 1 ? "find" : "findAgain";
        const owner = await this.#untilStarted(() => membership[find](holder), options.signal);
        if (owner !== undefined && holder !== membership.id)
          return this.openConnection(owner, server, options);
        if (look >= maxLooks)
          throw new ConnectError(server, "the replica that runs it is gone, and its lease is still good");
      }
    };
  }

  /** Opens a connection to a server of another replica. It speaks the newest revision, whatever the server itself speaks. */
  async openConnection(replica: Replica, server: string, options: ConnectOptions): Promise<Client> {
    // `onOpen` counts starts of the server: a connection starts no process, and a broken connection is not a fault of the server.
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
    const guarded = <Call extends (...args: never[]) => Promise<unknown>>(call: Call): Call =>
      ((...args) => {
        const refusal = owned.refusal();
        return refusal === undefined ? call(...args) : Promise.reject(refusal);
      }) as Call;
    const own = {
      call: guarded((...args: Parameters<Client["call"]>) => client.call(...args) as Promise<Outcome>),
      callTool: guarded((...args: Parameters<Client["callTool"]>) => client.callTool(...args)),
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
 * replica may run the server. When the store is back and no other replica does, the process is used again.
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

/**
 * One server of this replica, for the other replicas. They have authenticated the caller and applied all rules and limits, and each
 * request names its caller.
 */
export function createConnectionServer(
  provider: Provider,
  info: Implementation,
  onError: (error: unknown, method: string) => void,
): Server {
  const server = createServer(provider, info, { serves: "modern", seal: plainSeal, passesOn: true, onError });
  return {
    ...server,
    handle: (request, wire) => {
      const claimed: unknown = request.params?.at("_meta")?.at(callerKey)?.value;
      const identity = isCaller(claimed) ? claimed : undefined;
      const caller = identity?.name;
      const ofCaller = { ...wire, caller, identity, owner: caller ?? wire.owner };
      // A call with a state stays when the connection breaks: its caller can come back through another replica. Any other call is
      // cancelled.
      if (request.params?.at("requestState") !== undefined) return server.handle(request, ofCaller);
      return untilInputEnd(ofCaller, (ended) => server.handle(request, ended));
    },
  };
}

/** Serves a request that is cancelled when the connection it came over breaks. */
function untilInputEnd(
  wire: WireContext,
  serve: (wire: WireContext) => Awaitable<RawJson>,
): Awaitable<RawJson> {
  const { inputEnd, cancellation } = wire;
  if (inputEnd === undefined) return serve(wire);
  const stop = new LazyAbort();
  const cancelled = (): void => stop.abort(cancellation.reason);
  const broken = (): void => stop.abort(inputEnd.reason);
  cancellation.onAbort(cancelled);
  inputEnd.onAbort(broken);
  const off = (): void => {
    cancellation.offAbort(cancelled);
    inputEnd.offAbort(broken);
  };
  try {
    const served = serve({ ...wire, cancellation: stop });
    if (isPromise(served)) served.then(off, off);
    else off();
    return served;
  } catch (error) {
    off();
    throw error;
  }
}

/** The state of a request between two replicas needs no seal: the replica that the caller sees puts its own around it. */
const plainSeal: Seal = {
  seal: (payload) => JSON.stringify(payload),
  open: (token) => {
    try {
      return { ok: true, payload: JSON.parse(token) as unknown };
    } catch {
      return { ok: false, reason: "malformed" };
    }
  },
};

/** Marks clients whose other side is a connection server. */
const remoteMark = Symbol("connection");

function markRemote<Client extends object>(client: Client): Client {
  return Object.defineProperty(client, remoteMark, { value: true });
}

/** Whether the server of a client is another replica. The states of its questions are those of this gateway. */
export function isRemote(client: object): boolean {
  return remoteMark in client;
}

/** A round of a request for a connection server. A state is the same whichever replica made it. */
export function toRemoteRound(round: Round): Round {
  return { ...round, state: JSON.stringify({ answers: [], state: round.state }) };
}

/** Questions of a connection server, with the state as it is inside every replica. */
export function fromRemoteRound(outcome: InputRequired): InputRequired {
  const { state } =
    typeof outcome.state === "string" ? (JSON.parse(outcome.state) as { state?: unknown }) : {};
  return { ...outcome, state, keepsAnswers: false };
}

/** The id of a task on a connection: its tool and the ref that it has at the replica of its process, as that server seals them. */
export function toRemoteTaskId(tool: string, ref: string): string {
  return JSON.stringify([tool, ref]);
}

/** The ref in an id of {@link toRemoteTaskId}. */
export function fromRemoteTaskId(id: string): string {
  const [, ref] = JSON.parse(id) as readonly [tool: string, ref: string];
  return ref;
}
