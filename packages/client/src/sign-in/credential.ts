import type { webcrypto } from "node:crypto";
import type { Clock } from "@junctor/core/async";
import { AuthorizationError } from "@junctor/core/errors";
import type * as oauth from "oauth4webapi";
import type { AuthorizationServer, ClientAuth, Client, TokenEndpointResponse } from "oauth4webapi";
import {
  fetchFailure,
  nameOf,
  parseObject,
  toAuthorizationError,
  type GuardedFetch,
} from "./guarded-fetch.ts";
import { toScopes } from "./metadata.ts";

/** The part of an authorization server's metadata that renewing and revoking tokens needs. */
interface TokenIssuer {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string;
}

/** The access that one owner has to one server. */
export interface Credential {
  readonly issuer: TokenIssuer;
  /** The server as its authorization server knows it; sent with every request for a token. */
  readonly resource?: string;
  readonly client: OAuthClient;
  readonly accessToken: string;
  readonly refreshToken?: string;
  /** In ms since the epoch; undefined when the authorization server did not say. */
  readonly expiresAt?: number;
  /** How long the token was valid when it was issued. */
  readonly lifetimeMs?: number;
  /** The granted scopes, or the requested ones if the answer does not say. */
  readonly scopes: readonly string[];
}

/**
 * Keeps credentials, and the clients that were registered, by id. Values are JSON. A value is stored for good when `write`
 * resolves, even if the process is killed then.
 */
export interface CredentialStore {
  read(id: string): Promise<object | undefined>;
  write(id: string, value: object): Promise<void>;
  remove(id: string): Promise<void>;
  /** Runs work alone: no other work runs under the same id, in this process or another. */
  alone<T>(id: string, work: () => Promise<T>): Promise<T>;
}

/** A store in the memory of this process. */
export function createMemoryStore(): CredentialStore {
  const records = new Map<string, object>();
  const queues = new Map<string, Promise<unknown>>();
  return {
    read: (id) => Promise.resolve(records.get(id)),
    write: (id, value) => Promise.resolve(void records.set(id, value)),
    remove: (id) => Promise.resolve(void records.delete(id)),
    alone: (id, work) => {
      const before = queues.get(id) ?? Promise.resolve();
      const done = before.then(work, work);
      const settled = done.then(
        () => {},
        () => {},
      );
      queues.set(id, settled);
      void settled.then(() => {
        if (queues.get(id) === settled) queues.delete(id);
      });
      return done;
    },
  };
}

/** The id of the credential that an owner has for a server. */
export function credentialId(server: URL, owner: string): string {
  return JSON.stringify(["credential", server.href, owner]);
}

/** The id of the client that was registered at an issuer. Credentials of one issuer are never shown to another. */
export function clientRecordId(issuer: string, redirectUrl: string): string {
  return JSON.stringify(["client", issuer, redirectUrl]);
}

/** The metadata of an issuer, as far as a credential stores it. */
export function toServer({ issuer, tokenEndpoint }: TokenIssuer): AuthorizationServer {
  return { issuer, token_endpoint: tokenEndpoint };
}

/** The part of an issuer's metadata that is stored; undefined when it has no token endpoint. */
function toTokenIssuer(as: AuthorizationServer): TokenIssuer | undefined {
  const { issuer, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint } = as;
  if (tokenEndpoint === undefined) return undefined;
  return { issuer, tokenEndpoint, ...(revocationEndpoint === undefined ? {} : { revocationEndpoint }) };
}

/** How a client authenticates at the token endpoint. */
type ClientAuthMethod = "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";

/** A client as one authorization server knows it. */
export interface OAuthClient {
  readonly clientId: string;
  readonly clientSecret?: string;
  readonly method: ClientAuthMethod;
  /** How the authorization server came to know it: by hand, by the URL that is its id, or by registration. */
  readonly origin: "given" | "document" | "registered";
  /** The registered redirect URL, if it was registered. */
  readonly redirectUrl?: string;
  /** When the secret expires, in ms since the epoch. */
  readonly secretEndsAt?: number;
}

