import type { Clock } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";
import type { CallerInfo } from "@junctor/core/provider";
import { sharedOwner } from "../credentials/index.ts";
import type { Account } from "./account.ts";

interface AccountsOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly create: (owner: string, caller: Pick<CallerInfo, "caller" | "identity">) => Account;
}

/** Most callers of one server whose accounts are held at the same time. */
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
  const isHeard = upstream.pool.all.some(({ sessions, watches }) => sessions.size > 0 || watches.size > 0);
  return upstream.inFlight === 0 && !isHeard;
}

function unavailable(server: string, why: string): UpstreamError {
  const text = `${server} cannot be called now, and the call was not sent: ${why}.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}

/**
 * The owner of a caller's accounts, under which its credentials are stored. It has the issuer and the subject beside the name, because a
 * name such as `corp:17` means another person once the config gives `corp` to another issuer. Callers without a name are one owner: the
 * person who runs the gateway, as for `junctor login`.
 */
export function toOwner({ caller, identity }: Pick<CallerInfo, "caller" | "identity">): string {
  if (caller === undefined) return sharedOwner;
  const { issuer, subject } = identity ?? {};
  return JSON.stringify(issuer === undefined ? [caller] : [caller, issuer, subject]);
}

/** The name of the caller that an owner is; undefined for callers without one. */
export function toOwnerName(owner: string): string | undefined {
  if (owner === sharedOwner) return undefined;
  try {
    const [name] = JSON.parse(owner) as readonly unknown[];
    return typeof name === "string" ? name : owner;
  } catch {
    return owner;
  }
}
