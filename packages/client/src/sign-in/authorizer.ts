import { type Clock, systemClock, type Awaitable } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  requestToken,
  TokenRefusal,
  createMemoryStore,
  credentialId,
  type CredentialStore,
  type Credential,
  clientRecordId,
  toServer,
} from "./credential.ts";
import { nameOf, createGuardedFetch } from "./guarded-fetch.ts";
import {
  finishLogin,
  isOAuthOffered,
  loginByMachine,
  type LoginTerms,
  prepareLogin,
  type EnterpriseOptions,
} from "./login.ts";

/** How a client obtains access to a server that wants OAuth. Everything may be left out. */
export interface AuthorizationOptions {
  /**
   * Opens a page for the user, and resolves with the URL that the sign-in ended at, which begins with `redirectUrl`. Without it
   * no one can sign in; a request that needs a sign-in rejects with an `AuthorizationError`.
   */
  readonly open?: OpenPage;
  /** Where the authorization server sends the user at the end of the sign-in; `http://127.0.0.1:33418/callback`. */
  readonly redirectUrl?: string;
  /** The id of an OAuth client that the authorization server knows. Without it this client registers itself. */
  readonly clientId?: string;
  /** The secret of that client, if it has one. */
  readonly clientSecret?: string;
  /** PKCS #8 in PEM: the client signs (`private_key_jwt`) instead of showing a secret. */
  readonly privateKey?: string;
  /** The URL of a document that describes the client: its id where the authorization server reads such documents. */
  readonly clientDocument?: string;
  /** The name under which the client registers itself; `Junctor`. */
  readonly clientName?: string;
  /** The issuer to ask, if the server names no issuer, or one whose metadata has another name. */
  readonly issuer?: string;
  /** Scopes to ask for, instead of those that the server's metadata lists. */
  readonly scopes?: readonly string[];
  /** False: the server is not named in requests to its authorization server, which some refuse (RFC 8707). */
  readonly resource?: boolean;
  /** `client_credentials`: the program acts for itself, by `clientId` and `clientSecret` or `privateKey`. */
  readonly grant?: "authorization_code" | "client_credentials";
  /** Access granted by an enterprise's identity provider instead of a sign-in. */
  readonly enterprise?: EnterpriseOptions;
  /** Where credentials are kept; in memory when left out. */
  readonly store?: CredentialStore;
}

const authorizationOptionKeys: KeysOf<AuthorizationOptions> = {
  ...keys("open redirectUrl clientId clientSecret privateKey clientDocument clientName issuer"),
  ...keys("scopes resource grant enterprise store"),
};

/** The port is fixed, because some authorization servers compare it with the registered one. */
export const defaultRedirectUrl = "http://127.0.0.1:33418/callback";

/** The authorizer of `connect(url, { authorization })`. */
export function createClientAuthorizer(
  server: URL,
  options: AuthorizationOptions,
  clock: Clock = systemClock,
): Authorizer {
  assertKnownKeys("connect: authorization", options, authorizationOptionKeys);
  const { redirectUrl = defaultRedirectUrl, clientName = "Junctor", enterprise, issuer } = options;
  const { clientId, clientSecret, privateKey, clientDocument, scopes } = options;
  const named = [issuer, enterprise?.issuer].flatMap((url) =>
    url === undefined ? [] : [new URL(url).hostname],
  );
  const isLocal = new URL(redirectUrl).protocol === "http:";
  return createAuthorizer({
    id: credentialId(server, "shared"),
    open: options.open,
    advice: "pass authorization: { open } to connect()",
    terms: {
      server,
      client: {
        clientId,
        clientSecret,
        privateKey,
        clientDocument,
        redirectUrl,
        clientName,
        applicationType: isLocal ? "native" : "web",
      },
      grant: enterprise === undefined ? (options.grant ?? "authorization_code") : "enterprise",
      enterprise,
      issuer,
      scopes,
      sendsResource: options.resource !== false,
      store: options.store ?? createMemoryStore(),
      fetch: createGuardedFetch({ server, named, clock }),
      clock,
    },
  });
}

/** Gives the requests to one server their token. */
export interface Authorizer {
  /** The token for the next request; undefined when there is none. A token that expires soon is renewed first. */
  token(): Awaitable<string | undefined>;
  /**
   * Call it when the server refused a request. Resolves with true when the request is to be sent again with another token, and with false
   * when another token would not help. Rejects with an `AuthorizationError` when a person must sign in first.
   */
  refused(challenge: BearerChallenge, refusal: RefusedRequest): Promise<boolean>;
  /** Asks a person to sign in, and resolves with true; with false when nobody can be asked. */
  signIn(error: AuthorizationError, signal?: AbortSignal): Promise<boolean>;
}

