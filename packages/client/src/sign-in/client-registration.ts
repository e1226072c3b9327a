import type { webcrypto } from "node:crypto";
import { AuthorizationError } from "@junctor/core/errors";
import type { AuthorizationServer, ClientAuth } from "oauth4webapi";
import { fetchFailure, nameOf, parseObject, toAuthorizationError } from "./fetch-json.ts";
import type { GuardedFetch } from "./guarded-fetch.ts";

/** How a client proves to be itself at the token endpoint. */
type ClientAuthMethod = "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";

/** A client as one authorization server knows it. */
export interface OAuthClient {
  readonly clientId: string;
  readonly clientSecret?: string;
  readonly method: ClientAuthMethod;
  /** How the authorization server came to know it: by hand, by the URL that is its id, or by registration. */
  readonly origin: "given" | "document" | "registered";
  /** Where it gets its answers, if that was registered. */
  readonly redirectUrl?: string;
  /** When the secret ends, in ms since the epoch. */
  readonly secretEndsAt?: number;
}

/** The facts about a client that are known before its authorization server is. */
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

/** Registers a client (RFC 7591). Rejects with an `AuthorizationError` where that is not offered. */
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

/** The error where clients must be registered by hand. */
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

/** What an authorization server made of the registration. The library's own reader refuses secrets without an end. */
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
  const said = answer["token_endpoint_auth_method"];
  const asked = method === "none" ? pickMethod(as, ["client_secret_basic", "client_secret_post"]) : method;
  return {
    ...registered,
    clientSecret: secret,
    method: isMethod(said) ? said : asked,
    ...(typeof endsAt === "number" && endsAt > 0 ? { secretEndsAt: endsAt * 1000 } : {}),
  };
}

function isMethod(value: unknown): value is ClientAuthMethod {
  return value === "none" || value === "client_secret_basic" || value === "client_secret_post";
}

/** The first that the authorization server offers. One that names none takes Basic (RFC 8414, section 2). */
function pickMethod(as: AuthorizationServer, methods: readonly ClientAuthMethod[]): ClientAuthMethod {
  const offered = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return methods.find((method) => offered.includes(method)) ?? "client_secret_basic";
}

/** How the client proves to be itself, for the library. */
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

/** The library also encodes letters like `-`, which is right, and which some servers do not decode. */
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

/** A private key for signing. Its kind says the algorithm: ES256, ES384, ES512, Ed25519, or RS256. */
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
