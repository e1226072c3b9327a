import { createHash } from "node:crypto";
import type { Authorizer, CredentialStore } from "@junctor/client";
import type { Credential } from "@junctor/client/internal";
import { type Awaitable, type Clock, timedOut, waitFor, createDeferred } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import type { Caller } from "@junctor/core/mcp";
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

/**
 * The account of one caller at one server: its credential in the store, and an upstream that uses it and no other. Nothing that the
 * server says on it is shown to another caller.
 */
export interface Account extends AsyncDisposable {
  readonly options: AccountOptions;
  /** When it was last used. */
  usedAt: number;
  readonly upstream: Upstream | undefined;
  readonly need: Need | undefined;
  /** Whether a credential was there when it was last looked for. */
  readonly wasConnected: boolean;
  /** Whether calls wait for the person. */
  readonly isAwaited: boolean;
  /** Lists that stay though the upstream is gone, for a caller that has to connect again. */
  readonly kept: Listed | undefined;
  /** A hash that identifies the current credential, so that a wait notices another one; undefined where there is none. */
  credentialName(): Promise<string | undefined>;
  /** Whether the store has a credential that the server is not known to refuse. */
  isConnected(): Awaitable<boolean>;
  /** The upstream of the caller; a new one where there is none. */
  open(): Upstream;
  /** Ends the upstream; with `keepsLists`, what it listed stays known. */
  close(keepsLists?: boolean): Promise<void>;
  /** The person has connected the account: a new credential is in the store. */
  connected(): void;
  /** Calls back once when the person has connected the account. */
  onConnected(listener: () => void): void;
  /** Waits for the person to give another credential than the named one, but not for longer than this. Rejects with the signal's reason. */
  untilConnected(before: string | undefined, maxMs: number, signal: AbortSignal): Promise<boolean>;
}

/** How long a known credential is trusted before it is looked up again: another process may have logged the caller out. */
const recheckMs = 5000;
/** How often a call that waits for the person looks into the store, where another process may write. */
const pollMs = 1000;
/** Most listeners that wait for the person. */
const maxListeners = 64;

export function createAccount(options: AccountOptions): Account {
  const { store, id, clock } = options;
  const listeners = new Set<() => void>();
  let upstream: Upstream | undefined;
  let need: Need | undefined;
  let kept: Listed | undefined;
  let isKnown = false;
  let checkedAt = 0;
  let waiting = 0;
  /** The authorizer of the credential that is in use; a new one reads the store. */
  let authorizer: Authorizer | undefined;
  /** Settles when the person has connected the account. */
  let arrival = createDeferred<void>();
  const read = async (): Promise<Credential | undefined> => (await store.read(id)) as Credential | undefined;

  const close: Account["close"] = async (keepsLists = false) => {
    const last = upstream;
    upstream = undefined;
    authorizer = undefined;
    if (last === undefined) return;
    kept = keepsLists && last.isListed ? last.listedFor() : undefined;
    await last[Symbol.asyncDispose]();
  };
  const found = (stored: Credential | undefined): boolean => {
    const isGone = stored === undefined && isKnown;
    const isRefused = need !== undefined && stored?.accessToken === need.token;
    isKnown = stored !== undefined && !isRefused;
    checkedAt = clock.now();
    if (isKnown) need = undefined;
    // Its authorizer still has the token of a credential that was taken away.
    if (isGone) void close(true);
    return isKnown;
  };
  const isConnected: Account["isConnected"] = () => {
    const isFresh = clock.now() - checkedAt < recheckMs;
    return isKnown && need === undefined && isFresh ? true : read().then(found);
  };
  const credentialName: Account["credentialName"] = async () => {
    const stored = await read();
    return stored && createHash("sha256").update(stored.accessToken).digest("hex").slice(0, 16);
  };
  const current = (): Authorizer => (authorizer ??= options.createAuthorizer());
  /** An authorizer whose refusals are remembered. The page of the gateway has the person sign in, and not the request. */
  const watched: Authorizer = {
    token: () => current().token(),
    refused: async (challenge, refusal) => {
      try {
        return await current().refused(challenge, refusal);
      } catch (error) {
        // A credential that lacks a scope is good for other calls.
        const isNeed = error instanceof AuthorizationError && error.code === "auth.login_required";
        if (isNeed) need = { challenge: error.challenge, token: refusal.token };
        throw error;
      }
    },
    signIn: () => Promise.resolve(false),
  };

  const account: Account = {
    options,
    usedAt: clock.now(),
    get upstream() {
      return upstream;
    },
    get need() {
      return need;
    },
    get wasConnected() {
      return isKnown;
    },
    get isAwaited() {
      return waiting > 0;
    },
    get kept() {
      return kept;
    },
    credentialName,
    isConnected,
    open: () => (upstream ??= options.createUpstream(account, watched)),
    close,
    connected: () => {
      need = undefined;
      authorizer = undefined;
      isKnown = true;
      checkedAt = clock.now();
      arrival.resolve();
      arrival = createDeferred();
      for (const tell of listeners) tell();
      listeners.clear();
    },
    onConnected: (listener) => {
      if (listeners.size < maxListeners) listeners.add(listener);
    },
    untilConnected: async (before, maxMs, signal) => {
      const until = clock.now() + maxMs;
      waiting++;
      try {
        for (;;) {
          const { promise } = arrival;
          if ((await isConnected()) && (await credentialName()) !== before) return true;
          const leftMs = until - clock.now();
          if (leftMs <= 0) return false;
          const waited = await waitFor(promise, { ms: Math.min(leftMs, pollMs), clock, signal });
          if (waited !== timedOut) return true;
        }
      } finally {
        waiting--;
      }
    },
    [Symbol.asyncDispose]: async () => {
      listeners.clear();
      await close();
    },
  };
  return account;
}
