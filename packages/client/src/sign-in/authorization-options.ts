import { type Clock, systemClock } from "@junctor/core/async";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import { type Authorizer, createAuthorizer, type OpenPage } from "./authorizer.ts";
import { createMemoryStore, credentialId, type CredentialStore } from "./credential.ts";
import { createGuardedFetch } from "./guarded-fetch.ts";
import type { EnterpriseOptions } from "./machine-grants.ts";

/** How a client obtains access to a server that wants OAuth. Everything may be left out. */
export interface AuthorizationOptions {
  /**
   * Opens a page for the user, and resolves with the address that the page sent the user to in the end, which begins with
   * `redirectUrl`. Without it no one can sign in; a request that needs it rejects with an `AuthorizationError`.
   */
  readonly open?: OpenPage;
  /** Where the authorization server sends the user in the end; `http://127.0.0.1:33418/callback`. */
  readonly redirectUrl?: string;
  /** The id of an OAuth client that the authorization server knows. Without it this client makes itself known. */
  readonly clientId?: string;
  /** The secret of that client, if it has one. */
  readonly clientSecret?: string;
  /** PKCS #8 in PEM: the client signs (`private_key_jwt`) instead of showing a secret. */
  readonly privateKey?: string;
  /** The URL of a document that describes the client: its id where the authorization server reads such documents. */
  readonly clientDocument?: string;
  /** What the client is called where it registers itself; `Junctor`. */
  readonly clientName?: string;
  /** The issuer to ask, where the server names none, or one that calls itself something else. */
  readonly issuer?: string;
  /** Scopes to ask for, instead of those that the server's metadata lists. */
  readonly scopes?: readonly string[];
  /** False: the server is not named in requests to its authorization server, which some refuse (RFC 8707). */
  readonly resource?: boolean;
  /** `client_credentials`: the program acts for itself, by `clientId` and `clientSecret` or `privateKey`. */
  readonly grant?: "authorization_code" | "client_credentials";
  /** Access by the word of an enterprise's identity provider instead of a sign-in. */
  readonly enterprise?: EnterpriseOptions;
  /** Where credentials are kept; in memory when left out. */
  readonly store?: CredentialStore;
}

const authorizationOptionKeys: KeysOf<AuthorizationOptions> = {
  ...keys("open redirectUrl clientId clientSecret privateKey clientDocument clientName issuer"),
  ...keys("scopes resource grant enterprise store"),
};

/** The port is one that clients keep, because some authorization servers compare it with the registered one. */
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
