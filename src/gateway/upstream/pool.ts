import type { Clock } from "../../async/clock.ts";
import type { Client } from "../../client/client.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import type { Hearer } from "../../tools/provider.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Audience, Audiences } from "./audience.ts";
import type { CreateLine } from "./line-factory.ts";
import { LineQueue } from "./line-queue.ts";
import type { Listed, ListKind } from "./list-keeper.ts";
import { createPooledLine, type LineNews, type PooledLine } from "./pooled-line.ts";

/** A client lent for one call. Give it back, once. */
export interface Lease {
  readonly client: Client;
  readonly pooled: PooledLine;
  /** `isSpoiled`: the server may still be at work for this call, and ask something for it. */
  release(isSpoiled?: boolean): void;
}

interface PoolOptions extends LineNews {
  readonly config: ServerConfig;
  readonly audiences: Audiences;
  readonly createLine: CreateLine;
  readonly clock: Clock;
  /** Told when a call begins to wait for others to end; the returned function is called when it waits no longer. */
  readonly onWaiting: () => () => void;
  /** What is known of the server's lists from before. */
  readonly known: Listed | undefined;
}

/** Most lines over HTTP besides that for everyone: each is a few kilobytes here and a session there. */
const maxHttpLines = 256;
/** Lines that were not used for so long, and that no session needs, are closed. */
const idleMs = 5 * 60_000;
/** How long a conversation may take to hear of a change that another heard of. */
const relistMs = 500;
/** How long a server that did not know the legacy era is not asked for it again. */
const retryLegacyMs = 10 * 60_000;

/**
 * The lines to one server, by their audiences. One is for everyone and always kept up; the others are opened when a
 * caller of their audience comes. At the limit those that are idle are closed; when none is, calls wait their turn.
 */