/** The facts about a client that do not depend on its authorization server. */
export interface ClientTerms {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** PKCS #8 in PEM: the client signs instead of showing a secret. */
  readonly privateKey?: string | undefined;
  /** The URL of the document that describes the client, which is its id where the authorization server reads such documents. */
  readonly clientDocument?: string | undefined;
  readonly redirectUrl: string;
  readonly applicationType: "native" | "web";
  readonly clientName: string;
}

interface RegisterOptions {
  readonly as: AuthorizationServer;
  readonly terms: ClientTerms;
  readonly server: URL;
  readonly fetch: GuardedFetch;
  readonly signal?: AbortSignal | undefined;
}

/** The client that the user gave, or that the authorization server can find by its URL; undefined when it must be registered. */
export function findClient(as: AuthorizationServer, terms: ClientTerms): OAuthClient | undefined {
  const { clientId, clientSecret, privateKey, clientDocument } = terms;
  if (clientId !== undefined) {
    const method =
      privateKey !== undefined
        ? "private_key_jwt"
        : clientSecret === undefined
          ? "none"
          : pickMethod(as, ["client_secret_basic", "client_secret_post"]);
    return { clientId, origin: "given", method, ...(clientSecret === undefined ? {} : { clientSecret }) };
  }
  if (clientDocument !== undefined && as["client_id_metadata_document_supported"] === true)
    return { clientId: clientDocument, origin: "document", method: "none" };
  return undefined;
}

/** Registers a client (RFC 7591). Rejects with an `AuthorizationError` if the authorization server does not offer it. */
export async function registerClient(options: RegisterOptions): Promise<OAuthClient> {
  const { as, terms, server, fetch, signal } = options;
  const { registration_endpoint: endpoint } = as;
  if (endpoint === undefined) throw noRegistration(as, terms, server);
  const method = pickMethod(as, ["none", "client_secret_basic", "client_secret_post"]);
  const body = JSON.stringify({
    client_name: terms.clientName,
    redirect_uris: [terms.redirectUrl],
    application_type: terms.applicationType,
    grant_types: ["authorization_code", "refresh_token"].filter(
      (grant) => as.grant_types_supported?.includes(grant) !== false,
    ),
    response_types: ["code"],
    token_endpoint_auth_method: method,
  });
  const headers = { "content-type": "application/json" };
  const response = await fetch(new URL(endpoint), { method: "POST", headers, body, signal }).catch(
    (error: unknown) => {
      throw toAuthorizationError(error, server);
    },
  );
  const answer = parseObject(await response.text());
  if (response.status !== 201 && response.status !== 200) {
    const text = `${as.issuer} refuses to register a client: ${fetchFailure(response.status, answer)}`;
    throw new AuthorizationError("setup", nameOf(server), `${text}; give one as oauth.clientId`);
  }
  return toClient(answer ?? {}, { ...options, method });
}

/** The error for an authorization server where clients must be registered by hand. */
export function noRegistration(
  { issuer }: AuthorizationServer,
  { redirectUrl }: ClientTerms,
  server: URL,
): AuthorizationError {
  const text =
    `its authorization server ${issuer} registers no clients by itself: make an OAuth app there with the callback ` +
    `${redirectUrl}, and give its id as oauth.clientId`;
  return new AuthorizationError("setup", nameOf(server), text);
}

