import type { Clock } from "@junctor/core/async";
import { AuthorizationError } from "@junctor/core/errors";
import type * as oauth from "oauth4webapi";
import type { AuthorizationServer, Client, TokenEndpointResponse } from "oauth4webapi";
import { toScopes } from "./challenge.ts";
import { type OAuthClient, toClientAuth } from "./client-registration.ts";
import { type Credential, toTokenIssuer } from "./credential.ts";
import { fetchFailure, nameOf, parseObject, toAuthorizationError } from "./fetch-json.ts";
import type { GuardedFetch } from "./guarded-fetch.ts";

type Library = typeof oauth;

/** The parts that every request for a token needs. */
export interface TokenTerms {
  readonly as: AuthorizationServer;
  readonly client: OAuthClient;
  readonly privateKey?: string | undefined;
  readonly resource: string | undefined;
  /** Those that are asked for. */
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

/** Asks for a token by one grant, and makes a credential of the answer. */
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
      // The fetch below refuses URLs that are not HTTPS, except on this machine.
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

/** A refusal may repeat the code or the refresh token that came with the request; then its text is left out. */
function withoutSecrets(error: unknown, secrets: readonly string[], server: URL): unknown {
  const isTold = (text: string): boolean =>
    secrets.some((secret) => secret.length >= minSecret && text.includes(secret));
  if (!(error instanceof AuthorizationError) || !isTold(error.message)) return error;
  const said = error instanceof TokenRefusal && !isTold(error.error) ? error.error : "";
  return new TokenRefusal(server, "its authorization server", said, said || "it does not say why");
}

/** Shorter texts turn up by chance. */
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
    // An ID token is of no use here, and is not looked at.
    const plain = body === undefined || body["id_token"] === undefined ? response : withoutIdToken(body);
    return await processGenericTokenEndpointResponse(as, { client_id: client.clientId }, plain);
  } catch (error) {
    // The error of the library holds the answer, and with it the tokens.
    const text = error instanceof Error ? error.message : "it cannot be read";
    throw new AuthorizationError("refused", nameOf(server), `the answer of ${as.issuer} is wrong: ${text}`);
  }
}

function withoutIdToken(body: { readonly [key: string]: unknown }): Response {
  const rest = { ...body, id_token: undefined };
  return new Response(JSON.stringify(rest), { headers: { "content-type": "application/json" } });
}