export class Pool implements AsyncDisposable {
  readonly everyone: PooledLine;
  readonly #options: PoolOptions;
  readonly #maxLines: number;
  readonly #isHttp: boolean;
  /** Whether a line serves one call at a time. */
  readonly #isExclusive: boolean;
  readonly #lines = new Set<PooledLine>();
  readonly #queue: LineQueue<Audience, PooledLine>;
  /** Lines that are over and not quite closed. */
  readonly #closing = new Set<Promise<void>>();
  readonly #timers = new Set<() => void>();
  #modernOnlyUntil = 0;
  #stopSweep: (() => void) | undefined;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { config, audiences } = options;
    this.#isExclusive = config.sharing === "exclusive";
    this.#isHttp = config.launch.kind === "http";
    const { maxConnections } = config;
    this.#maxLines = this.#isHttp
      ? Math.max(maxHttpLines, maxConnections)
      : Math.max(maxConnections, config.instances);
    this.#queue = new LineQueue(config.name, options.clock, options.onWaiting);
    this.everyone = this.#create(audiences.everyone);
  }

  /** Every line there is, that for everyone first. */
  get all(): readonly PooledLine[] {
    return [this.everyone, ...this.#lines];
  }

  /** The line a caller uses, if there is one now. */
  find(caller: Hearer): PooledLine | undefined {
    const audience = this.#audienceOf(caller);
    return audience === this.everyone.audience ? this.everyone : this.#findFor(audience);
  }

  /** The line for a caller's lists; it is opened if there is none and there may be one more. */
  lineFor(caller: Hearer): PooledLine {
    if (this.#isExclusive) return this.everyone;
    const found = this.find(caller);
    const pooled = found ?? this.#open(this.#audienceOf(caller)) ?? this.everyone;
    if (caller.session !== undefined) pooled.sessions.add(caller.session);
    return pooled;
  }

  /** Lends the line of a caller's lists for longer than a call, such as a watch. */
  async lendListed(caller: Hearer, signal: AbortSignal): Promise<Lease> {
    if (!this.#isExclusive) return this.lend(caller, signal);
    this.everyone.inUse++;
    return this.#hand(this.everyone, signal);
  }

  /** Lends a line for one call of a caller. Rejects when it cannot be had in time. */
  async lend(caller: Hearer, signal: AbortSignal): Promise<Lease> {
    if (this.#isClosed) throw this.#stopped();
    if (!this.#options.audiences.hasOwners) await this.everyone.line.whenUp(signal);
    const audience = this.#audienceOf(caller);
    const pooled = this.#take(audience) ?? (await this.#queue.wait(audience, signal));
    if (caller.session !== undefined) pooled.sessions.add(caller.session);
    return this.#hand(pooled, signal);
  }

  /** A session is over: the lines that only it used are closed, at once or when their calls end. */
  sessionEnded(session: object): void {
    this.everyone.sessions.delete(session);
    for (const pooled of this.#lines) {
      if (!pooled.sessions.delete(session) || pooled.audience.owner !== session) continue;
      if (pooled.inUse === 0) this.#close(pooled);
      else pooled.isEnding = true;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopSweep?.();
    for (const stop of this.#timers) stop();
    this.#queue.refuseAll(this.#stopped());
    for (const pooled of this.#lines) this.#close(pooled);
    await Promise.all([this.everyone.line[Symbol.asyncDispose](), ...this.#closing]);
  }

  #audienceOf(caller: Hearer): Audience {
    const { audiences, clock } = this.#options;
    if (audiences.isOne) return audiences.everyone;
    const { health } = this.everyone.line;
    const isModernOnly = clock.now() < this.#modernOnlyUntil;
    const eras = health.kind === "up" ? { spoken: health.agreement.mode.kind, isModernOnly } : undefined;
    return audiences.of(caller, eras);
  }

  #create(audience: Audience): PooledLine {
    const { createLine, clock, known, audiences, onListed, onResource, onUp, onHealth } = this.#options;
    const told = { onListed, onResource, onUp, onHealth };
    const isEveryone = audience === audiences.everyone;
    return createPooledLine(audience, {
      isEveryone,
      lists: !this.#isExclusive || isEveryone,
      known: isEveryone ? known : undefined,
      twin: isEveryone ? undefined : () => this.everyone.lists.listed,
      clock,
      createLine,
      ...told,
      onListed: (pooled, changed) => {
        told.onListed(pooled, changed);
        if (isEveryone && changed.length > 0) this.#refreshOthers(changed);
      },
      isInVain: (pooled) => this.#isInVain(pooled),
      onInVain: (pooled) => this.#giveUpLegacy(pooled),
    });
  }

  /** Not every conversation hears of changes: one that has not listed them by itself soon after another did is told to. */
  #refreshOthers(changed: readonly ListKind[]): void {
    const { clock } = this.#options;
    const since = clock.now() - relistMs;
    if (this.#options.audiences.hasOwners || this.#lines.size === 0) return;
    const shared = [...this.#lines];
    const stop = clock.timer(relistMs, () => {
      this.#timers.delete(stop);
      for (const { lists } of shared) void lists.refreshSince(changed, since);
    });
    this.#timers.add(stop);
  }

  /** A line for one more call, which counts as in use from now on. */
  #take(audience: Audience): PooledLine | undefined {
    const isEveryone = audience === this.everyone.audience;
    const pooled = isEveryone ? this.everyone : (this.#findFor(audience) ?? this.#open(audience));
    if (pooled !== undefined) pooled.inUse++;
    return pooled;
  }

  /** One that is up, if there is one; of several the one used last: its process may remember the caller. */
  #findFor(audience: Audience): PooledLine | undefined {
    let found: PooledLine | undefined;
    for (const pooled of this.#lines) {
      const isBusy = this.#isExclusive && pooled.inUse > 0;
      if (pooled.audience !== audience || pooled.isEnding || isBusy) continue;
      if (found === undefined || isBetter(pooled, found)) found = pooled;
    }
    return found;
  }

  #open(audience: Audience): PooledLine | undefined {
    if (this.#isClosed) return undefined;
    const { clock } = this.#options;
    const busy = [...this.#lines].filter(
      ({ audience: { owner }, inUse }) => owner === audience.owner && inUse > 0,
    );
    // Where calls have lines to themselves, one owner must not take all of them: a call may wait for a person.
    const limit = this.#maxLines - (this.#isExclusive ? Math.floor(this.#maxLines / 4) : 0);
    if (busy.length >= limit || (this.#lines.size >= this.#maxLines && !this.#evict())) return undefined;
    const pooled = this.#create(audience);
    this.#lines.add(pooled);
    this.#stopSweep ??= clock.timer(idleMs / 2, () => this.#sweep());
    return pooled;
  }

  #evict(): boolean {
    const idle = [...this.#lines].filter(({ inUse }) => inUse === 0);
    const [first, ...others] = idle;
    if (first === undefined) return false;
    this.#close(others.reduce((oldest, each) => (each.usedAt < oldest.usedAt ? each : oldest), first));
    return true;
  }

  async #hand(pooled: PooledLine, signal: AbortSignal): Promise<Lease> {
    let isLent = true;
    const release = (isSpoiled = false): void => {
      if (!isLent) return;
      isLent = false;
      // What its server asks later would be asked of the next caller.
      pooled.isEnding ||= isSpoiled && this.#isExclusive;
      this.#giveBack(pooled);
    };
    try {
      const client = pooled.line.client ?? (await pooled.line.whenUp(signal));
      if (!pooled.isEnding || !this.#isTrial(pooled)) return { client, pooled, release };
    } catch (error) {
      const { client } = this.everyone.line;
      if (!this.#isTrial(pooled) || client === undefined || signal.aborted) {
        release();
        throw error;
      }
      this.#giveUpLegacy(pooled);
    }
    // Its callers are served in the modern era, on the line for everyone.
    release();
    this.everyone.inUse++;
    return this.#hand(this.everyone, signal);
  }

  /** Whether the line is there to find out if a modern server over HTTP knows the legacy era too. */
  #isTrial({ audience }: PooledLine): boolean {
    const { health } = this.everyone.line;
    const isModern = health.kind === "up" && health.agreement.mode.kind === "modern";
    return this.#isHttp && isModern && audience.era === "legacy" && !this.#options.audiences.hasOwners;
  }

  #isInVain(pooled: PooledLine): boolean {
    const { health } = pooled.line;
    return this.#isTrial(pooled) && health.kind === "up" && health.agreement.mode.kind === "modern";
  }

  #giveUpLegacy(pooled: PooledLine): void {
    this.#modernOnlyUntil = this.#options.clock.now() + retryLegacyMs;
    pooled.isEnding = true;
    if (pooled.inUse === 0) this.#close(pooled);
  }

  #giveBack(pooled: PooledLine): void {
    pooled.inUse--;
    pooled.usedAt = this.#options.clock.now();
    if (pooled.isEnding && pooled.inUse === 0) this.#close(pooled);
    this.#queue.serve((audience) => this.#take(audience));
  }

  #sweep(): void {
    const { clock } = this.#options;
    for (const pooled of this.#lines) {
      const isIdle = pooled.inUse === 0 && clock.now() - pooled.usedAt >= idleMs;
      // A conversation that a session hears announcements on stays; a process does not.
      if (isIdle && (!this.#isHttp || pooled.sessions.size === 0)) this.#close(pooled);
    }
    this.#stopSweep = this.#lines.size === 0 ? undefined : clock.timer(idleMs / 2, () => this.#sweep());
  }

  #close(pooled: PooledLine): void {
    this.#lines.delete(pooled);
    const closed: Promise<void> = pooled.line[Symbol.asyncDispose]().finally(() =>
      this.#closing.delete(closed),
    );
    this.#closing.add(closed);
  }

  #stopped(): UpstreamError {
    const { name } = this.#options.config;
    const text = `${name} was removed, or the gateway is shutting down; the call was not sent.`;
    return new UpstreamError("unavailable", text, { server: name, delivery: "not_sent" });
  }
}

function isBetter(one: PooledLine, other: PooledLine): boolean {
  const isUp = one.line.client !== undefined;
  return isUp === (other.line.client !== undefined) ? one.usedAt > other.usedAt : isUp;
}