/** The registered client. The library's own reader refuses a secret whose expiry the answer leaves out. */
function toClient(
  answer: { readonly [key: string]: unknown },
  { as, terms, server, method }: RegisterOptions & { readonly method: ClientAuthMethod },
): OAuthClient {
  const { client_id: clientId, client_secret: secret, client_secret_expires_at: endsAt } = answer;
  if (typeof clientId !== "string" || clientId === "")
    throw new AuthorizationError("setup", nameOf(server), `${as.issuer} registered a client without an id`);
  const { redirectUrl } = terms;
  const registered = { clientId, origin: "registered", redirectUrl } as const;
  if (typeof secret !== "string") return { ...registered, method: "none" };
  const answeredMethod = answer["token_endpoint_auth_method"];
  const fallback = method === "none" ? pickMethod(as, ["client_secret_basic", "client_secret_post"]) : method;
  return {
    ...registered,
    clientSecret: secret,
    method: isMethod(answeredMethod) ? answeredMethod : fallback,
    ...(typeof endsAt === "number" && endsAt > 0 ? { secretEndsAt: endsAt * 1000 } : {}),
  };
}

function isMethod(value: unknown): value is ClientAuthMethod {
  return value === "none" || value === "client_secret_basic" || value === "client_secret_post";
}

/** The first method that the authorization server offers. If its metadata names no methods, it takes Basic (RFC 8414, section 2). */
function pickMethod(as: AuthorizationServer, methods: readonly ClientAuthMethod[]): ClientAuthMethod {
  const offered = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return methods.find((method) => offered.includes(method)) ?? "client_secret_basic";
}

/** How the client authenticates, as the library takes it. */
export async function toClientAuth(client: OAuthClient, privateKey?: string): Promise<ClientAuth> {
  const { ClientSecretPost, None, PrivateKeyJwt } = await import("oauth4webapi");
  const { method, clientSecret = "" } = client;
  switch (method) {
    case "none":
      return None();
    case "client_secret_post":
      return ClientSecretPost(clientSecret);
    case "client_secret_basic":
      return basic(clientSecret);
    case "private_key_jwt":
      return PrivateKeyJwt(await readPrivateKey(privateKey ?? ""));
  }
}

/** Basic authentication. The library also encodes characters like `-`, which is correct, but some servers do not decode them. */
function basic(secret: string): ClientAuth {
  return (_as, { client_id: id }, _body, headers) => {
    const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
    headers.set("authorization", `Basic ${btoa(pair)}`);
  };
}

const curves: { readonly [name: string]: string } = {
  prime256v1: "P-256",
  secp384r1: "P-384",
  secp521r1: "P-521",
};

