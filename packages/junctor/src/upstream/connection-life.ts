import type { Client, Agreement } from "@junctor/client";
import { type Clock, type ClosingSet, createDeferred } from "@junctor/core/async";
import type { Health } from "./health.ts";
import type { Starts } from "./starts.ts";

/** The facts that a connection gives to the function that opens its client, and the functions that it must call. */
interface Opening {
  readonly signal: AbortSignal;
  /** Whether a call waits for the client. */
  readonly isUrgent: () => boolean;
  /** How many starts in a row ended because the server did not answer in time. */
  readonly timeouts: number;
  /** To be called when the start has to wait for those of other servers, and when it does no longer. */
  readonly onQueued: (isQueued: boolean) => void;
  /** To be called when the server is gone. */
  readonly onLost: (reason: Error) => void;
  /** To be called before something is started; what it throws prevents that. */
  readonly onOpen: () => void;
}

/** Opens a client of a server once. */
export type OpenClient = (opening: Opening) => Promise<Client>;

interface ConnectionLifeOptions {
  readonly clock: Clock;
  readonly open: OpenClient;
  readonly isUrgent: () => boolean;
  readonly starts: Starts;
  readonly closing: ClosingSet;
  /** The health of the connection when this life begins. */
  readonly before: Health;
  /** Called for each change of health. */
  readonly onHealth: (health: Health, cause?: unknown) => void;
  /** Called with the client to use from now on, before any other listener. */
  readonly onClient: (client: Client | undefined) => void;
  readonly onUp?: ((client: Client) => void) | undefined;
}

/** How long a server must have been up for the next start to come at once. */
const stableMs = 10_000;

/** One life of a connection: it waits its turn, starts the server, lasts, and ends. */
export class ConnectionLife {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #options: ConnectionLifeOptions;
  readonly #ending = new AbortController();
  readonly #lost = createDeferred<Error>();

  constructor(options: ConnectionLifeOptions) {
    this.#options = options;
    this.over = this.#live(this.#ending.signal);
  }

  /** Whether it was ended, and not by the server. */
  get wasEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Ends it, whatever it is at. */
  end(reason: Error): void {
    this.#options.onClient(undefined);
    this.#ending.abort(reason);
    this.#lost.resolve(reason);
  }

  /** The server is gone. */
  lose(reason: Error): void {
    this.#lost.resolve(reason);
  }

  async #live(signal: AbortSignal): Promise<void> {
    const { clock, starts, closing, before, onHealth, onClient } = this.#options;
    try {
      starts.begin(before);
    } catch (error) {
      return this.#failed(error, 0);
    }
    await starts.untilDue(before, signal);
    if (signal.aborted) return;
    const after = before.kind === "down" ? before : undefined;
    const begin = (isQueued = false): void => {
      const queued = isQueued ? { isQueued } : {};
      if (!signal.aborted) onHealth({ kind: "starting", since: clock.now(), after, ...queued });
    };
    begin();
    let opened: Opened;
    try {
      opened = await this.#open(signal, begin);
    } catch (error) {
      return this.#failed(error);
    }
    const { client, agreement } = opened;
    const since = clock.now();
    if (!signal.aborted) {
      onClient(client);
      starts.succeeded();
      onHealth({ kind: "up", since, agreement, connectMs: since - starts.openedAt });
      this.#options.onUp?.(client);
      await this.#lost.promise;
      onClient(undefined);
    }
    void closing.close(client);
    const hasLasted = clock.now() - since >= stableMs;
    if (hasLasted) starts.lasted();
    this.#failed(await this.#lost.promise, hasLasted ? 0 : undefined);
  }

  async #open(signal: AbortSignal, onQueued: Opening["onQueued"]): Promise<Opened> {
    const { open, isUrgent, starts, closing } = this.#options;
    const client = await open({
      signal,
      isUrgent,
      timeouts: starts.timeouts,
      onQueued,
      onLost: this.#lost.resolve,
      onOpen: () => starts.note(),
    });
    try {
      return { client, agreement: await client.agreement() };
    } catch (error) {
      // It was gone before it was quite there.
      void closing.close(client);
      throw error;
    }
  }

  #failed(cause: unknown, ownDelayMs?: number): void {
    if (this.wasEnded) return;
    this.#options.onHealth(this.#options.starts.failed(cause, ownDelayMs), cause);
  }
}

/** What an open client and its server agreed on. */
interface Opened {
  readonly client: Client;
  readonly agreement: Agreement;
}
