import { AuthorizationError } from "@junctor/core/errors";
import { post } from "./credential.ts";
import { nameOf } from "./guarded-fetch.ts";
import { beginLogin, type PendingLogin, readCode, type LoginTerms, obtainClient } from "./login.ts";
import { findServerMetadata } from "./metadata.ts";

/** How an issuer is asked who a person is. `server` is the issuer itself. */
export type IdentityTerms = Pick<LoginTerms, "server" | "client" | "store" | "fetch" | "clock"> & {
  /** As the issuer writes itself. */
  readonly issuer: string;
};

/** A question who a person is, which the issuer asks on a page of its own. It must be kept from others. */
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

/** The subject that the issuer names at the end. Rejects with an `AuthorizationError`, which holds nothing of the answer. */
export async function finishIdentity(
  pending: PendingIdentity,
  callback: URL,
  terms: IdentityTerms,
): Promise<string> {
  const { as, client, redirectUrl, verifier, nonce } = pending;
  const { server, fetch, issuer, client: clientTerms } = terms;
  const code = await readCode(pending, callback, server);
  const library = await import("oauth4webapi");
  const given = { code, redirect_uri: redirectUrl, code_verifier: verifier };
  const { privateKey } = clientTerms;
  const response = await post(
    library,
    { as, client, privateKey, server, fetch },
    "authorization_code",
    given,
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
    // The error of the library holds the answer, and with it the tokens.
  }
  throw new AuthorizationError("refused", nameOf(server), "it did not say who signed in");
}
