import type { Agreement, Client } from "@junctor/client";
import { ClosingSet, createDeferred, waitFor } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";
import type { StartProgress } from "@junctor/core/mcp";
import { type Failure, type Health, isDoubtful } from "./failure.ts";
import { Starts, type StartSlots, type StartsOptions } from "./starts.ts";

export type { Health } from "./failure.ts";

type State = Health["kind"];

/** The states that may follow each state. A start that its limits forbid fails before it begins. */
export const transitions: { readonly [From in State]: readonly State[] } = {
  idle: ["waiting", "starting", "down", "stopped"],
  waiting: ["starting", "idle", "stopped"],
  starting: ["up", "down", "idle", "stopped"],
  up: ["down", "idle", "stopped"],
  down: ["waiting", "starting", "idle", "stopped"],
  stopped: [],
};

/** The status that users and programs see: a server that waits for its turn counts as starting. */
export function statusOf({ kind }: Pick<Health, "kind">): Exclude<State, "waiting"> {
  return kind === "waiting" ? "starting" : kind;
}

/** A process or conversation of a server. */
export interface ConnectionStatus {
  /** Why there is one. */
  readonly reason: string;
  readonly status: ReturnType<typeof statusOf>;
  /** Calls and watches that use it now. */
  readonly inUse: number;
}

/** Describes a failure; the secrets of `server` are taken out of the text. */
export type DescribeFailure = (failure: Failure, server?: string) => string;

/** Why a server cannot be called now. Failures are described by the reason alone unless `toText` says more. */
export function describeHealth(
  health: Health,
  now: number,
  toText: DescribeFailure = ({ reason }) => reason,
): string {
  switch (health.kind) {
    case "idle":
      return "it is not started";
    case "waiting":
      return "it is started after other servers, which are starting now";
    case "starting":
      return health.after === undefined
        ? `it is still starting, since ${toSeconds(now - health.since)}`
        : `${toText(health.after)}; it is being started again`;
    case "up":
      return "it is up";
    case "down": {
      const next = `it is tried again in ${toSeconds(Math.max(0, health.nextTryAt - now))}`;
      return `${toText(health)}; ${health.isBroken ? "it failed too often, and " : ""}${next}`;
    }
    case "stopped":
      return "it was stopped or removed, or the gateway is shutting down";
  }
}

/** A duration for people: in whole seconds, rounded up. */
export function toSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}

/** Opens a client of a server once. */
export type OpenClient = (opening: {
  readonly signal: AbortSignal;
  /** How many starts in a row ended because the server did not answer in time. */
  readonly timeouts: number;
  /** To be called before something is started; what it throws prevents that. */
  readonly onOpen: () => void;
  /** To be called when a process was started, with a function that says how busy it is. */
  readonly onSpawned: (progress: () => StartProgress) => void;
  /** To be called when the server is gone. */
  readonly onLost: (reason: Error) => void;
}) => Promise<Client>;

export interface ConnectionOptions extends StartsOptions {
  readonly open: OpenClient;
  /** Limits how many processes start at the same time, for all servers. */
  readonly slots?: StartSlots | undefined;
  /** How long a call waits for a server that is being started again. */
  readonly patienceMs: number;
  /** How long a call waits for the first start. */
  readonly startPatienceMs: () => number;
  /** How a failure is described to callers; by its reason alone when left out. */
  readonly describeFailure?: DescribeFailure | undefined;
  /** Called at every change of its health, when `client` is already what it is from now on. */
  readonly report: (health: Health, cause?: unknown) => void;
}

/** One attempt to have the server up, until it is lost or ended. */
interface Attempt {
  readonly ending: AbortController;
  /** Resolves when the server is gone, or the attempt was ended. */
  readonly lost: ReturnType<typeof createDeferred<Error>>;
  /** Resolves when the attempt is over. */
  over: Promise<void>;
}

/** How long a server must have been up for the next start to come at once. */
const stableMs = 10_000;

