import type { Awaitable } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import { finishLogin } from "./code-flow.ts";
import type { Credential } from "./credential.ts";
import { nameOf } from "./fetch-json.ts";
import { isOAuthOffered, loginByMachine, type LoginTerms, prepareLogin } from "./login.ts";
import { renewStored } from "./renewal.ts";

/** Gives the requests to one server their token. */
export interface Authorizer {
  /** The token for the next request; undefined when there is none. One that ends soon is renewed first. */
  token(): Awaitable<string | undefined>;
  /**
   * The server refused a request. Resolves with true when it is to be sent again, with another token, and with false when another token
   * would not help. Rejects with an `AuthorizationError` when a person must sign in first.
   */
  refused(challenge: BearerChallenge, refusal: RefusedRequest): Promise<boolean>;
  /** Has a person sign in, and resolves with true; with false when there is no one to be asked. */
  signIn(error: AuthorizationError, signal?: AbortSignal): Promise<boolean>;
}

/** A request that its server refused. */
interface RefusedRequest {
  readonly token: string | undefined;
  /** Whether it was refused before: then a token that was renewed did not help. */
  readonly isRetry: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Opens a page for the user, and resolves with the address that the page sent the user to in the end. */
export type OpenPage = (
  url: string,
  context: { readonly redirectUrl: string; readonly signal?: AbortSignal | undefined },
) => Promise<string | URL>;

interface AuthorizerOptions {
  readonly terms: LoginTerms;
  /** The id of the credential in the store. */
  readonly id: string;
  readonly open?: OpenPage | undefined;
  /**
   * Renews the stored credential in another process, unless its token is no longer this one; resolves when that has ended. So a kill of
   * this process between the answer and its storage loses nothing.
   */
  readonly renewElsewhere?: ((id: string, token: string) => Promise<void>) | undefined;
  /** What a person does about a missing sign-in, for messages. */
  readonly advice: string;
  /** Called for each event of the credential. */
  readonly onEvent?: ((event: CredentialEvent) => void) | undefined;
}

/** A credential was obtained, renewed or refused. */
export interface CredentialEvent {
  readonly kind:
    | "login"
    | "refresh"
    | "refresh_failed"
    | "connect_started"
    | "connect_done"
    | "connect_refused";
  readonly issuer?: string;
  readonly clientId?: string;
  /** Why it failed. */
  readonly reason?: string;
  /** The caller whose own it is; none where all callers use it. */
  readonly caller?: string;
}

/** Tokens are renewed this long before they expire; short-lived ones at half their life. */
const earlyMs = 60_000;

/** How long an answer on whether a server offers OAuth is kept. */
const offerMs = 300_000;

export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { terms, id, open, advice, renewElsewhere, onEvent } = options;
  const { store, server, clock, grant } = terms;
  const isMachine = grant !== "authorization_code";
  let current: Credential | undefined;
  let isRead = false;
  let renewing: Promise<Credential | undefined> | undefined;
  let obtaining: Promise<Credential> | undefined;
  let offer: { readonly until: number; readonly found: Promise<boolean> } | undefined;
  let signingIn: Promise<boolean> | undefined;

  const read = async (): Promise<Credential | undefined> => {
    current = (await store.read(id)) as Credential | undefined;
    isRead = true;
    return current;
  };
  const tell = (kind: CredentialEvent["kind"], { issuer, client }: Credential, reason?: string): void =>
    onEvent?.({
      kind,
      issuer: issuer.issuer,
      clientId: client.clientId,
      ...(reason === undefined ? {} : { reason }),
    });
  const keep = async (credential: Credential): Promise<Credential> => {
    // First written, then used: a token that is used and lost would cost the sign-in.
    await store.write(id, credential);
    current = credential;
    isRead = true;
    tell("login", credential);
    return credential;
  };
  const isDue = ({ expiresAt, lifetimeMs = earlyMs }: Credential): boolean =>
    expiresAt !== undefined && expiresAt - Math.min(earlyMs, lifetimeMs / 2) <= clock.date();
  const isOver = ({ expiresAt }: Credential): boolean => expiresAt !== undefined && expiresAt <= clock.date();
  const loginRequired = (challenge?: BearerChallenge): AuthorizationError => {
    const isScope = challenge?.status === 403;
    const scopes = challenge?.scopes === undefined ? "" : ` (${challenge.scopes.join(" ")})`;
    const text = isScope ? `it wants more access than was granted${scopes}` : "it wants you to sign in";
    const facts = challenge === undefined ? {} : { challenge };
    const reason = isScope ? "insufficient_scope" : "login_required";
    return new AuthorizationError(reason, nameOf(server), `${text}: ${advice}`, facts);
  };

