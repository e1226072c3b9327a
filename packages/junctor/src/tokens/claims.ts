import type { Caller } from "@junctor/core/mcp";

/** The claims of a token, or the answer of an introspection, which has the same names. */
export interface Claims {
  readonly [claim: string]: unknown;
}

/** Why a token is refused, in a text that its sender may see. */
export class BadToken extends Error {
  override readonly name = "BadToken";
  /** Whether the token stays bad: false for one that may become valid in a moment. */
  readonly isLasting: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isLasting?: boolean } = {}) {
    super(message, options);
    this.isLasting = options.isLasting ?? true;
  }
}

interface TokenClaimOptions {
  /** The name of the issuer in the config. */
  readonly alias: string;
  readonly issuer: string;
  /** The claim with the groups, with dots between the names of nested objects. */
  readonly groupsClaim: string;
  /** Scopes that a scope includes. */
  readonly implies: { readonly [scope: string]: readonly string[] };
}

const maxLength = 256;
const maxItems = 1000;

/** The caller of a token whose claims were checked. Throws `BadToken` for a token without a subject. */
export function toTokenCaller(
  claims: Claims,
  { alias, issuer, groupsClaim, implies }: TokenClaimOptions,
): Caller {
  const { sub, exp } = claims;
  if (typeof sub !== "string" || sub === "" || sub.length > maxLength || !isPrintable(sub))
    throw new BadToken("the token names no subject (sub)");
  const clientId = [claims["client_id"], claims["azp"], claims["appid"], claims["cid"]].find(
    (each): each is string => typeof each === "string" && each.length <= maxLength && isPrintable(each),
  );
  return {
    // Never an e-mail address, which a person may get from someone else.
    name: `${alias}:${sub}`,
    issuer,
    subject: sub,
    ...(clientId === undefined ? {} : { clientId }),
    scopes: withImplied([...readScopes(claims, "scope"), ...readScopes(claims, "scp")], implies),
    groups: readGroups(claims, groupsClaim),
    ...(typeof exp === "number" ? { expiresAt: exp * 1000 } : {}),
  };
}

/** Refuses tokens that prove a sign-in to a client, and give no right to call anything: ID tokens and the like. */
export function refuseForeignKinds(claims: Claims, headerType: unknown): void {
  const isIdToken = ["nonce", "at_hash", "c_hash", "s_hash"].some((claim) => claims[claim] !== undefined);
  if (isIdToken || claims["events"] !== undefined) throw new BadToken(noAccessToken);
  refuseOtherUses(claims);
  const type =
    typeof headerType === "string" ? headerType.toLowerCase().replace(/^application\//, "") : "jwt";
  if (type !== "jwt" && type !== "at+jwt")
    throw new BadToken("the token is not an access token: its header has another type (typ)");
}

/** The claims in which authorization servers name the kind of a token: Keycloak in `typ`, Cognito and Hydra in `token_use`. */
const kindClaims: { readonly [claim: string]: readonly string[] } = {
  typ: ["bearer", "jwt", "at+jwt"],
  token_use: ["access", "access_token"],
};

/** Refuses refresh tokens, ID tokens and others that say so themselves. For JWTs and for answers of an introspection. */
export function refuseOtherUses(claims: Claims): void {
  for (const [claim, accepted] of Object.entries(kindClaims)) {
    const kind = claims[claim];
    if (kind === undefined || kind === null) continue;
    if (typeof kind !== "string" || !accepted.includes(kind.toLowerCase())) throw new BadToken(noAccessToken);
  }
}

const noAccessToken = "the token is not an access token; send the access token, not the ID or refresh token";

/**
 * The SHA-256 thumbprint of the client certificate that a token is bound to (RFC 8705, section 3.1); undefined for a plain bearer token. Refuses
 * a token that is bound to anything else: whoever stole it could use it.
 */
export function readBoundCertificate({ cnf }: Claims): string | undefined {
  if (cnf === undefined || cnf === null) return undefined;
  const { "x5t#S256": thumbprint, ...others } = typeof cnf === "object" ? (cnf as Claims) : {};
  if (typeof thumbprint === "string" && thumbprint !== "" && Object.keys(others).length === 0)
    return thumbprint;
  throw new BadToken(
    "the token is bound to a key of its client (cnf), as with DPoP, which is not checked here: ask for a plain bearer token",
  );
}

/** Scopes as a string with spaces between them, or as an array. */
function readScopes(claims: Claims, claim: string): readonly string[] {
  const value = claims[claim];
  return toTexts(typeof value === "string" ? value.split(" ") : value, claim);
}

/** A group may have spaces in its name: only scopes are separated by them (RFC 6749, section 3.3). */
function readGroups(claims: Claims, path: string): readonly string[] {
  if (path === "scope" || path === "scp") return readScopes(claims, path);
  // Entra leaves the groups of a user with very many of them out, and names where they are instead.
  const elsewhere = claims["_claim_names"];
  if (typeof elsewhere === "object" && elsewhere !== null && Object.hasOwn(elsewhere, path))
    throw new BadToken("the token leaves its groups out (_claim_names): have the issuer send fewer");
  const value = atPath(claims, path);
  return toTexts(typeof value === "string" ? [value] : value, path);
}

/** A scope counts together with those that it includes. */
function withImplied(given: readonly string[], implies: TokenClaimOptions["implies"]): readonly string[] {
  const all = new Set(given);
  for (const scope of all)
    if (Object.hasOwn(implies, scope)) for (const included of implies[scope] ?? []) all.add(included);
  return [...all];
}

/** Leaves no text out: a `deny` for a group that was dropped would not apply. */
function toTexts(value: unknown, claim: string): readonly string[] {
  if (!Array.isArray(value)) return [];
  const texts = value.filter((each): each is string => typeof each === "string" && each !== "");
  if (texts.length > maxItems)
    throw new BadToken(`the token has more than ${maxItems} values in ${claim}: have the issuer send fewer`);
  if (texts.some(({ length }) => length > maxLength))
    throw new BadToken(`the token has a value of more than ${maxLength} characters in ${claim}`);
  return texts;
}

function atPath(claims: Claims, path: string): unknown {
  // A claim may have dots in its own name, such as a URL.
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Claims)[name];
  }
  return value;
}

function isPrintable(text: string): boolean {
  // eslint-disable-next-line no-control-regex
  return !/[\u0000-\u001F\u007F-\u009F\u2028\u2029]/.test(text);
}