/**
 * One client of a server, kept alive. However many calls need it, it is started once, and never more often than its limits allow.
 *
 * Its state is one machine: health, client, attempt and waiting calls change together, synchronously.
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
  #attempt: Attempt | undefined;
  #running: Promise<void> | undefined;
  /** How many calls wait for it to be up. */
  #needing = 0;
  /** The client that was pinged and has not answered yet. */
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

  /** The client, waited for as long as it may still come up in time. Rejects with an `UpstreamError`: nothing was sent. */
  async whenUp(signal: AbortSignal): Promise<Client> {
    const { clock, patienceMs, startPatienceMs } = this.#options;
    const until = clock.now() + (this.#starts.failures === 0 ? startPatienceMs() : patienceMs);
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

  /** A request failed as if the server were gone: a ping finds out. */
  doubt(): void {
    const client = this.#client;
    if (client === undefined || client === this.#doubted) return;
    this.#doubted = client;
    void client
      .request("ping", undefined, { timeoutMs: 5000, maxTotalMs: 5000 })
      .then(
        () => {},
        (error: unknown) => {
          // A server that answers anything is alive, and a slow one may be busy with a long call.
          if (isDoubtful(error) && this.#client === client) this.#attempt?.lost.resolve(error as Error);
        },
      )
      .finally(() => {
        if (this.#doubted === client) this.#doubted = undefined;
      });
  }

  /** Ends it until it is needed again. */
  async rest(): Promise<void> {
    await this.#end(new Error("it is not needed now"));
    await this.#closing[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    void this.#end(new Error("the server was stopped"));
    await this.#running;
    await this.#closing[Symbol.asyncDispose]();
    if (this.#health.kind !== "stopped") this.#become({ kind: "stopped" });
  }

  /** Ends the attempt, whatever it is at. */
  #end(reason: Error): Promise<void> | undefined {
    const attempt = this.#attempt;
    this.#client = undefined;
    attempt?.ending.abort(reason);
    attempt?.lost.resolve(reason);
    return attempt?.over;
  }

  async #run(): Promise<void> {
    for (;;) {
      const ending = new AbortController();
      const attempt: Attempt = { ending, lost: createDeferred<Error>(), over: Promise.resolve() };
      this.#attempt = attempt;
      attempt.over = this.#try(attempt);
      await attempt.over;
      const wasEnded = ending.signal.aborted;
      if (wasEnded && !this.#isStopped && this.#health.kind !== "idle") this.#become({ kind: "idle" });
      const isNeeded = this.#needing > 0 || (this.#options.keepsAlive && !wasEnded);
      if (isNeeded && !this.#isStopped) continue;
      // Without an `await` after the decision: a call that needs it from here on restarts it.
      this.#running = undefined;
      return;
    }
  }

  /** Waits its turn, starts the server, stays until it is lost, and ends. */
  async #try({ ending: { signal }, lost }: Attempt): Promise<void> {
    const { clock } = this.#options;
    const starts = this.#starts;
    const before = this.#health;
    const fail = (cause: unknown, ownDelayMs?: number): void => {
      if (!signal.aborted) this.#become(starts.fail(cause, ownDelayMs), cause);
    };
    try {
      starts.begin(before);
    } catch (error) {
      return fail(error, 0);
    }
    await starts.untilDue(before, signal);
    if (signal.aborted) return;
    let client: Client | undefined;
    let agreement: Agreement;
    try {
      client = await this.#open(before.kind === "down" ? before : undefined, signal, lost.resolve);
      agreement = await client.agreement();
    } catch (error) {
      // It may be lost before it is fully up.
      if (client !== undefined) void this.#closing.close(client);
      return fail(error);
    }
    const since = clock.now();
    if (!signal.aborted) {
      this.#client = client;
      starts.noteUp();
      this.#become({ kind: "up", since, agreement, connectMs: since - starts.openedAt });
      await lost.promise;
      this.#client = undefined;
    }
    void this.#closing.close(client);
    const hasLasted = clock.now() - since >= stableMs;
    if (hasLasted) starts.reset();
    fail(await lost.promise, hasLasted ? 0 : undefined);
  }

  async #open(
    after: Failure | undefined,
    signal: AbortSignal,
    onLost: (reason: Error) => void,
  ): Promise<Client> {
    const { open, slots, clock } = this.#options;
    const become = (kind: "waiting" | "starting"): void => {
      if (!signal.aborted) this.#become({ kind, since: clock.now(), after });
    };
    let progress: (() => StartProgress) | undefined;
    const isFull = slots?.isFull === true;
    become(isFull ? "waiting" : "starting");
    const isUrgent = (): boolean => this.#needing > 0;
    const giveBack = await slots?.take({ isUrgent, signal, processorMs: () => progress?.().processorMs });
    try {
      if (isFull) become("starting");
      return await open({
        signal,
        timeouts: this.#starts.timeouts,
        onOpen: () => this.#starts.note(),
        onSpawned: (busy) => {
          progress = busy;
        },
        onLost,
      });
    } finally {
      giveBack?.();
    }
  }

  #become(health: Health, cause?: unknown): void {
    const changed = this.#changed;
    this.#health = health;
    this.#changed = createDeferred();
    changed.resolve();
    this.#options.report(health, cause);
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