/** A request that its server refused. */
interface RefusedRequest {
  readonly token: string | undefined;
  /** Whether it was refused before: then a renewed token did not help. */
  readonly isRetry: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Opens a page for the user, and resolves with the URL that the sign-in ended at. */
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
   * Renews the stored credential in another process, unless its token is no longer this one; resolves when that process is done. So a
   * kill of this process between the answer and its storage loses nothing.
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
  /** The caller that owns the credential; undefined if all callers share it. */
  readonly caller?: string;
}

/** Tokens are renewed this long before they expire; short-lived ones at half their life. */
const earlyMs = 60_000;

/** How long it is remembered whether a server offers OAuth. */
const offerMs = 300_000;

/** The authorizer of one server. Its credential is in a store that other processes use too. */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  return new StoredAuthorizer(options);
}

class StoredAuthorizer implements Authorizer {
  readonly #options: AuthorizerOptions;
  readonly #isMachine: boolean;
  #current: Credential | undefined;
  #isRead = false;
  #renewing: Promise<Credential | undefined> | undefined;
  #obtaining: Promise<Credential> | undefined;
  #offer: { readonly until: number; readonly found: Promise<boolean> } | undefined;
  #signingIn: Promise<boolean> | undefined;

  constructor(options: AuthorizerOptions) {
    this.#options = options;
    this.#isMachine = options.terms.grant !== "authorization_code";
  }

  token(): Awaitable<string | undefined> {
    if (this.#isRead) return this.#tokenOf(this.#current);
    return this.#read().then((credential) => this.#tokenOf(credential));
  }

  async refused(challenge: BearerChallenge, { token, isRetry, signal }: RefusedRequest): Promise<boolean> {
    const isScope = challenge.status === 403;
    if (isScope && challenge.error !== "insufficient_scope") return false;
    const known = await this.#read();
    // Another request or process has renewed it meanwhile.
    if (known !== undefined && known.accessToken !== token) return true;
    if (this.#isMachine) return !isRetry && (await this.#obtain(challenge, signal)).accessToken !== token;
    if (!isScope && !isRetry && known !== undefined) {
      const fresh = await this.#renew(known);
      if (fresh !== undefined && fresh.accessToken !== token) return true;
    }
    // Not every 401 is about OAuth.
    const mayBeOther = !isScope && this.#options.open === undefined && known === undefined;
    if (mayBeOther && !(await this.#isOffered(challenge, signal))) return false;
    throw this.#loginRequired(challenge);
  }

  signIn(error: AuthorizationError, signal?: AbortSignal): Promise<boolean> {
    const { open } = this.#options;
    if (open === undefined) return Promise.resolve(false);
    return (this.#signingIn ??= this.#signInBy(open, error, signal).finally(() => {
      this.#signingIn = undefined;
    }));
  }

  #tokenOf(credential: Credential | undefined): Awaitable<string | undefined> {
    if (credential === undefined) return undefined;
    const isRenewable = this.#isMachine || credential.refreshToken !== undefined;
    return this.#isDue(credential) && isRenewable ? this.#renewed(credential) : credential.accessToken;
  }

  /** The token for a credential that expires soon, or has expired: a new one if possible. */
  async #renewed(due: Credential): Promise<string | undefined> {
    const hasExpired = (): boolean =>
      due.expiresAt !== undefined && due.expiresAt <= this.#options.terms.clock.date();
    try {
      const fresh = this.#isMachine ? await this.#obtain() : await this.#renew(due);
      if (fresh !== undefined) return fresh.accessToken;
    } catch (error) {
      // The authorization server may be back before the token expires.
      if (hasExpired()) throw error;
    }
    return hasExpired() ? undefined : due.accessToken;
  }

