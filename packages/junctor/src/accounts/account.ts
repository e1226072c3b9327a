import { createHash } from "node:crypto";
import type { Authorizer, CredentialStore } from "@junctor/client";
import type { Credential } from "@junctor/client/internal";
import { type Awaitable, type Clock, createDeferred, timedOut, waitFor } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge, UpstreamError } from "@junctor/core/errors";
import type { Caller } from "@junctor/core/mcp";
import type { CallerInfo } from "@junctor/core/provider";
import { sharedOwner } from "../credentials/index.ts";
import type { Listed, Upstream } from "../upstream/index.ts";

interface AccountOptions {
  /** The owner under which the credential is stored; see `toOwner`. */
  readonly owner: string;
  readonly caller: string | undefined;
  readonly identity: Caller | undefined;
  /** The id of the credential in the store. */
  readonly id: string;
  readonly store: CredentialStore;
  readonly clock: Clock;
  readonly createAuthorizer: () => Authorizer;
  readonly createUpstream: (account: Account, authorizer: Authorizer) => Upstream;
}

/** The server refused the credential, and only the person can give another; `token` is the refused one. */
interface Need {
  readonly challenge: BearerChallenge | undefined;
  readonly token: string | undefined;
}

/** How long a known credential is trusted before it is looked up again: another process may have logged the caller out. */
const recheckMs = 5000;
/** How often a call that waits for the person looks into the store, where another process may write. */
const pollMs = 1000;
/** The most listeners that wait for the person. */
const maxListeners = 64;

/**
 * The account of one caller at one server: its credential in the store, and an upstream that uses it and no other. Nothing that the server
 * sends over it reaches another caller.
 */
export class Account implements AsyncDisposable {
  readonly options: AccountOptions;
  /** When it was last used. */
  usedAt: number;
  readonly #listeners = new Set<() => void>();
  #upstream: Upstream | undefined;
  #need: Need | undefined;
  #lastListed: Listed | undefined;
  /** Whether a credential was there when it was last looked for. */
  #isFound = false;
  #checkedAt = 0;
  #waiting = 0;
  /** The authorizer of the credential that is in use; a new one reads the store. */
  #authorizer: Authorizer | undefined;
  /** Settles when the person has connected the account. */
  #arrival = createDeferred<void>();

  constructor(options: AccountOptions) {
    this.options = options;
    this.usedAt = options.clock.now();
  }

  get upstream(): Upstream | undefined {
    return this.#upstream;
  }

  get need(): Need | undefined {
    return this.#need;
  }

  /** Whether a credential was there when it was last looked for. */
  get wasConnected(): boolean {
    return this.#isFound;
  }

  /** Whether calls wait for the person. */
  get isAwaited(): boolean {
    return this.#waiting > 0;
  }

  /** The lists of the upstream that was closed, for a caller that has to connect again. */
  get lastListed(): Listed | undefined {
    return this.#lastListed;
  }

  /** A hash that identifies the current credential, so that a wait notices another one; undefined where there is none. */
  async credentialName(): Promise<string | undefined> {
    const stored = await this.#read();
    return stored && createHash("sha256").update(stored.accessToken).digest("hex").slice(0, 16);
  }

