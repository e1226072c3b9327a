import type { Awaitable } from "../../async/awaitable.ts";
import { AuthorizationError, type BearerChallenge } from "../../errors/authorization-error.ts";
import { finishLogin } from "./code-flow.ts";
import { clientRecordId, type Credential } from "./credential.ts";
import { nameOf } from "./fetch-json.ts";
import { loginByMachine, type LoginTerms, prepareLogin } from "./login.ts";
import { renewCredential } from "./renewal.ts";
import { TokenRefusal } from "./token-request.ts";

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
  /** What a person does about a missing sign-in, for messages. */
  readonly advice: string;
  /** Told of what becomes of the credential. */
  readonly onEvent?: ((event: CredentialEvent) => void) | undefined;
}

/** What became of a credential. */
interface CredentialEvent {
  readonly kind: "login" | "refresh" | "refresh_failed";
  readonly issuer: string;
  readonly clientId: string;
  /** Why it failed. */
  readonly reason?: string;
}

/** A token is renewed so long before it ends. */
const earlyMs = 60_000;

export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { terms, id, open, advice, onEvent } = options;
  const { store, server, clock, grant } = terms;
  const isMachine = grant !== "authorization_code";
  let current: Credential | undefined;
  let isRead = false;
  let renewing: Promise<Credential | undefined> | undefined;
  let signingIn: Promise<boolean> | undefined;

  const read = async (): Promise<Credential | undefined> => {
    current = (await store.read(id)) as Credential | undefined;
    isRead = true;
    return current;
  };
  const keep = async (credential: Credential, kind: "login" | "refresh"): Promise<Credential> => {
    // First written, then used: a token that is used and lost would cost the sign-in.
    await store.write(id, credential);
    current = credential;
    isRead = true;
    onEvent?.({ kind, issuer: credential.issuer.issuer, clientId: credential.client.clientId });
    return credential;
  };
  const isDue = ({ expiresAt }: Credential): boolean =>
    expiresAt !== undefined && expiresAt - earlyMs <= clock.date();
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
  const renew = (used: Credential): Promise<Credential | undefined> =>
    (renewing ??= store
      .alone(id, async () => {
        const stored = await read();
        if (stored === undefined || (stored.accessToken !== used.accessToken && !isDue(stored)))
          return stored;
        if (stored.refreshToken === undefined) return undefined;
        try {
          return await keep(await renewCredential(terms, stored), "refresh");
        } catch (error) {
          const { issuer, client } = stored;
          const reason = error instanceof Error ? error.message : String(error);
          onEvent?.({ kind: "refresh_failed", issuer: issuer.issuer, clientId: client.clientId, reason });
          if (!(error instanceof TokenRefusal)) throw error;
          if (error.error === "invalid_client" && client.origin === "registered")
            await store.remove(clientRecordId(issuer.issuer, client.redirectUrl ?? ""));
          if (error.error !== "invalid_grant" && error.error !== "invalid_client") throw error;
          await store.remove(id);
          current = undefined;
          return undefined;
        }
      })
      .finally(() => {
        renewing = undefined;
      }));

  const obtain = (challenge: BearerChallenge | undefined, signal?: AbortSignal): Promise<Credential> =>
    store.alone(id, async () => {
      const credential = await loginByMachine(terms, { challenge, earlier: current, signal });
      return keep(credential, "login");
    });

  /** The token of a credential that ends soon, or ended: a new one where that can be had. */
  const renewed = async (due: Credential): Promise<string | undefined> => {
    try {
      const fresh = isMachine ? await obtain(undefined) : await renew(due);
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

  const refused: Authorizer["refused"] = async (challenge, { token, isRetry, signal }) => {
    const isScope = challenge.status === 403;
    if (isScope && challenge.error !== "insufficient_scope") return false;
    const known = current ?? (await read());
    // Another request has renewed it meanwhile.
    if (known !== undefined && known.accessToken !== token) return true;
    if (isMachine) return !isRetry && (await obtain(challenge, signal)).accessToken !== token;
    if (!isScope && !isRetry && known !== undefined) {
      const fresh = await renew(known);
      if (fresh !== undefined && fresh.accessToken !== token) return true;
    }
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
    await keep(
      await finishLogin(pending, new URL(callback), { server, fetch, clock, privateKey, signal }),
      "login",
    );
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