  #renew(used: Credential): Promise<Credential | undefined> {
    return (this.#renewing ??= this.#renewOnce(used).finally(() => {
      this.#renewing = undefined;
    }));
  }

  /** A newer credential than `used`: one that was stored meanwhile, else one for the refresh token. Undefined when there is none. */
  async #renewOnce(used: Credential): Promise<Credential | undefined> {
    const { terms, id, renewElsewhere } = this.#options;
    const { server, client } = terms;
    const isStale = (stored: Credential): boolean =>
      stored.accessToken === used.accessToken || this.#isDue(stored);
    if (this.#current !== undefined && !isStale(this.#current)) return this.#current;
    try {
      if (renewElsewhere === undefined)
        await renewStored({ ...terms, privateKey: client.privateKey }, id, isStale);
      else await renewElsewhere(id, used.accessToken);
      const stored = await this.#read();
      if (stored?.accessToken === used.accessToken) {
        if (stored.refreshToken === undefined) return undefined;
        throw new AuthorizationError("unreachable", nameOf(server), "its token could not be renewed");
      }
      if (stored === undefined)
        this.#report("refresh_failed", used, "the authorization server takes it no more");
      else this.#report("refresh", stored);
      return stored;
    } catch (error) {
      this.#report("refresh_failed", used, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  #obtain(challenge?: BearerChallenge, signal?: AbortSignal): Promise<Credential> {
    const { terms, id } = this.#options;
    return (this.#obtaining ??= terms.store
      .alone(id, async () => {
        const used = this.#current?.accessToken;
        const stored = await this.#read();
        // Another process may have obtained one while this one waited.
        if (stored !== undefined && stored.accessToken !== used && !this.#isDue(stored)) return stored;
        return this.#keep(await loginByMachine(terms, { challenge, earlier: stored, signal }));
      })
      .finally(() => {
        this.#obtaining = undefined;
      }));
  }

  async #signInBy(page: OpenPage, error: AuthorizationError, signal?: AbortSignal): Promise<boolean> {
    const { terms } = this.#options;
    const { server, fetch, clock, client } = terms;
    const earlier = this.#current ?? (await this.#read());
    const pending = await prepareLogin(terms, { challenge: error.challenge, earlier, signal });
    const callback = await page(pending.url, { redirectUrl: pending.redirectUrl, signal });
    const { privateKey } = client;
    await this.#keep(
      await finishLogin(pending, new URL(callback), { server, fetch, clock, privateKey, signal }),
    );
    return true;
  }

  async #isOffered(challenge: BearerChallenge, signal?: AbortSignal): Promise<boolean> {
    const { terms } = this.#options;
    if (challenge.resourceMetadata !== undefined) return true;
    if (this.#offer === undefined || this.#offer.until <= terms.clock.now()) {
      const found = isOAuthOffered(terms, signal).catch(() => true);
      this.#offer = { until: terms.clock.now() + offerMs, found };
    }
    return this.#offer.found;
  }

  async #read(): Promise<Credential | undefined> {
    const { terms, id } = this.#options;
    this.#current = (await terms.store.read(id)) as Credential | undefined;
    this.#isRead = true;
    return this.#current;
  }

  async #keep(credential: Credential): Promise<Credential> {
    const { terms, id } = this.#options;
    // Write it before using it: if a token in use were lost, the user would have to sign in again.
    await terms.store.write(id, credential);
    this.#current = credential;
    this.#isRead = true;
    this.#report("login", credential);
    return credential;
  }

  #isDue({ expiresAt, lifetimeMs = earlyMs }: Credential): boolean {
    const now = this.#options.terms.clock.date();
    return expiresAt !== undefined && expiresAt - Math.min(earlyMs, lifetimeMs / 2) <= now;
  }

  #report(kind: CredentialEvent["kind"], { issuer, client }: Credential, reason?: string): void {
    this.#options.onEvent?.({
      kind,
      issuer: issuer.issuer,
      clientId: client.clientId,
      ...(reason === undefined ? {} : { reason }),
    });
  }

  #loginRequired(challenge: BearerChallenge): AuthorizationError {
    const { terms, advice } = this.#options;
    const isScope = challenge.status === 403;
    const scopes = challenge.scopes === undefined ? "" : ` (${challenge.scopes.join(" ")})`;
    const text = isScope ? `it wants more access than was granted${scopes}` : "it wants you to sign in";
    const reason = isScope ? "insufficient_scope" : "login_required";
    return new AuthorizationError(reason, nameOf(terms.server), `${text}: ${advice}`, { challenge });
  }
}

/** The part of the terms that a renewal needs. */
type RenewalTerms = Pick<LoginTerms, "server" | "fetch" | "clock" | "store"> & {
  readonly privateKey?: string | undefined;
};

/**
 * Renews the stored credential of an id, unless another process did, and stores the new one before resolving with it. Undefined when a
 * person must sign in again: nothing is stored, or the refresh token is no longer valid. Rejects when the authorization server could not
 * be asked, and then keeps the stored credential.
 */
export function renewStored(
  terms: RenewalTerms,
  id: string,
  isStale: (stored: Credential) => boolean,
): Promise<Credential | undefined> {
  const { store } = terms;
  return store.alone(id, async () => {
    const stored = (await store.read(id)) as Credential | undefined;
    if (stored === undefined || !isStale(stored)) return stored;
    if (stored.refreshToken === undefined) return undefined;
    const { issuer, client } = stored;
    try {
      const renewed = await renew(terms, stored);
      await store.write(id, renewed);
      return renewed;
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      if (error.error === "invalid_client" && client.origin === "registered")
        await store.remove(clientRecordId(issuer.issuer, client.redirectUrl ?? ""));
      if (error.error !== "invalid_grant" && error.error !== "invalid_client") throw error;
      await store.remove(id);
      return undefined;
    }
  });
}

async function renew(terms: RenewalTerms, stored: Credential): Promise<Credential> {
  const { server, fetch, clock, privateKey } = terms;
  const { issuer, resource, scopes, client, refreshToken = "" } = stored;
  const as = toServer(issuer);
  const renewed = await requestToken(
    { as, client, privateKey, resource, scopes, server, fetch, clock },
    "refresh_token",
    { refresh_token: refreshToken },
  );
  // The refresh token stays valid unless the answer has a new one (RFC 6749, section 6).
  return { ...renewed, issuer, refreshToken: renewed.refreshToken ?? refreshToken };
}
