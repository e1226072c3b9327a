import type { Clock } from "@junctor/core/async";
import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import type { AuthorizationServer } from "oauth4webapi";
import {
  type ClientTerms,
  findClient,
  noRegistration,
  type OAuthClient,
  registerClient,
} from "./client-registration.ts";
import { beginLogin, type PendingLogin } from "./code-flow.ts";
import { clientRecordId, type Credential, type CredentialStore } from "./credential.ts";
import { nameOf } from "./fetch-json.ts";
import type { GuardedFetch } from "./guarded-fetch.ts";
import { type EnterpriseOptions, requestForClient, requestForEnterprise } from "./machine-grants.ts";
import { type Discovered, discover } from "./metadata.ts";

/** How access to one server is obtained. */
export interface LoginTerms {
  readonly server: URL;
  readonly client: ClientTerms;
  readonly grant: "authorization_code" | "client_credentials" | "enterprise";
  readonly enterprise?: EnterpriseOptions | undefined;
  /** The issuer that the user wrote down. */
  readonly issuer?: string | undefined;
  /** Asked for instead of those that the server's metadata lists. */
  readonly scopes?: readonly string[] | undefined;
  /** Whether the server is named in requests to its authorization server; some refuse that. */
  readonly sendsResource: boolean;
  readonly store: CredentialStore;
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
}

/** Why access is asked for now. */
export interface LoginOccasion {
  readonly challenge?: BearerChallenge | undefined;
  /** The credential that was not enough, or no longer good. */
  readonly earlier?: Credential | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds the authorization server, makes this client known to it, and begins a sign-in. */
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
 * Looks whether a sign-in could begin, and begins none. Rejects with the `AuthorizationError` that the sign-in would end with, as far as
 * that can be told before.
 */
export async function examineLogin(terms: LoginTerms): Promise<void> {
  const { as } = await discoverFor(terms, {});
  if (findClient(as, terms.client) !== undefined || as.registration_endpoint !== undefined) return;
  throw noRegistration(as, terms.client, terms.server);
}

/** Obtains access without a person: for the program itself, or by the word of an enterprise. */
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

/** Whether a server, or its origin, has metadata of OAuth: one that wants a fixed key has none. */
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

/** A client of the config, of a document, or one that was registered, now or before. */
export async function obtainClient(
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

/** What a challenge asks for; else what the config says; else all that the server lists. Access once granted is asked for again. */
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
