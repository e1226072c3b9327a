import { metadataUrlsOf } from "@junctor/client/internal";
import { type Clock, createDeferred, type Deferred, Quota } from "@junctor/core/async";
import type { Caller } from "@junctor/core/mcp";
import type { JWTVerifyGetKey } from "jose";
import {
  BadToken,
  type Claims,
  readBoundCertificate,
  refuseForeignKinds,
  refuseOtherUses,
  toTokenCaller,
} from "./claims.ts";
import { fetchJson, type FetchLike, IssuerUnavailable } from "./fetch-json.ts";

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
  /** With it, tokens that are not JWTs are looked up at the issuer. */
  readonly introspection?: IntrospectionOptions;
}

/** The algorithms that are accepted when none are named. */
export const usualAlgorithms: readonly string[] =
  "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

/** What an issuer confirms about a token. */
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

interface IssuerRuntime {
  readonly fetch: FetchLike;
  readonly clock: Clock;
  /** Called with the reason when an issuer could not be asked. */
  readonly onUnreachable: (error: unknown) => void;
}

/** How far two clocks may differ. */
const toleranceS = 30;
/** How long the claims of a JWT are accepted without checking its signature again. */
const keepJwtMs = 5 * 60_000;
/** How long the answer of an introspection is accepted: a token may be revoked meanwhile. */
const keepOpaqueMs = 30_000;
/** The same while too many tokens are being looked up to ask again. */
const keepOpaqueWhileBusyMs = 60_000;
/** How long an opaque token is valid if its issuer names no expiry, and with it all that its caller has open. */
const noExpiryS = 300;

/** One issuer of the config. */
export class Issuer {
  readonly alias: string;
  readonly options: IssuerOptions;
  readonly #runtime: IssuerRuntime;
  readonly #keys: KeySet;
  #metadata: Promise<IssuerMetadata> | undefined;
  readonly #gate: IntrospectionGate;

  constructor(alias: string, options: IssuerOptions, runtime: IssuerRuntime) {
    this.alias = alias;
    this.options = options;
    this.#runtime = runtime;
    this.#gate = new IntrospectionGate(runtime.clock);
    this.#keys = new KeySet({ ...runtime, findUrl: () => this.#findJwksUri() });
  }

  /** Fetches the metadata and the keys, as at the start. Rejects with `IssuerUnavailable`. */
  async probe(): Promise<void> {
    if (this.options.jwksUri !== undefined)
      await findIssuerMetadata(this.options.issuer, this.#runtime.fetch);
    await this.#keys.fetch();
  }

  /** The caller of a JWT. Rejects with `BadToken`, or with `IssuerUnavailable` when the keys cannot be fetched. */
  async verify(token: string, resource: string): Promise<Vouched> {
    const { issuer, algorithms = usualAlgorithms } = this.options;
    const { jwtVerify } = await import("jose");
    const { clock } = this.#runtime;
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
      throw new BadToken(describeRefusal(error, resource), { cause: error, isLasting });
    }
  }

  /** Whether a token that it vouched for would have to wait to be looked up again. */
  get isBusy(): boolean {
    return this.#gate.isBusy;
  }

