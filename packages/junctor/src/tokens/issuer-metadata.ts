import { fetchJson, type FetchLike, IssuerUnavailable } from "./fetch-json.ts";

/** What an issuer says of itself (RFC 8414, or OpenID Connect Discovery). */
export interface IssuerMetadata {
  readonly jwksUri: string | undefined;
  readonly introspectionUri: string | undefined;
}

/** An issuer calls itself something else than the config: its tokens would name that other issuer. */
class IssuerMismatch extends IssuerUnavailable {
  readonly named: string;

  constructor(issuer: string, named: string) {
    super(
      `tokens will be refused: the issuer calls itself ${JSON.stringify(named)}, not ${JSON.stringify(issuer)}`,
    );
    this.named = named;
  }
}

/** Where the metadata of an issuer may be, in the order in which it is looked for. */
function metadataUrlsOf(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const [oauth, openId] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
  const inserted = [`${origin}${oauth}${path}`, `${origin}${openId}${path}`];
  return path === "" ? inserted : [...inserted, `${origin}${path}${openId}`];
}

/** Finds the metadata of an issuer. Rejects with `IssuerUnavailable`, or with `IssuerMismatch` where the issuer has another name. */
export async function findIssuerMetadata(issuer: string, fetch: FetchLike): Promise<IssuerMetadata> {
  let failure: IssuerUnavailable | undefined;
  for (const url of metadataUrlsOf(issuer)) {
    try {
      const found = await fetchJson(url, { fetch });
      const { issuer: named } = found;
      if (named !== issuer) throw new IssuerMismatch(issuer, String(named));
      return {
        jwksUri: toEndpoint(found["jwks_uri"], issuer),
        introspectionUri: toEndpoint(found["introspection_endpoint"], issuer),
      };
    } catch (error) {
      if (!(error instanceof IssuerUnavailable)) throw error;
      // A name that is wrong says more than a document that is missing.
      failure = failure instanceof IssuerMismatch ? failure : error;
    }
  }
  throw failure ?? new IssuerUnavailable(`${issuer} has no metadata`);
}

/** An address that an issuer names. Keys that came unencrypted would prove nothing, unless all of it is on this machine. */
function toEndpoint(value: unknown, issuer: string): string | undefined {
  if (typeof value !== "string" || !URL.canParse(value)) return undefined;
  const { protocol } = new URL(value);
  return protocol === "https:" || (protocol === "http:" && issuer.startsWith("http:")) ? value : undefined;
}