  /** Whether the store has a credential that the server is not known to refuse. */
  isConnected(): Awaitable<boolean> {
    const isFresh = this.options.clock.now() - this.#checkedAt < recheckMs;
    if (this.#isFound && this.#need === undefined && isFresh) return true;
    return this.#read().then((stored) => this.#noteStored(stored));
  }

  /** The upstream of the caller; a new one where there is none. */
  open(): Upstream {
    return (this.#upstream ??= this.options.createUpstream(this, this.#toAuthorizer()));
  }

  /** Ends the upstream; with `keepsLists`, what it listed stays known. */
  async close(keepsLists = false): Promise<void> {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#authorizer = undefined;
    if (upstream === undefined) return;
    this.#lastListed = keepsLists && upstream.isListed ? upstream.listedFor() : undefined;
    await upstream[Symbol.asyncDispose]();
  }

  /** The person has connected the account: a new credential is in the store. */
  noteConnected(): void {
    this.#need = undefined;
    this.#authorizer = undefined;
    this.#isFound = true;
    this.#checkedAt = this.options.clock.now();
    this.#arrival.resolve();
    this.#arrival = createDeferred();
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  /** Calls back once when the person has connected the account. */
  onConnected(listener: () => void): void {
    if (this.#listeners.size < maxListeners) this.#listeners.add(listener);
  }

  /** Waits up to `maxMs` for a credential other than `before`, which the person gives. Rejects with the signal's reason. */
  async untilConnected(before: string | undefined, maxMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.options;
    const until = clock.now() + maxMs;
    this.#waiting++;
    try {
      for (;;) {
        const { promise } = this.#arrival;
        if ((await this.isConnected()) && (await this.credentialName()) !== before) return true;
        const leftMs = until - clock.now();
        if (leftMs <= 0) return false;
        const waited = await waitFor(promise, { ms: Math.min(leftMs, pollMs), clock, signal });
        if (waited !== timedOut) return true;
      }
    } finally {
      this.#waiting--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear();
    await this.close();
  }

  async #read(): Promise<Credential | undefined> {
    return (await this.options.store.read(this.options.id)) as Credential | undefined;
  }

  #noteStored(stored: Credential | undefined): boolean {
    const isGone = stored === undefined && this.#isFound;
    const isRefused = this.#need !== undefined && stored?.accessToken === this.#need.token;
    this.#isFound = stored !== undefined && !isRefused;
    this.#checkedAt = this.options.clock.now();
    if (this.#isFound) this.#need = undefined;
    // The authorizer still holds the token of the credential that was removed.
    if (isGone) void this.close(true);
    return this.#isFound;
  }

  /** An authorizer that remembers refusals. It never signs in itself: the person does that on a page of the gateway. */
  #toAuthorizer(): Authorizer {
    const current = (): Authorizer => (this.#authorizer ??= this.options.createAuthorizer());
    return {
      token: () => current().token(),
      refused: async (challenge, refusal) => {
        try {
          return await current().refused(challenge, refusal);
        } catch (error) {
          // A credential that lacks a scope is good for other calls.
          const isNeed = error instanceof AuthorizationError && error.code === "auth.login_required";
          if (isNeed) this.#need = { challenge: error.challenge, token: refusal.token };
          throw error;
        }
      },
      signIn: () => Promise.resolve(false),
    };
  }
}

interface AccountsOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly create: (owner: string, caller: Pick<CallerInfo, "caller" | "identity">) => Account;
}

/** The most callers of one server whose accounts are held at the same time. */
const maxAccounts = 1024;
/** An account unused for this long is closed; its credential stays in the store. Links to connect it expire sooner. */
const idleMs = 11 * 60_000;

/** The accounts of one server that are in use, by the names of their callers. */
export class Accounts implements AsyncDisposable {
  readonly #options: AccountsOptions;
  readonly #accounts = new Map<string | undefined, Account>();
  readonly #closing = new Set<Promise<void>>();
  #stopSweep: (() => void) | undefined;
  #isClosed = false;

  constructor(options: AccountsOptions) {
    this.#options = options;
  }

  get all(): readonly Account[] {
    return [...this.#accounts.values()];
  }

  /** The account of a caller, if it is in use. */
  find({ caller, identity }: Pick<CallerInfo, "caller" | "identity">): Account | undefined {
    const account = this.#accounts.get(caller);
    // Announcements know their callers by name only.
    if (account === undefined || identity === undefined) return account;
    return account.options.owner === toOwner({ caller, identity }) ? account : undefined;
  }

  /** The account of a caller. Throws an `UpstreamError` when there are too many callers. */
  of(callerInfo: Pick<CallerInfo, "caller" | "identity">): Account {
    const { server, clock, create } = this.#options;
    if (this.#isClosed) throw unavailable(server, "it was stopped or removed");
    let account = this.find(callerInfo);
    if (account === undefined) {
      const { caller } = callerInfo;
      // The name belongs to another identity than before.
      this.#close(this.#accounts.get(caller));
      if (this.#accounts.size >= maxAccounts && !this.#evict())
        throw unavailable(server, "too many callers use it");
      account = create(toOwner(callerInfo), callerInfo);
      this.#accounts.set(caller, account);
      this.#sweepLater();
    }
    account.usedAt = clock.now();
    return account;
  }

  /** A caller was revoked: its account is closed. */
  revoke(caller: string | undefined): void {
    this.#close(this.#accounts.get(caller));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopSweep?.();
    for (const account of this.all) this.#close(account);
    await Promise.all(this.#closing);
  }

  #close(account: Account | undefined): void {
    if (account === undefined) return;
    const { caller } = account.options;
    if (this.#accounts.get(caller) === account) this.#accounts.delete(caller);
    const closed = Promise.resolve(account[Symbol.asyncDispose]()).finally(() =>
      this.#closing.delete(closed),
    );
    this.#closing.add(closed);
  }

  /** Closes the account that was not used for longest, of those that are idle. */
  #evict(): boolean {
    const [oldest] = this.all.filter(isIdle).toSorted((one, other) => one.usedAt - other.usedAt);
    this.#close(oldest);
    return oldest !== undefined;
  }

  #sweepLater(): void {
    const { clock } = this.#options;
    if (this.#accounts.size === 0) return;
    this.#stopSweep ??= clock.timer(idleMs / 2, () => {
      this.#stopSweep = undefined;
      for (const account of this.all)
        if (isIdle(account) && clock.now() - account.usedAt >= idleMs) this.#close(account);
      this.#sweepLater();
    });
  }
}

/** Whether no call, session or watch needs an account. */
function isIdle({ upstream, isAwaited }: Account): boolean {
  if (isAwaited) return false;
  if (upstream === undefined) return true;
  const isInUse = upstream.pool.all.some(({ sessions, watches }) => sessions.size > 0 || watches.size > 0);
  return upstream.inFlight === 0 && !isInUse;
}

function unavailable(server: string, why: string): UpstreamError {
  const text = `${server} cannot be called now, and the call was not sent: ${why}.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}

/**
 * The owner of a caller's accounts, under which its credentials are stored. It includes the issuer and the subject, because a name such as
 * `corp:17` means another person once the config gives `corp` to another issuer. Callers without a name are one owner: the person who runs
 * the gateway, as for `junctor login`.
 */
export function toOwner({ caller, identity }: Pick<CallerInfo, "caller" | "identity">): string {
  if (caller === undefined) return sharedOwner;
  const { issuer, subject } = identity ?? {};
  return JSON.stringify(issuer === undefined ? [caller] : [caller, issuer, subject]);
}

/** The name of the caller in an owner; undefined for callers without a name. */
export function toOwnerName(owner: string): string | undefined {
  if (owner === sharedOwner) return undefined;
  try {
    const [name] = JSON.parse(owner) as readonly unknown[];
    return typeof name === "string" ? name : owner;
  } catch {
    return owner;
  }
}
