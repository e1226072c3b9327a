/** What a challenge says (RFC 6750, section 3, and RFC 9728, section 5.1). */
interface Challenge {
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope";
  /** For the person who reads the log of the client. */
  readonly description?: string;
  /** The URL of the resource's metadata, where it has one. */
  readonly metadataUrl: string | undefined;
  /** All scopes that are needed. */
  readonly scopes: readonly string[];
}

/** A challenge as the value of `WWW-Authenticate`. */
export function toChallenge({ error, description, metadataUrl, scopes }: Challenge): string {
  const scope = scopes.length === 0 ? undefined : scopes.join(" ");
  const parameters = Object.entries({
    error,
    error_description: description,
    resource_metadata: metadataUrl,
    scope,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${toQuoted(value)}"`]));
  return parameters.length === 0 ? "Bearer" : `Bearer ${parameters.join(", ")}`;
}

/** Characters that may not stand in the parameters of RFC 6750 are left out. */
function toQuoted(text: string): string {
  return text.replaceAll(/[^\u0020\u0021\u0023-\u005B\u005D-\u007E]/g, "");
}