  /** A newer credential than `used`: one that was stored meanwhile, else one for the refresh token. Undefined when there is none. */
  const renewOnce = async (used: Credential): Promise<Credential | undefined> => {
    const isStale = (stored: Credential): boolean => stored.accessToken === used.accessToken || isDue(stored);
    if (current !== undefined && current.accessToken !== used.accessToken && !isDue(current)) return current;
    try {
      if (renewElsewhere === undefined)
        await renewStored({ ...terms, privateKey: terms.client.privateKey }, id, isStale);
      else await renewElsewhere(id, used.accessToken);
      const stored = await read();
      if (stored?.accessToken === used.accessToken) {
        if (stored.refreshToken === undefined) return undefined;
        throw new AuthorizationError("unreachable", nameOf(server), "its token could not be renewed");
      }
      if (stored === undefined) tell("refresh_failed", used, "the authorization server takes it no more");
      else tell("refresh", stored);
      return stored;
    } catch (error) {
      tell("refresh_failed", used, error instanceof Error ? error.message : String(error));
      throw error;
    }
  };
  const renew = (used: Credential): Promise<Credential | undefined> =>
    (renewing ??= renewOnce(used).finally(() => {
      renewing = undefined;
    }));

  const obtain = (challenge?: BearerChallenge, signal?: AbortSignal): Promise<Credential> =>
    (obtaining ??= store
      .alone(id, async () => {
        const used = current?.accessToken;
        const stored = await read();
        // Another process may have obtained one while this one waited.
        if (stored !== undefined && stored.accessToken !== used && !isDue(stored)) return stored;
        return keep(await loginByMachine(terms, { challenge, earlier: stored, signal }));
      })
      .finally(() => {
        obtaining = undefined;
      }));

  /** The token of a credential that ends soon, or ended: a new one where that can be had. */
  const renewed = async (due: Credential): Promise<string | undefined> => {
    try {
      const fresh = isMachine ? await obtain() : await renew(due);
      if (fresh !== undefined) return fresh.accessToken;
    } catch (error) {
      // The authorization server may be back before the token ends.
      if (isOver(due)) throw error;
    }
    return isOver(due) ? undefined : due.accessToken;
  };
  const tokenOf = (credential: Credential | undefined): Awaitable<string | undefined> => {
    if (credential === undefined) return undefined;
    const isRenewable = isMachine || credential.refreshToken !== undefined;
    return isDue(credential) && isRenewable ? renewed(credential) : credential.accessToken;
  };

  const isOffered = async (challenge: BearerChallenge, signal?: AbortSignal): Promise<boolean> => {
    if (challenge.resourceMetadata !== undefined) return true;
    if (offer === undefined || offer.until <= clock.now()) {
      const found = isOAuthOffered(terms, signal).catch(() => true);
      offer = { until: clock.now() + offerMs, found };
    }
    return offer.found;
  };

  const refused: Authorizer["refused"] = async (challenge, { token, isRetry, signal }) => {
    const isScope = challenge.status === 403;
    if (isScope && challenge.error !== "insufficient_scope") return false;
    const known = await read();
    // Another request or process has renewed it meanwhile.
    if (known !== undefined && known.accessToken !== token) return true;
    if (isMachine) return !isRetry && (await obtain(challenge, signal)).accessToken !== token;
    if (!isScope && !isRetry && known !== undefined) {
      const fresh = await renew(known);
      if (fresh !== undefined && fresh.accessToken !== token) return true;
    }
    // Not every 401 is about OAuth.
    if (!isScope && open === undefined && known === undefined && !(await isOffered(challenge, signal)))
      return false;
    throw loginRequired(challenge);
  };

  const signInBy = async (
    page: OpenPage,
    error: AuthorizationError,
    signal?: AbortSignal,
  ): Promise<boolean> => {
    const occasion = { challenge: error.challenge, earlier: current ?? (await read()), signal };
    const pending = await prepareLogin(terms, occasion);
    const callback = await page(pending.url, { redirectUrl: pending.redirectUrl, signal });
    const { fetch } = terms;
    const { privateKey } = terms.client;
    await keep(await finishLogin(pending, new URL(callback), { server, fetch, clock, privateKey, signal }));
    return true;
  };

  return {
    token: () => (isRead ? tokenOf(current) : read().then(tokenOf)),
    refused,
    signIn: (error, signal) => {
      if (open === undefined) return Promise.resolve(false);
      return (signingIn ??= signInBy(open, error, signal).finally(() => {
        signingIn = undefined;
      }));
    },
  };
}
