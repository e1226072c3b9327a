import { type Credential, toServer } from "./credential.ts";
import type { LoginTerms } from "./login.ts";
import { requestToken } from "./token-request.ts";

/**
 * A new access token for the refresh token. Rejects with a `TokenRefusal` when the authorization server does not take it, and with
 * another error when the authorization server could not be asked.
 */
export async function renewCredential(terms: LoginTerms, stored: Credential): Promise<Credential> {
  const { server, fetch, clock, client } = terms;
  const { issuer, resource, scopes, refreshToken = "" } = stored;
  const renewed = await requestToken(
    {
      as: toServer(issuer),
      client: stored.client,
      privateKey: client.privateKey,
      resource,
      scopes,
      server,
      fetch,
      clock,
    },
    "refresh_token",
    { refresh_token: refreshToken },
  );
  // The refresh token stays good unless there is another one (RFC 6749, section 6).
  return { ...renewed, issuer, refreshToken: renewed.refreshToken ?? refreshToken };
}
