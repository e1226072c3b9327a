import type { Clock } from "@junctor/core/async";
import type { Caller } from "@junctor/core/mcp";
import {
  type Claims,
  readBoundCertificate,
  refuseForeignKinds,
  refuseOtherUses,
  BadToken,
  toTokenCaller,
} from "./claims.ts";
import { fetchJson, type FetchLike, IssuerUnavailable } from "./fetch-json.ts";
import { findIssuerMetadata, type IssuerMetadata } from "./issuer-metadata.ts";
import { KeySet } from "./key-set.ts";
import { type Lookup, Lookups } from "./lookups.ts";

/** How an issuer is asked about opaque tokens (RFC 7662). */
export interface IntrospectionOptions {
  /** The client that asks, as the issuer knows it. */
  readonly clientId: string;
  /** The secret of that client. */
  readonly clientSecret: string;
  /** Where to ask; as the metadata of the issuer says when left out. */
  readonly url?: string;
}

/** An issuer whose tokens are accepted. */
export interface IssuerOptions {
  /** Exactly as the issuer writes it in `iss`, such as `https://id.example.com/realms/corp`. */
  readonly issuer: string;
  /** What `aud` of a token must name; the URL of the endpoint when left out. */
  readonly audience?: string | readonly string[];
  /** Scopes that every token must have. They are asked for in challenges. */
  readonly scopes?: readonly string[];
  /** Algorithms of signatures, all of them asymmetric; the usual ones when left out. */
  readonly algorithms?: readonly string[];
  /** The claim with the groups of a caller, such as `realm_access.roles`; `groups`. */
  readonly groupsClaim?: string;
  /** Scopes that a scope includes: `{ "mcp:admin": ["mcp:write"] }`. */
  readonly implies?: { readonly [scope: string]: readonly string[] };
  /** Where its keys are; as its metadata says when left out. */
  readonly jwksUri?: string;
  /** Given, tokens that are no JWT are looked up at the issuer. */
  readonly introspection?: IntrospectionOptions;
}

/** The algorithms that are accepted when none are named. */
export const usualAlgorithms: readonly string[] =
  "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

/** What an issuer says of a token. */
export interface Vouched {
  readonly caller: Caller;
  /** How long the answer may be kept. */
  readonly keepMs: number;
  /** How long it may be kept while the issuer cannot be asked again, because too many tokens are being looked up. */
  readonly keepWhileBusyMs: number;
  readonly issuer: Issuer;
  /** The thumbprint of the certificate that the sender must have proved to own. */
  readonly boundTo: string | undefined;
}

interface IssuerParts {
  readonly fetch: FetchLike;
  readonly clock: Clock;
  /** Called with the reason when an issuer could not be asked. */
  readonly onTrouble: (error: unknown) => void;
}

/** Two clocks may differ by so much. */
const toleranceS = 30;
/** How long what a JWT says is believed without looking at its signature again. */
const keepJwtMs = 5 * 60_000;
/** How long the answer of an introspection is believed: a token may be revoked meanwhile. */
const keepOpaqueMs = 30_000;
/** The same while too many tokens are being looked up to repeat the question. */
const keepOpaqueWhileBusyMs = 60_000;
/** How long an opaque token is good for, and what its caller has open, where its issuer names no expiry. */
const noExpiryS = 300;

/** One issuer of the config. */
export class Issuer {
  readonly alias: string;
  readonly options: IssuerOptions;
  readonly #parts: IssuerParts;
  readonly #keys: KeySet;
  #metadata: Promise<IssuerMetadata> | undefined;
  readonly #lookups: Lookups;

  constructor(alias: string, options: IssuerOptions, parts: IssuerParts) {
    this.alias = alias;
    this.options = options;
    this.#parts = parts;
    this.#lookups = new Lookups(parts.clock);
    this.#keys = new KeySet({ ...parts, findUrl: () => this.#findJwksUri() });
  }