/** A private key for signing. Its type determines the algorithm: ES256, ES384, ES512, Ed25519, or RS256. */
async function readPrivateKey(pem: string): Promise<webcrypto.CryptoKey> {
  const { createPrivateKey, subtle } = await import("node:crypto");
  const key = createPrivateKey(pem);
  const der = key.export({ type: "pkcs8", format: "der" });
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const algorithm =
    type === "ec"
      ? { name: "ECDSA", namedCurve: curves[details?.namedCurve ?? ""] ?? "" }
      : type === "ed25519"
        ? { name: "Ed25519" }
        : { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  return subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}

type Library = typeof oauth;

/** What every request for a token needs. */
export interface TokenTerms {
  readonly as: AuthorizationServer;
  readonly client: OAuthClient;
  readonly privateKey?: string | undefined;
  readonly resource: string | undefined;
  /** The requested scopes. */
  readonly scopes: readonly string[];
  readonly server: URL;
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** An authorization server refused a request for a token, with one of the errors of RFC 6749, section 5.2. */
export class TokenRefusal extends AuthorizationError {
  readonly error: string;

  constructor(server: URL, issuer: string, error: string, text: string) {
    super("refused", nameOf(server), `${issuer} refuses: ${text}`);
    this.error = error;
  }
}

/** Requests a token by one grant, and turns the answer into a credential. */
export async function requestToken(
  terms: TokenTerms,
  grant: string,
  parameters: { readonly [name: string]: string },
): Promise<Credential> {
  const { as, client, resource, scopes, clock } = terms;
  const library = await import("oauth4webapi");
  const response = await post(library, terms, grant, {
    ...(resource === undefined ? {} : { resource }),
    ...parameters,
  });
  const { access_token, refresh_token, expires_in, scope } = await readTokens(library, terms, response).catch(
    (error: unknown) => {
      throw withoutSecrets(error, [...Object.values(parameters), client.clientSecret ?? ""], terms.server);
    },
  );
  const issuer = toTokenIssuer(as);
  if (issuer === undefined)
    throw new AuthorizationError("metadata", nameOf(terms.server), "no token endpoint");
  return {
    issuer,
    client,
    accessToken: access_token,
    scopes: scope === undefined ? scopes : toScopes(scope),
    ...(resource === undefined ? {} : { resource }),
    ...(refresh_token === undefined ? {} : { refreshToken: refresh_token }),
    ...(expires_in === undefined
      ? {}
      : { expiresAt: clock.date() + expires_in * 1000, lifetimeMs: expires_in * 1000 }),
  };
}

/** Posts to the token endpoint; the answer may be a refusal. */
export async function post(
  library: Library,
  { as, client, privateKey, server, fetch, signal }: Omit<TokenTerms, "resource" | "scopes" | "clock">,
  grant: string,
  parameters: { readonly [name: string]: string },
): Promise<Response> {
  const { genericTokenEndpointRequest, customFetch, allowInsecureRequests } = library;
  const auth = await toClientAuth(client, privateKey);
  const metadata: Client = { client_id: client.clientId };
  return genericTokenEndpointRequest(
    as,
    metadata,
    auth,
    grant,
    { ...parameters },
    {
      // The guarded fetch refuses URLs that are not HTTPS, except on this machine.
      [allowInsecureRequests]: true,
      [customFetch]: (url: string, { method, headers, body }: FormRequest) =>
        fetch(new URL(url), { method, headers, body: body.toString(), signal }).catch((error: unknown) => {
          throw toAuthorizationError(error, server);
        }),
    },
  );
}

interface FormRequest {
  readonly method: "POST";
  readonly headers: { readonly [name: string]: string };
  readonly body: URLSearchParams;
}

/** Removes the text of a refusal that repeats the code or the refresh token of the request. */
function withoutSecrets(error: unknown, secrets: readonly string[], server: URL): unknown {
  const hasSecret = (text: string): boolean =>
    secrets.some((secret) => secret.length >= minSecret && text.includes(secret));
  if (!(error instanceof AuthorizationError) || !hasSecret(error.message)) return error;
  const code = error instanceof TokenRefusal && !hasSecret(error.error) ? error.error : "";
  return new TokenRefusal(server, "its authorization server", code, code || "it does not say why");
}

/** Shorter texts may match by chance. */
const minSecret = 6;

async function readTokens(
  { processGenericTokenEndpointResponse }: Library,
  { as, client, server }: TokenTerms,
  response: Response,
): Promise<TokenEndpointResponse> {
  if (response.status >= 500)
    throw new AuthorizationError("unreachable", nameOf(server), `${as.issuer} answered ${response.status}`);
  if (response.status >= 400) {
    const answer = parseObject(await response.text());
    const error = answer?.["error"];
    throw new TokenRefusal(
      server,
      as.issuer,
      typeof error === "string" ? error : "",
      fetchFailure(response.status, answer),
    );
  }
  try {
    const body = parseObject(await response.clone().text());
    // An ID token is not needed here, and is not validated.
    const plain = body === undefined || body["id_token"] === undefined ? response : withoutIdToken(body);
    return await processGenericTokenEndpointResponse(as, { client_id: client.clientId }, plain);
  } catch (error) {
    // Not the cause: the library's error holds the answer, and with it the tokens.
    const text = error instanceof Error ? error.message : "it cannot be read";
    throw new AuthorizationError("refused", nameOf(server), `the answer of ${as.issuer} is wrong: ${text}`);
  }
}

function withoutIdToken(body: { readonly [key: string]: unknown }): Response {
  const rest = { ...body, id_token: undefined };
  return new Response(JSON.stringify(rest), { headers: { "content-type": "application/json" } });
}
