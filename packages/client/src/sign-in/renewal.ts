import { type Credential, clientRecordId, toServer } from "./credential.ts";
import type { LoginTerms } from "./login.ts";
import { requestToken, TokenRefusal } from "./token-request.ts";

/** The part of the terms that a renewal needs. */
type RenewalTerms = Pick<LoginTerms, "server" | "fetch" | "clock" | "store"> & {
  readonly privateKey?: string | undefined;
};

/**
 * Renews the stored credential of an id, unless another process did, and stores the new one before it gives it. Undefined when a person
 * must sign in again: nothing is stored, or the refresh token is no longer good. Rejects when the authorization server could not be asked;
 * the stored credential is kept then.
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
  // The refresh token stays good unless there is another one (RFC 6749, section 6).
  return { ...renewed, issuer, refreshToken: renewed.refreshToken ?? refreshToken };
}
