import type { Client } from "@junctor/client";
import { type Clock, waitFor, ClosingSet, createDeferred } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";
import { ConnectionLife, type OpenClient } from "./connection-life.ts";
import { type DescribeFailure, describeHealth, type Health } from "./health.ts";
import { Starts, type StartsOptions } from "./starts.ts";
import { isDoubtful } from "./to-upstream-error.ts";

export interface ConnectionOptions extends StartsOptions {
  readonly open: OpenClient;
  readonly clock: Clock;
  /** How long a call waits for a server that is being started again. */
  readonly patienceMs: number;
  /** How long a call waits for the first start. */
  readonly startPatienceMs: number;
  /** How callers are told of a failure; by its reason alone. */
  readonly describeFailure?: DescribeFailure | undefined;
  readonly onHealth: (health: Health, cause?: unknown) => void;
  readonly onUp?: (client: Client) => void;
  /** Called with the client to use from now on, before any other listener. */
  readonly onClient?: (client: Client | undefined) => void;
}

/**
 * One client of a server, kept alive. However many need it, it is started once, and never more often than its gate lets.
 *
 * It has many members because its state is one machine: its health, its client, its present life and those who wait for it
 * change together, in the same moment.
 */
export class Connection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #starts: Starts;
  readonly #closing = new ClosingSet();
  #isStopped = false;
  #health: Health = { kind: "idle" };
  /** Settles at the next change of health. */
  #changed = createDeferred<void>();
  #client: Client | undefined;
  #life: ConnectionLife | undefined;
  #running: Promise<void> | undefined;
  /** How many wait for it to be up. */
  #needing = 0;
  /** The client that was asked for a sign of life and has not answered yet. */
  #doubted: Client | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#starts = new Starts(options);
  }

  get health(): Health {
    return this.#health;
  }

  /** The client if it is up; does not wait. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** Starts it unless it runs. */
  start(): void {
    if (!this.#isStopped) this.#running ??= this.#run();
  }

  /** The client, waited for as long as there is hope. Rejects with an `UpstreamError`: nothing was sent. */
  async whenUp(signal: AbortSignal): Promise<Client> {
    const { clock, patienceMs, startPatienceMs } = this.#options;
    const { failures } = this.#starts;
    const until = clock.now() + (failures === 0 ? startPatienceMs : patienceMs);
    this.#needing++;
    try {
      this.start();
      this.#starts.hurry();
      const failuresBefore = this.#starts.failures;
      for (;;) {
        if (this.#client !== undefined) return this.#client;
        const leftMs = until - clock.now();
        const hasFailed = this.#starts.failures > failuresBefore;
        const isHopeless = this.#starts.dueAt(this.#health) > until;
        if (leftMs <= 0 || hasFailed || isHopeless || this.#isStopped) throw this.#unavailable();
        await waitFor(this.#changed.promise, { ms: leftMs, clock, signal });
      }
    } finally {
      this.#needing--;
    }
  }

  /** A request failed as if the server were gone. Where it does not say so itself, it is asked for a sign of life. */
  doubt(): void {
    const client = this.#client;
    if (client === undefined || client === this.#doubted) return;
    this.#doubted = client;
    void client
      .request("ping", undefined, { timeoutMs: 5000, maxTotalMs: 5000 })
      .then(
        () => {},
        (error: unknown) => {
          // One that answers anything at all is alive, and one that is slow to may be at work on a long call.
          if (isDoubtful(error) && this.#client === client) this.#life?.lose(error as Error);
        },
      )
      .finally(() => {
        if (this.#doubted === client) this.#doubted = undefined;
      });
  }

  /** Ends it until it is needed again. */
  async rest(): Promise<void> {
    const life = this.#life;
    life?.end(new Error("it is not needed now"));
    await life?.over;
    await this.#closing[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#life?.end(new Error("the server was stopped"));
    await this.#running;
    await this.#closing[Symbol.asyncDispose]();
    if (this.#health.kind !== "stopped") this.#become({ kind: "stopped" });
  }

  async #run(): Promise<void> {
    const { clock, open, onUp, keepsAlive } = this.#options;
    for (;;) {
      const life = new ConnectionLife({
        clock,
        open,
        isUrgent: () => this.#needing > 0,
        starts: this.#starts,
        closing: this.#closing,
        before: this.#health,
        onHealth: (health, cause) => this.#become(health, cause),
        onClient: (client) => this.#use(client),
        onUp,
      });
      this.#life = life;
      await life.over;
      if (life.wasEnded && !this.#isStopped) this.#become({ kind: "idle" });
      const isNeeded = this.#needing > 0 || (keepsAlive && !life.wasEnded);
      if (isNeeded && !this.#isStopped) continue;
      // In the same moment as it was decided: a call that needs it from here on starts it anew.
      this.#running = undefined;
      return;
    }
  }

  #use(client: Client | undefined): void {
    this.#client = client;
    this.#options.onClient?.(client);
  }

  #become(health: Health, cause?: unknown): void {
    const changed = this.#changed;
    this.#health = health;
    this.#changed = createDeferred();
    changed.resolve();
    this.#options.onHealth(health, cause);
  }

  #unavailable(): UpstreamError {
    const { server, clock, describeFailure } = this.#options;
    // While a server is being stopped, its health is what it was before.
    const health: Health = this.#isStopped ? { kind: "stopped" } : this.#health;
    const why = describeHealth(health, clock.now(), describeFailure);
    const text = `${server} is not available, and the call was not sent: ${why}.`;
    return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
  }
}