  /** Looks at the issuer as a start would: its metadata, and its keys. Rejects with `IssuerUnavailable`. */
  async probe(): Promise<void> {
    if (this.options.jwksUri !== undefined) await findIssuerMetadata(this.options.issuer, this.#parts.fetch);
    await this.#keys.fetch();
  }

  /** The caller of a JWT. Rejects with `BadToken`, or with `IssuerUnavailable` when the keys cannot be had. */
  async verify(token: string, resource: string): Promise<Vouched> {
    const { issuer, algorithms = usualAlgorithms } = this.options;
    const { jwtVerify } = await import("jose");
    const { clock } = this.#parts;
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys.find, {
        issuer,
        audience: this.#audiences(resource),
        algorithms: [...algorithms],
        requiredClaims: ["exp", "sub"],
        clockTolerance: toleranceS,
        currentDate: new Date(clock.date()),
      });
      refuseForeignKinds(payload, protectedHeader.typ);
      return this.#vouch(payload, keepJwtMs, keepJwtMs);
    } catch (error) {
      if (error instanceof BadToken || error instanceof IssuerUnavailable) throw error;
      // The next token with a key that is new here may bring the key with it, and a token may become valid.
      const isLasting = !["ERR_JWKS_NO_MATCHING_KEY", "ERR_JWT_CLAIM_VALIDATION_FAILED"].includes(
        codeOf(error),
      );
      throw new BadToken(describeFault(error, resource), { cause: error, isLasting });
    }
  }

  /** Whether it takes a while until a token that it vouched for can be looked up again. */
  get isBusy(): boolean {
    return this.#lookups.isBusy;
  }

  /** The caller of an opaque token; undefined if this issuer does not know the token. Rejects as `verify` does. */
  async introspect(token: string, resource: string, lookup: Lookup): Promise<Vouched | undefined> {
    const { introspection } = this.options;
    if (introspection === undefined) return undefined;
    return this.#lookups.run(lookup, () => this.#lookUp(token, resource, introspection));
  }

  async #lookUp(
    token: string,
    resource: string,
    { clientId, clientSecret, url: given }: IntrospectionOptions,
  ): Promise<Vouched | undefined> {
    const url = given ?? (await this.#findMetadata()).introspectionUri;
    if (url === undefined)
      throw new IssuerUnavailable(`${this.options.issuer} names no introspection endpoint`);
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
    const answer: Claims = await fetchJson(url, {
      fetch: this.#parts.fetch,
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
      },
      body: new URLSearchParams({ token, token_type_hint: "access_token" }).toString(),
    });
    if (answer["active"] !== true) return undefined;
    const claims = { ...answer, exp: answer["exp"] ?? this.#parts.clock.date() / 1000 + noExpiryS };
    this.#checkIntrospected(claims, resource);
    return this.#vouch(claims, keepOpaqueMs, keepOpaqueWhileBusyMs);
  }

  #checkIntrospected(claims: Claims, resource: string): void {
    const { iss, aud, exp, nbf } = claims;
    if (iss !== undefined && iss !== this.options.issuer) throw new BadToken(faults["iss"] as string);
    const wanted = this.#audiences(resource);
    const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (!named.some((each) => wanted.includes(String(each)))) throw new BadToken(otherAudience(resource));
    const now = this.#parts.clock.date() / 1000;
    if (typeof exp !== "number" || !Number.isFinite(exp)) throw new BadToken("the expiry (exp) is no number");
    if (exp <= now - toleranceS) throw new BadToken("the token expired");
    if (typeof nbf === "number" && nbf > now + toleranceS) throw new BadToken(faults["nbf"] as string);
    if (typeof claims["token_type"] === "string" && !/^(?:bearer|access_token)$/i.test(claims["token_type"]))
      throw new BadToken("the token is no bearer token");
    refuseOtherUses(claims);
  }

  #vouch(claims: Claims, keepMs: number, keepWhileBusyMs: number): Vouched {
    const { issuer, groupsClaim = "groups", implies = {} } = this.options;
    const caller = toTokenCaller(claims, { alias: this.alias, issuer, groupsClaim, implies });
    const leftMs = Math.max(0, (caller.expiresAt ?? Infinity) - this.#parts.clock.date());
    return {
      caller,
      keepMs: Math.min(keepMs, leftMs),
      keepWhileBusyMs: Math.min(keepWhileBusyMs, leftMs),
      issuer: this,
      boundTo: readBoundCertificate(claims),
    };
  }

  #audiences(resource: string): string[] {
    return [this.options.audience ?? resource].flat();
  }

  async #findJwksUri(): Promise<string> {
    const uri = this.options.jwksUri ?? (await this.#findMetadata()).jwksUri;
    if (uri === undefined) throw new IssuerUnavailable(`${this.options.issuer} names no keys (jwks_uri)`);
    return uri;
  }

  #findMetadata(): Promise<IssuerMetadata> {
    this.#metadata ??= findIssuerMetadata(this.options.issuer, this.#parts.fetch).catch((error: unknown) => {
      this.#metadata = undefined;
      throw error;
    });
    return this.#metadata;
  }
}

/** The texts about wrong claims, by the name of the claim. */
const faults: { readonly [claim: string]: string } = {
  iss: "the token is of another issuer (iss)",
  exp: "the token has no expiry (exp)",
  nbf: "the token is not valid yet (nbf)",
  sub: "the token names no subject (sub)",
};

const otherAudience = (resource: string): string =>
  `the token is for another audience (aud); ask for one for ${resource}`;

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Describes the fault of a token without any part of the token. */
function describeFault(error: unknown, resource: string): string {
  const { claim } = error as { readonly claim?: string };
  switch (codeOf(error)) {
    case "ERR_JWT_EXPIRED":
      return "the token expired";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      if (claim === "aud") return otherAudience(resource);
      return (claim === undefined ? undefined : faults[claim]) ?? "a claim of the token is wrong";
    case "ERR_JWKS_NO_MATCHING_KEY":
    case "ERR_JWKS_MULTIPLE_MATCHING_KEYS":
      return "the issuer has no such key (kid)";
    case "ERR_JOSE_ALG_NOT_ALLOWED":
      return "the algorithm of the signature is not accepted (alg)";
    case "ERR_JWS_SIGNATURE_VERIFICATION_FAILED":
      return "the signature is wrong";
    default:
      return "the token cannot be read";
  }
}
