import type { Caller } from "../../mcp/caller.ts";

/** The claims of a token, or the answer of an introspection, which has the same names. */
export interface Claims {
  readonly [claim: string]: unknown;
}

/** Why a token is refused, in a text that its sender may see. */
export class BadToken extends Error {
  override readonly name = "BadToken";
  /** Whether the token will be no good a moment later either. */
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

/** The caller of a token whose claims were checked. Throws `BadToken` for a token that names none. */
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
    scopes: withImplied(readScopes(claims), implies),
    groups: toTexts(atPath(claims, groupsClaim)),
    ...(typeof exp === "number" ? { expiresAt: exp * 1000 } : {}),
  };
}

/** Refuses tokens that prove a sign-in to a client, and give no right to call anything: ID tokens and their kin. */
export function refuseForeignKinds(claims: Claims, headerType: unknown): void {
  const isIdToken = ["nonce", "at_hash", "c_hash", "s_hash"].some((claim) => claims[claim] !== undefined);
  // Keycloak says the kind of a token in a claim.
  const kind = claims["typ"];
  const isOtherKind = typeof kind === "string" && !["bearer", "jwt", "at+jwt"].includes(kind.toLowerCase());
  if (isIdToken || isOtherKind || claims["events"] !== undefined)
    throw new BadToken("the token is no access token; send the access token, not the ID token");
  const type =
    typeof headerType === "string" ? headerType.toLowerCase().replace(/^application\//, "") : "jwt";
  if (type !== "jwt" && type !== "at+jwt")
    throw new BadToken("the token is no access token: its header has another type (typ)");
}

/** The names of the scopes of a token: `scope` as a string, or `scp` as a string or an array. */
function readScopes({ scope, scp }: Claims): readonly string[] {
  return [...toTexts(scope), ...toTexts(scp)];
}

/** A scope counts together with those that it includes. */
function withImplied(given: readonly string[], implies: TokenClaimOptions["implies"]): readonly string[] {
  const all = new Set(given);
  for (const scope of all)
    if (Object.hasOwn(implies, scope)) for (const included of implies[scope] ?? []) all.add(included);
  return [...all];
}

function toTexts(value: unknown): readonly string[] {
  const items: readonly unknown[] =
    typeof value === "string" ? value.split(" ") : Array.isArray(value) ? value : [];
  return items
    .filter((each): each is string => typeof each === "string" && each !== "" && each.length <= maxLength)
    .slice(0, maxItems);
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