  /** The caller of an opaque token; undefined if this issuer does not know the token. Rejects as `verify` does. */
  async introspect(token: string, resource: string, sender: TokenSender): Promise<Vouched | undefined> {
    const { introspection } = this.options;
    if (introspection === undefined) return undefined;
    return this.#gate.run(sender, () => this.#lookUp(token, resource, introspection));
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
      fetch: this.#runtime.fetch,
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
      },
      body: new URLSearchParams({ token, token_type_hint: "access_token" }).toString(),
    });
    if (answer["active"] !== true) return undefined;
    const claims = { ...answer, exp: answer["exp"] ?? this.#runtime.clock.date() / 1000 + noExpiryS };
    this.#checkIntrospected(claims, resource);
    return this.#vouch(claims, keepOpaqueMs, keepOpaqueWhileBusyMs);
  }

  #checkIntrospected(claims: Claims, resource: string): void {
    const { iss, aud, exp, nbf } = claims;
    if (iss !== undefined && iss !== this.options.issuer) throw new BadToken(refusals["iss"] as string);
    const wanted = this.#audiences(resource);
    const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (!named.some((each) => wanted.includes(String(each)))) throw new BadToken(otherAudience(resource));
    const now = this.#runtime.clock.date() / 1000;
    if (typeof exp !== "number" || !Number.isFinite(exp))
      throw new BadToken("the expiry (exp) is not a number");
    if (exp <= now - toleranceS) throw new BadToken("the token expired");
    if (typeof nbf === "number" && nbf > now + toleranceS) throw new BadToken(refusals["nbf"] as string);
    if (typeof claims["token_type"] === "string" && !/^(?:bearer|access_token)$/i.test(claims["token_type"]))
      throw new BadToken("the token is not a bearer token");
    refuseOtherUses(claims);
  }

  #vouch(claims: Claims, keepMs: number, keepWhileBusyMs: number): Vouched {
    const { issuer, groupsClaim = "groups", implies = {} } = this.options;
    const caller = toTokenCaller(claims, { alias: this.alias, issuer, groupsClaim, implies });
    const leftMs = Math.max(0, (caller.expiresAt ?? Infinity) - this.#runtime.clock.date());
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
    this.#metadata ??= findIssuerMetadata(this.options.issuer, this.#runtime.fetch).catch(
      (error: unknown) => {
        this.#metadata = undefined;
        throw error;
      },
    );
    return this.#metadata;
  }
}

