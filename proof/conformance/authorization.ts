import { AuthorizationError, type AuthorizationOptions } from "junctor";

/** What a scenario tells its client of itself. */
export interface AuthorizationBrief {
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly issuer?: string;
  readonly private_key_pem?: string;
  readonly idp_client_id?: string;
  readonly idp_id_token?: string;
  readonly idp_issuer?: string;
}

/** Scenarios in which the client must stop before it has a token. */
const refusals = new Set([
  "auth/resource-mismatch",
  "auth/scope-retry-limit",
  "auth/iss-supported-missing",
  "auth/iss-wrong-issuer",
  "auth/iss-unexpected",
  "auth/iss-normalized",
  "auth/metadata-issuer-mismatch",
]);

/** Whether an error is the end that a scenario wants. */
export function isRefusalExpected(scenario: string, error: unknown): boolean {
  return refusals.has(scenario) && error instanceof AuthorizationError;
}

/** The authorization of one scenario: the suite sends the user on by itself, so opening a page is a request. */
export function authorizationFor(scenario: string, brief: AuthorizationBrief): AuthorizationOptions {
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: privateKey } = brief;
  const { idp_issuer: idp, idp_client_id: idpClient, idp_id_token: idToken } = brief;
  const isMachine = scenario.startsWith("auth/client-credentials");
  return {
    open: async (url) => {
      const { status, headers } = await fetch(url, { redirect: "manual" });
      const location = headers.get("location");
      if (location === null) throw new Error(`The page to sign in answered ${status}`);
      return location;
    },
    clientDocument: "https://conformance-test.local/client-metadata.json",
    ...(isMachine ? { grant: "client_credentials" } : {}),
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(privateKey === undefined ? {} : { privateKey }),
    ...(brief.issuer === undefined ? {} : { issuer: brief.issuer }),
    ...(idp === undefined || idpClient === undefined || idToken === undefined
      ? {}
      : { enterprise: { issuer: idp, clientId: idpClient, idToken: () => Promise.resolve(idToken) } }),
  };
}
