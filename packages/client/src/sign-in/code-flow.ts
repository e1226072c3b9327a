import { AuthorizationError } from "@junctor/core/errors";
import type { AuthorizationServer } from "oauth4webapi";
import type { OAuthClient } from "./client-registration.ts";
import type { Credential } from "./credential.ts";
import { nameOf } from "./fetch-json.ts";
import { requestToken, type TokenTerms } from "./token-request.ts";

/** A sign-in that began: all that its end is checked against. It is JSON, and must be kept from others. */
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
export async function beginLogin(options: BeginOptions): Promise<PendingLogin> {
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
 * Ends a sign-in with the address that the authorization server sent the user to. Rejects with an `AuthorizationError`; when the
 * answer is of another issuer, nothing of it is told.
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
export async function readCode(pending: PendingLogin, callback: URL, server: URL): Promise<string> {
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
      const said = [error.error, error.error_description].filter(Boolean).join(": ");
      const text = said.replaceAll(/[^\x20-\x7e]/g, " ").slice(0, 300);
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
