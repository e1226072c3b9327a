/** How access to a server that wants OAuth is obtained; each part has a default. */
export interface OAuthConfig {
  /** A client that the authorization server knows; without it the gateway makes itself known. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** PKCS #8 in PEM, instead of a secret. */
  readonly privateKey?: string;
  /** The issuer to ask, whatever the server says. */
  readonly issuer?: string;
  /** Asked for instead of those that the server lists. */
  readonly scopes?: readonly string[];
  /** False: the server is not named to its authorization server. */
  readonly resource?: boolean;
  readonly grant?: "authorization_code" | "client_credentials";
}
