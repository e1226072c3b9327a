import { type Backoff, createBackoff } from "../../async/backoff.ts";
import { type Clock, sleep, waitFor } from "../../async/clock.ts";
import { createDeferred, type Deferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import type { Agreement } from "../../client/conversation.ts";
import { ConnectError } from "../../errors/connect-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { Gates, type GatesOptions } from "./gates.ts";
import { describeHealth, type Health } from "./health.ts";
import { toFailure } from "./to-reason.ts";
import { isDoubtful } from "./to-upstream-error.ts";

/** What a line tells those who open its client, and wants to be told. */
interface LineLife {
  readonly signal: AbortSignal;
  /** Whether a call waits for the client. */
  readonly isUrgent: () => boolean;
  /** How many starts in a row ended because the server did not answer in time. */
  readonly timeouts: number;
  /** To be called when the server is gone. */
  readonly onLost: (reason: Error) => void;
  /** To be called before something is started; what it throws prevents that. */
  readonly onOpen: () => void;
}

/** Opens the way to a server once. */
export type OpenClient = (life: LineLife) => Promise<Client>;

export interface LineOptions extends GatesOptions {
  readonly server: string;
  readonly open: OpenClient;
  readonly clock: Clock;
  readonly backoff?: Backoff;
  /** How long a call waits for a server that is being started again. */
  readonly patienceMs: number;
  /** How long a call waits for the first start. */
  readonly startPatienceMs: number;
  readonly onHealth: (health: Health, cause?: unknown) => void;
  readonly onUp?: (client: Client) => void;
  /** Told which client may be used from now on, before anything else is. */
  readonly onClient?: (client: Client | undefined) => void;
}

/** How long a server must have been up for the next start to come at once. */
const stableMs = 10_000;

/** One client of a server, kept alive. However many need it, it is started once, and never more often than its gate lets. */
export class Line implements AsyncDisposable {
  readonly #options: LineOptions;
  readonly #backoff: Backoff;
  readonly #gates: Gates;
  readonly #stopping = new AbortController();
  /** What is over and not quite closed. */
  readonly #closing = new Set<Promise<void>>();
  #health: Health = { kind: "idle" };
  /** Settles at the next change of health. */
  #changed = createDeferred<void>();
  #client: Client | undefined;
  #lost: Deferred<Error> | undefined;
  #running: Promise<void> | undefined;
  /** From the wait for a start to the end of what was started; aborting ends it. */
  #life = new AbortController();
  #living: Promise<void> | undefined;
  /** How many wait for it to be up. */
  #needing = 0;
  #failures = 0;
  /** Starts in a row that ended because the server did not answer in time. */
  #timeouts = 0;
  #openedAt = 0;
  /** Asked for a sign of life that has not come yet. */
  #doubted: Client | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#gates = new Gates(options);
    this.#backoff = options.backoff ?? createBackoff({ minMs: 500, maxMs: 30_000 });
  }

  get health(): Health {
    return this.#health;
  }

  /** The client, while it is up: for those in a hurry. */
  get client(): Client | undefined {
    return this.#client;
  }

  /** Starts it unless it runs. */
  start(): void {
    if (this.#stopping.signal.aborted) return;
    this.#running ??= this.#run();
  }

  /** The client, waited for as long as there is hope. Rejects with an `UpstreamError`: nothing was sent. */
  async whenUp(signal: AbortSignal): Promise<Client> {
    const { clock, patienceMs, startPatienceMs } = this.#options;
    const isFirst = this.#failures === 0;
    const until = clock.now() + (isFirst ? startPatienceMs : patienceMs);
    this.#needing++;
    try {
      this.start();
      const failuresBefore = this.#failures;
      for (;;) {
        if (this.#client !== undefined) return this.#client;
        const leftMs = until - clock.now();
        const hasFailed = this.#failures > failuresBefore;
        const isHopeless = this.#health.kind === "down" && this.#health.nextTryAt > until;
        if (leftMs <= 0 || hasFailed || isHopeless || this.#stopping.signal.aborted)
          throw this.#unavailable();
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
          if (isDoubtful(error) && this.#client === client) this.#lost?.resolve(error as Error);
        },
      )
      .finally(() => {
        if (this.#doubted === client) this.#doubted = undefined;
      });
  }

  /** Ends it until it is needed again. */
  async rest(): Promise<void> {
    this.#end(new Error("nobody needs it"));
    await this.#living;
    await Promise.all(this.#closing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new Error("the server was stopped");
    this.#stopping.abort(reason);
    this.#end(reason);
    await this.#running;
    await Promise.all(this.#closing);
    if (this.#health.kind !== "stopped") this.#become({ kind: "stopped" });
  }

  /** From this moment on nobody is given the client. */
  #end(reason: Error): void {
    this.#use(undefined);
    this.#life.abort(reason);
  }

  #use(client: Client | undefined): void {
    this.#client = client;
    this.#options.onClient?.(client);
  }

  async #run(): Promise<void> {
    for (;;) {
      const life = new AbortController();
      this.#life = life;
      await (this.#living = this.#live(life.signal));
      const { aborted: isStopping } = this.#stopping.signal;
      const { aborted: isResting } = life.signal;
      if (isResting && !isStopping) this.#become({ kind: "idle" });
      const isNeeded = this.#needing > 0 || (this.#options.keepsAlive && !isResting);
      if (isNeeded && !isStopping) continue;
      // In the same moment as it was decided: whoever needs it from here on starts it anew.
      this.#running = undefined;
      return;
    }
  }

  /** One life: waits its turn, starts, lasts, ends. */
  async #live(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#gates.begin();
    // Others have seen that it does not last: whoever needs it is told, and does not wait.
    if (this.#health.kind === "idle" && this.#gates.commonMs > 0)
      return this.#failed(this.#tooOften(), signal, 0);
    await this.#untilDue(signal);
    if (signal.aborted) return;
    const lost = createDeferred<Error>();
    this.#lost = lost;
    const since = clock.now();
    const after = this.#health.kind === "down" ? this.#health : undefined;
    this.#become({ kind: "starting", since, after });
    let opened: Opened;
    try {
      opened = await this.#open(signal, lost.resolve);
    } catch (error) {
      return this.#failed(error, signal);
    }
    const { client, agreement } = opened;
    const upAt = clock.now();
    if (!signal.aborted) {
      signal.addEventListener("abort", () => lost.resolve(signal.reason as Error), { once: true });
      this.#use(client);
      this.#timeouts = 0;
      this.#become({ kind: "up", since: upAt, agreement, connectMs: upAt - this.#openedAt });
      this.#options.onUp?.(client);
      await lost.promise;
      this.#use(undefined);
    }
    this.#close(client);
    const wasStable = clock.now() - upAt >= stableMs;
    if (wasStable) {
      this.#backoff.reset();
      this.#failures = 0;
    }
    if (!signal.aborted) this.#failed(await lost.promise, signal, wasStable ? 0 : undefined);
  }

  /** Waits until it may be started. Timers may be a little early, so the time is looked at again. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const nextTryAt = this.#health.kind === "down" ? this.#health.nextTryAt : 0;
    for (;;) {
      const waitMs = Math.max(this.#gates.delayMs, nextTryAt - clock.now());
      if (waitMs <= 0 || signal.aborted) return;
      await sleep(waitMs, clock, signal).catch(() => {});
    }
  }

  async #open(signal: AbortSignal, onLost: (reason: Error) => void): Promise<Opened> {
    this.#openedAt = this.#options.clock.now();
    const client = await this.#options.open({
      signal,
      isUrgent: () => this.#needing > 0,
      timeouts: this.#timeouts,
      onLost,
      onOpen: () => this.#noteStart(),
    });
    try {
      return { client, agreement: await client.agreement() };
    } catch (error) {
      // It was gone before it was quite there.
      this.#close(client);
      throw error;
    }
  }

  #close(client: Client): void {
    // What cannot be closed properly is over all the same.
    const closed: Promise<void> = client
      .close()
      .catch(() => {})
      .finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #noteStart(): void {
    if (this.#gates.delayMs > 0) throw this.#tooOften();
    this.#gates.noteStart();
    this.#openedAt = this.#options.clock.now();
  }

  #tooOften(): ConnectError {
    return new ConnectError(this.#options.server, "it was started too often lately");
  }

  #failed(cause: unknown, signal: AbortSignal, ownDelayMs?: number): void {
    const { clock } = this.#options;
    if (signal.aborted) return;
    this.#failures++;
    if (ownDelayMs === undefined) this.#gates.noteEnd();
    const now = clock.now();
    const delayMs = Math.max(this.#gates.delayMs, ownDelayMs ?? this.#backoff.next());
    const isBroken = this.#gates.delayMs > 0;
    const failure = toFailure(cause);
    this.#timeouts = failure.code === "no_answer" ? this.#timeouts + 1 : 0;
    this.#become({ kind: "down", since: now, ...failure, nextTryAt: now + delayMs, isBroken }, cause);
  }

  #become(health: Health, cause?: unknown): void {
    const changed = this.#changed;
    this.#health = health;
    this.#changed = createDeferred();
    changed.resolve();
    this.#options.onHealth(health, cause);
  }

  #unavailable(): UpstreamError {
    const { server, clock } = this.#options;
    const text = `${server} is not available, and the call was not sent: ${describeHealth(this.#health, clock.now())}.`;
    return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
  }
}

/** What an open client and its server agreed on. */
interface Opened {
  readonly client: Client;
  readonly agreement: Agreement;
}