/** Why a token with a wrong claim is refused, by the name of the claim. */
const refusals: { readonly [claim: string]: string } = {
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

/** Says why a token is refused, without any part of the token. */
function describeRefusal(error: unknown, resource: string): string {
  const { claim } = error as { readonly claim?: string };
  switch (codeOf(error)) {
    case "ERR_JWT_EXPIRED":
      return "the token expired";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      if (claim === "aud") return otherAudience(resource);
      return (claim === undefined ? undefined : refusals[claim]) ?? "a claim of the token is wrong";
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

/** The metadata of an issuer (RFC 8414, or OpenID Connect Discovery). */
interface IssuerMetadata {
  readonly jwksUri: string | undefined;
  readonly introspectionUri: string | undefined;
}

/** An issuer has another name than in the config: its tokens would name that other issuer. */
class IssuerMismatch extends IssuerUnavailable {
  readonly named: string;

  constructor(issuer: string, named: string) {
    super(
      `tokens will be refused: the issuer calls itself ${JSON.stringify(named)}, not ${JSON.stringify(issuer)}`,
    );
    this.named = named;
  }
}

/** Finds the metadata of an issuer. Rejects with `IssuerUnavailable`, or with `IssuerMismatch` where the issuer has another name. */
async function findIssuerMetadata(issuer: string, fetch: FetchLike): Promise<IssuerMetadata> {
  let failure: IssuerUnavailable | undefined;
  for (const url of metadataUrlsOf(new URL(issuer))) {
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
      // A wrong name is more telling than a missing document.
      failure = failure instanceof IssuerMismatch ? failure : error;
    }
  }
  throw failure ?? new IssuerUnavailable(`${issuer} has no metadata`);
}

/** An address that an issuer names. Keys that were fetched unencrypted prove nothing, unless the issuer is on this machine. */
function toEndpoint(value: unknown, issuer: string): string | undefined {
  if (typeof value !== "string" || !URL.canParse(value)) return undefined;
  const { protocol } = new URL(value);
  return protocol === "https:" || (protocol === "http:" && issuer.startsWith("http:")) ? value : undefined;
}

interface KeySetOptions {
  /** Where the keys are. */
  readonly findUrl: () => Promise<string>;
  readonly fetch: FetchLike;
  readonly clock: Clock;
  /** Called with the reason when the keys could not be renewed. */
  readonly onUnreachable: (error: unknown) => void;
}

/** How old keys get before they are renewed in the background. */
const freshMs = 10 * 60_000;
/** How long keys that could not be renewed stay valid: an issuer that is down must not lock callers out. */
const maxAgeMs = 24 * 3_600_000;
/** Unknown key ids trigger a fetch at most this often: anybody can invent them. */
const unknownEveryMs = 30_000;
/** Pause after a failed fetch. */
const retryMs = 1000;

/** The keys of one issuer. The library's own remote key set fails as soon as it is stale and the issuer is down. */
class KeySet {
  readonly #options: KeySetOptions;
  #keys: JWTVerifyGetKey | undefined;
  #fetchedAt = -Infinity;
  #failedAt = -Infinity;
  #unknownAt = -Infinity;
  #underway: Promise<void> | undefined;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** The key that a token names. Rejects with `IssuerUnavailable` without keys, and as the library does without that key. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const { clock } = this.#options;
    const age = clock.now() - this.#fetchedAt;
    if (this.#keys === undefined || age >= maxAgeMs) await this.fetch();
    else if (age >= freshMs && clock.now() - this.#failedAt >= unknownEveryMs)
      this.fetch().catch(this.#options.onUnreachable);
    try {
      return await this.#get(header, token);
    } catch (error) {
      if (!isNoMatch(error)) throw error;
      // Others that name a new key at the same time wait for the same answer.
      const mayFetch = this.#underway !== undefined || clock.now() - this.#unknownAt >= unknownEveryMs;
      if (!mayFetch) throw error;
      this.#unknownAt = clock.now();
      // While the issuer is down, a key that is not known is refused like any other.
      await this.fetch().catch(this.#options.onUnreachable);
      return this.#get(header, token);
    }
  };

  /** Fetches the keys, once for all requests that come meanwhile. */
  fetch(): Promise<void> {
    const { clock } = this.#options;
    if (this.#underway !== undefined) return this.#underway;
    if (clock.now() - this.#failedAt < retryMs)
      return Promise.reject(
        new IssuerUnavailable("the keys of the issuer could not be fetched a moment ago"),
      );
    this.#underway = this.#load()
      .catch((error: unknown) => {
        this.#failedAt = clock.now();
        throw error;
      })
      .finally(() => {
        this.#underway = undefined;
      });
    return this.#underway;
  }

  async #load(): Promise<void> {
    const { findUrl, fetch, clock } = this.#options;
    const url = await findUrl();
    const found = await fetchJson(url, { fetch });
    const { createLocalJWKSet } = await import("jose");
    if (!Array.isArray(found["keys"])) throw new IssuerUnavailable(`${url} has no keys`);
    // A symmetric key that is published proves nothing.
    const keys = (found["keys"] as { readonly kty?: unknown }[]).filter(({ kty }) => kty !== "oct");
    this.#keys = createLocalJWKSet({ keys } as Parameters<typeof createLocalJWKSet>[0]);
    this.#fetchedAt = clock.now();
  }

  readonly #get: JWTVerifyGetKey = (header, token) => {
    if (this.#keys === undefined) throw new IssuerUnavailable("the keys of the issuer are not known");
    return this.#keys(header, token);
  };
}

function isNoMatch(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_JWKS_NO_MATCHING_KEY";
}

/** Who sent a token that is looked up. */
interface TokenSender {
  /** Whether the issuer vouched for this token before. */
  readonly isKnown: boolean;
  /** The address that the token came from. */
  readonly address: string | undefined;
}

interface Waiter extends TokenSender {
  readonly turn: Deferred<void>;
  readonly stopTimer: () => void;
}

/** The most lookups at the same time. */
const maxUnderway = 32;
/** The most of them about tokens that are not known: the rest is kept for tokens that are. */
const maxUnknownUnderway = 24;
/** Lookups a second that anybody can cause. */
const basePerS = 13;
/** Lookups that may begin at once after a pause. */
const burst = 2;
/** A good answer counts for about this long. Each allows one more lookup beside the one that repeats it. */
const goodMs = 30_000;
/** The most tokens that are not known and wait for their turn. */
const maxWaiting = 512;
/** How long a token waits for its turn. */
const waitMs = 25_000;

/**
 * Decides when a token may be looked up at its issuer. Anybody can make tokens up, so lookups of bad tokens stay few, whatever comes in:
 * tokens that were good before go first, the others take turns by address, and the rate grows with good answers only.
 */
class IntrospectionGate {
  readonly #clock: Clock;
  readonly #known: Waiter[] = [];
  /** By address, the next one to have its turn first. */
  readonly #unknown = new Map<string | undefined, Waiter[]>();
  readonly #quota = new Quota<string | undefined>({ what: "tokens to look up", total: maxWaiting });
  #underway = 0;
  /** Lookups that may begin now, and when they were counted. */
  #credit = burst;
  #countedAt: number;
  /** The recent good answers; the older one is, the less it counts. */
  #good = 0;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.now();
  }

  /** Whether a token that is known would have to wait. */
  get isBusy(): boolean {
    return this.#known.length > 0 || !this.#mayBegin(true);
  }

  /**
   * Looks a token up when it is its turn; `look` resolves with undefined for a token that is not good. Rejects with `IssuerUnavailable` when too
   * many tokens wait.
   */
  async run<T>(sender: TokenSender, look: () => Promise<T | undefined>): Promise<T | undefined> {
    await this.#waitForTurn(sender);
    try {
      const found = await look();
      if (found !== undefined) this.#good++;
      return found;
    } finally {
      this.#underway--;
      this.#beginNext();
    }
  }

  async #waitForTurn(sender: TokenSender): Promise<void> {
    const { isKnown, address } = sender;
    const isFirst = this.#known.length === 0 && (isKnown || this.#unknown.size === 0);
    if (isFirst && this.#mayBegin(isKnown)) return this.#begin();
    if (!isKnown && this.#quota.refusal(address) !== undefined) throw tooMany();
    const waiter: Waiter = {
      ...sender,
      turn: createDeferred(),
      stopTimer: this.#timer(waitMs, () => {
        this.#remove(waiter);
        waiter.turn.reject(tooMany());
      }),
    };
    if (isKnown) this.#known.push(waiter);
    else {
      this.#quota.add(address);
      const queue = this.#unknown.get(address);
      if (queue === undefined) this.#unknown.set(address, [waiter]);
      else queue.push(waiter);
    }
    this.#beginNext();
    return waiter.turn.promise;
  }

  /** Begins the lookups whose turn it is, and sets a timer for the next one. */
  #beginNext(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (;;) {
      const next = this.#known[0] ?? this.#unknown.values().next().value?.[0];
      if (next === undefined) return;
      if (!this.#mayBegin(next.isKnown)) break;
      next.stopTimer();
      this.#remove(next);
      this.#begin();
      next.turn.resolve();
    }
    // Where all places are taken, the end of a lookup begins the next.
    if (this.#credit >= 1) return;
    this.#stopTimer = this.#timer(Math.ceil((1 - this.#credit) / this.#perMs), () => this.#beginNext());
  }

  #begin(): void {
    this.#underway++;
    this.#credit--;
  }

  /** An address that had its turn waits until all others had theirs. */
  #remove(waiter: Waiter): void {
    const { isKnown, address } = waiter;
    const queue = isKnown ? this.#known : (this.#unknown.get(address) ?? []);
    queue.splice(queue.indexOf(waiter), 1);
    if (isKnown) return;
    this.#quota.give(address);
    this.#unknown.delete(address);
    if (queue.length > 0) this.#unknown.set(address, queue);
  }

  #mayBegin(isKnown: boolean): boolean {
    this.#count();
    return this.#credit >= 1 && this.#underway < (isKnown ? maxUnderway : maxUnknownUnderway);
  }

  #count(): void {
    const now = this.#clock.now();
    const passedMs = now - this.#countedAt;
    if (passedMs === 0) return;
    this.#credit = Math.min(burst, this.#credit + passedMs * this.#perMs);
    this.#good *= Math.exp(-passedMs / goodMs);
    this.#countedAt = now;
  }

  get #perMs(): number {
    return basePerS / 1000 + (2 * this.#good) / goodMs;
  }

  #timer(ms: number, callback: () => void): () => void {
    return this.#clock.idleTimer?.(ms, callback) ?? this.#clock.timer(ms, callback);
  }
}

function tooMany(): IssuerUnavailable {
  return new IssuerUnavailable("too many tokens wait to be looked up");
}
