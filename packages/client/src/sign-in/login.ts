import type { Clock } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import type { AuthorizationServer } from "oauth4webapi";
import {
  type ClientTerms,
  findClient,
  noRegistration,
  type OAuthClient,
  registerClient,
  requestToken,
  type TokenTerms,
  post,
  TokenRefusal,
  clientRecordId,
  type Credential,
  type CredentialStore,
} from "./credential.ts";
import { nameOf, fetchFailure, parseObject, type GuardedFetch } from "./guarded-fetch.ts";
import { type Discovered, discover, findServerMetadata } from "./metadata.ts";

/** How access to one server is obtained. */
export interface LoginTerms {
  readonly server: URL;
  readonly client: ClientTerms;
  readonly grant: "authorization_code" | "client_credentials" | "enterprise";
  readonly enterprise?: EnterpriseOptions | undefined;
  /** The issuer that the user wrote down. */
  readonly issuer?: string | undefined;
  /** Scopes to request instead of those that the server's metadata lists. */
  readonly scopes?: readonly string[] | undefined;
  /** Whether the server is named in requests to its authorization server; some refuse that. */
  readonly sendsResource: boolean;
  readonly store: CredentialStore;
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
}

/** Why access is requested now. */
export interface LoginOccasion {
  readonly challenge?: BearerChallenge | undefined;
  /** The credential that was not enough, or is no longer valid. */
  readonly earlier?: Credential | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds the authorization server, registers this client if needed, and begins a sign-in. */
export async function prepareLogin(terms: LoginTerms, occasion: LoginOccasion): Promise<PendingLogin> {
  const found = await discoverFor(terms, occasion);
  const { as } = found;
  const client = await obtainClient(terms, as, occasion.signal);
  const asked = scopesFor(terms, found, occasion);
  const isOffline = as.scopes_supported?.includes("offline_access") === true;
  return beginLogin({
    as,
    client,
    resource: terms.sendsResource ? found.resource : undefined,
    scopes: isOffline ? [...new Set([...asked, "offline_access"])] : asked,
    redirectUrl: terms.client.redirectUrl,
    server: terms.server,
  });
}

/**
 * Checks whether a sign-in could begin, without beginning one. Rejects with the `AuthorizationError` that the sign-in would end with, as
 * far as that is known before.
 */
export async function examineLogin(terms: LoginTerms): Promise<void> {
  const { as } = await discoverFor(terms, {});
  if (findClient(as, terms.client) !== undefined || as.registration_endpoint !== undefined) return;
  throw noRegistration(as, terms.client, terms.server);
}

/** Obtains access without a person: for the program itself, or through an enterprise. */
export async function loginByMachine(terms: LoginTerms, occasion: LoginOccasion): Promise<Credential> {
  const { server, client: clientTerms, enterprise, fetch, clock, sendsResource } = terms;
  const found = await discoverFor(terms, occasion);
  const client = findClient(found.as, clientTerms);
  if (client === undefined || client.origin !== "given") {
    const text = `the grant ${terms.grant} needs a client that its authorization server knows: give oauth.clientId`;
    throw new AuthorizationError("setup", nameOf(server), text);
  }
  const request = {
    as: found.as,
    client,
    privateKey: clientTerms.privateKey,
    resource: sendsResource ? found.resource : undefined,
    scopes: scopesFor(terms, found, occasion),
    server,
    fetch,
    clock,
    signal: occasion.signal,
  };
  return enterprise === undefined ? requestForClient(request) : requestForEnterprise(request, enterprise);
}

/** Whether a server, or its origin, has OAuth metadata. A server that wants a fixed key has none. */
export async function isOAuthOffered(
  { server, fetch, issuer }: LoginTerms,
  signal?: AbortSignal,
): Promise<boolean> {
  const { resource, isGuess } = await discover({ server, fetch, issuer, signal });
  return resource !== undefined || isGuess !== true;
}

async function discoverFor(
  { server, fetch, issuer, client }: LoginTerms,
  { challenge, earlier, signal }: LoginOccasion,
): Promise<Discovered> {
  const found = await discover({ server, fetch, challenge, issuer, signal });
  // A secret that was given for one authorization server must not be shown to another.
  const before = earlier?.issuer.issuer;
  if (client.clientId !== undefined && before !== undefined && before !== found.as.issuer) {
    const text = `it names another authorization server, ${found.as.issuer}, than before, ${before}`;
    throw new AuthorizationError("metadata", nameOf(server), `${text}: if that is right, log out first`);
  }
  return found;
}

/** The client of the config or of a document, or one that was registered, now or before. */
async function obtainClient(
  terms: Pick<LoginTerms, "client" | "store" | "server" | "fetch" | "clock">,
  as: AuthorizationServer,
  signal?: AbortSignal,
): Promise<OAuthClient> {
  const { client, store, server, fetch, clock } = terms;
  const known = findClient(as, client);
  if (known !== undefined) return known;
  const id = clientRecordId(as.issuer, client.redirectUrl);
  return store.alone(id, async () => {
    const kept = (await store.read(id)) as OAuthClient | undefined;
    if (kept !== undefined && (kept.secretEndsAt ?? Number.POSITIVE_INFINITY) > clock.date()) return kept;
    const made = await registerClient({ as, terms: client, server, fetch, signal });
    await store.write(id, made);
    return made;
  });
}

/** The scopes of the config and of the challenge, or all that the server lists if both name none; after a 403 also those granted before. */
function scopesFor(
  { scopes: written }: LoginTerms,
  { scopes: listed, as }: Discovered,
  { challenge, earlier }: LoginOccasion,
): readonly string[] {
  const isSame = earlier?.issuer.issuer === as.issuer;
  const before = challenge?.status === 403 && isSame ? earlier.scopes : [];
  const wanted = challenge?.scopes ?? (written === undefined ? listed : []);
  return [...new Set([...(written ?? []), ...before, ...wanted])];
}

/** A sign-in that has begun: all that its end is checked against. It is JSON, and must be kept secret. */
export interface PendingLogin {
  /** The metadata of the authorization server that the user was sent to. */
  readonly as: AuthorizationServer;
  readonly client: OAuthClient;
  readonly resource?: string;
  readonly scopes: readonly string[];
  readonly redirectUrl: string;
  readonly state: string;
  readonly verifier: string;
  /** The page to open. */
  readonly url: string;
}

interface BeginOptions {
  readonly as: AuthorizationServer;
  readonly client: OAuthClient;
  readonly resource: string | undefined;
  readonly scopes: readonly string[];
  readonly redirectUrl: string;
  readonly server: URL;
}

/** Begins a sign-in by authorization code with PKCE. */
async function beginLogin(options: BeginOptions): Promise<PendingLogin> {
  const { as, client, resource, scopes, redirectUrl, server } = options;
  const { authorization_endpoint: endpoint, code_challenge_methods_supported: methods } = as;
  if (endpoint === undefined)
    throw new AuthorizationError("metadata", nameOf(server), `${as.issuer} has no authorization endpoint`);
  // Without PKCE a code that leaked could be used by others; see the security section of the protocol.
  if (methods?.includes("S256") !== true)
    throw new AuthorizationError("metadata", nameOf(server), `${as.issuer} does not offer PKCE with S256`);
  const { calculatePKCECodeChallenge, generateRandomCodeVerifier, generateRandomState } =
    await import("oauth4webapi");
  const verifier = generateRandomCodeVerifier();
  const state = generateRandomState();
  const url = new URL(endpoint);
  const parameters: { readonly [name: string]: string } = {
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: redirectUrl,
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    ...(resource === undefined ? {} : { resource }),
    // An authorization server gives a refresh token to native clients only after consent (OpenID Connect, section 11).
    ...(scopes.includes("offline_access") ? { prompt: "consent" } : {}),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const kept = resource === undefined ? {} : { resource };
  return { as, client, ...kept, scopes, redirectUrl, state, verifier, url: url.href };
}

type FinishOptions = Pick<TokenTerms, "server" | "fetch" | "clock" | "privateKey" | "signal">;

/**
 * Ends a sign-in with the address that the authorization server sent the user to. Rejects with an `AuthorizationError`, which
 * repeats nothing of an answer of another issuer.
 */
export async function finishLogin(
  pending: PendingLogin,
  callback: URL,
  options: FinishOptions,
): Promise<Credential> {
  const { as, client, resource, scopes, redirectUrl, verifier } = pending;
  const code = await readCode(pending, callback, options.server);
  return requestToken({ ...options, as, client, resource, scopes }, "authorization_code", {
    code,
    redirect_uri: redirectUrl,
    code_verifier: verifier,
  });
}

/** The code in the address that ends a sign-in. Rejects as {@link finishLogin} does. */
async function readCode(pending: PendingLogin, callback: URL, server: URL): Promise<string> {
  const { as, client, redirectUrl, state } = pending;
  const expected = new URL(redirectUrl);
  if (callback.origin !== expected.origin || callback.pathname !== expected.pathname)
    throw new AuthorizationError("callback", nameOf(server), `the answer did not come to ${redirectUrl}`);
  const { validateAuthResponse, AuthorizationResponseError } = await import("oauth4webapi");
  let parameters: URLSearchParams;
  try {
    parameters = validateAuthResponse(as, { client_id: client.clientId }, callback, state);
  } catch (error) {
    if (error instanceof AuthorizationResponseError) {
      const reason = [error.error, error.error_description].filter(Boolean).join(": ");
      const text = reason.replaceAll(/[^\x20-\x7e]/g, " ").slice(0, 300);
      throw new AuthorizationError("refused", nameOf(server), `${as.issuer} refuses: ${text}`);
    }
    const text =
      "the answer does not belong to this sign-in, or is not of the authorization server that was asked";
    throw new AuthorizationError("callback", nameOf(server), `${text}; begin again`);
  }
  const code = parameters.get("code");
  if (code === null || code === "")
    throw new AuthorizationError("callback", nameOf(server), "the answer has no code; begin again");
  return code;
}

/** The identity provider of an enterprise, which decides which servers its users may use. */
export interface EnterpriseOptions {
  /** The issuer of the identity provider. */
  readonly issuer: string;
  /** This client at the identity provider. */
  readonly clientId: string;
  readonly clientSecret?: string;
  /** The ID token of the signed-in user; called for each request. */
  readonly idToken: () => Promise<string>;
}

/** Access for a program that acts for itself. */
function requestForClient(terms: TokenTerms): Promise<Credential> {
  const scope = terms.scopes.join(" ");
  return requestToken(terms, "client_credentials", scope === "" ? {} : { scope });
}

/**
 * Access for a person through an enterprise: the identity provider exchanges the ID token for an authorization grant (RFC 8693), which
 * the authorization server of the MCP server exchanges for an access token (RFC 7523).
 */
async function requestForEnterprise(terms: TokenTerms, enterprise: EnterpriseOptions): Promise<Credential> {
  const { as, resource, scopes, server, fetch, signal } = terms;
  const { issuer, clientId, clientSecret } = enterprise;
  const idp = await findServerMetadata(issuer, [issuer], { server, fetch, signal });
  if (idp === undefined)
    throw new AuthorizationError("metadata", nameOf(server), `${issuer} has no metadata`);
  const client: OAuthClient = {
    clientId,
    origin: "given",
    ...(clientSecret === undefined ? { method: "none" } : { clientSecret, method: "client_secret_basic" }),
  };
  const scope = scopes.join(" ");
  const library = await import("oauth4webapi");
  const response = await post(library, { ...terms, as: idp, client, privateKey: undefined }, tokenExchange, {
    requested_token_type: `${tokenTypes}id-jag`,
    audience: as.issuer,
    ...(resource === undefined ? {} : { resource }),
    ...(scope === "" ? {} : { scope }),
    subject_token: await enterprise.idToken(),
    subject_token_type: `${tokenTypes}id_token`,
  });
  const answer = parseObject(await response.text());
  if (response.status !== 200) {
    const text = fetchFailure(response.status, answer);
    throw new TokenRefusal(server, issuer, String(answer?.["error"]), text);
  }
  const { access_token: assertion, issued_token_type: type } = answer ?? {};
  if (typeof assertion !== "string" || type !== `${tokenTypes}id-jag`)
    throw new AuthorizationError("refused", nameOf(server), `${issuer} answered without a grant`);
  return requestToken(terms, jwtBearer, { assertion, ...(scope === "" ? {} : { scope }) });
}

const tokenTypes = "urn:ietf:params:oauth:token-type:";
const tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange";
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** How to ask an issuer who a person is. `server` is the issuer itself. */
export type IdentityTerms = Pick<LoginTerms, "server" | "client" | "store" | "fetch" | "clock"> & {
  /** The issuer exactly as it names itself. */
  readonly issuer: string;
};

/** A request to identify a person on a page of the issuer. It must be kept secret. */
export interface PendingIdentity extends PendingLogin {
  /** Comes back in the ID token (OpenID Connect Core, section 3.1.2.1). */
  readonly nonce: string;
}

/** Begins to ask an issuer who a person is, by OpenID Connect. */
export async function beginIdentity(terms: IdentityTerms): Promise<PendingIdentity> {
  const { issuer, server, fetch, client: clientTerms } = terms;
  const as = await findServerMetadata(issuer, [issuer], { server, fetch });
  if (as === undefined) throw new AuthorizationError("metadata", nameOf(server), "it has no metadata");
  const client = await obtainClient(terms, as);
  const { redirectUrl } = clientTerms;
  const pending = await beginLogin({
    as,
    client,
    resource: undefined,
    scopes: ["openid"],
    redirectUrl,
    server,
  });
  const { generateRandomNonce } = await import("oauth4webapi");
  const nonce = generateRandomNonce();
  const url = new URL(pending.url);
  url.searchParams.set("nonce", nonce);
  return { ...pending, url: url.href, nonce };
}

/** The subject that the issuer names. Rejects with an `AuthorizationError`, which repeats nothing of the answer. */
export async function finishIdentity(
  pending: PendingIdentity,
  callback: URL,
  terms: IdentityTerms,
): Promise<string> {
  const { as, client, redirectUrl, verifier, nonce } = pending;
  const { server, fetch, issuer, client: clientTerms } = terms;
  const code = await readCode(pending, callback, server);
  const library = await import("oauth4webapi");
  const parameters = { code, redirect_uri: redirectUrl, code_verifier: verifier };
  const { privateKey } = clientTerms;
  const response = await post(
    library,
    { as, client, privateKey, server, fetch },
    "authorization_code",
    parameters,
  );
  try {
    // The answer came straight from the issuer, so TLS vouches for it (OpenID Connect Core, section 3.1.3.7).
    const answer = await library.processAuthorizationCodeResponse(
      as,
      { client_id: client.clientId },
      response,
      { expectedNonce: nonce, requireIdToken: true },
    );
    const claims = library.getValidatedIdTokenClaims(answer);
    if (claims?.iss === issuer) return claims.sub;
  } catch {
    // Not reported: the library's error holds the answer, and with it the tokens.
  }
  throw new AuthorizationError("refused", nameOf(server), "it did not say who signed in");
}
