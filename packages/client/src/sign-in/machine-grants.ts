import { AuthorizationError } from "@junctor/core/errors";
import type { OAuthClient } from "./client-registration.ts";
import type { Credential } from "./credential.ts";
import { fetchFailure, nameOf, parseObject } from "./fetch-json.ts";
import { findServerMetadata } from "./metadata.ts";
import { post, requestToken, TokenRefusal, type TokenTerms } from "./token-request.ts";

/** The identity provider of an enterprise, which says which servers its people may use. */
export interface EnterpriseOptions {
  /** The issuer of the identity provider. */
  readonly issuer: string;
  /** This client at the identity provider. */
  readonly clientId: string;
  readonly clientSecret?: string;
  /** The ID token of the person who is signed in. It is asked for each time. */
  readonly idToken: () => Promise<string>;
}

/** Access for a program that acts for itself. */
export function requestForClient(terms: TokenTerms): Promise<Credential> {
  const scope = terms.scopes.join(" ");
  return requestToken(terms, "client_credentials", scope === "" ? {} : { scope });
}

/**
 * Access for a person by the word of an enterprise: the identity provider changes the ID token for an authorization grant (RFC 8693),
 * and the authorization server of the MCP server takes that for an access token (RFC 7523).
 */
export async function requestForEnterprise(
  terms: TokenTerms,
  enterprise: EnterpriseOptions,
): Promise<Credential> {
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
