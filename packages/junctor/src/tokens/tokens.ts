import { hash } from "node:crypto";
import { type Awaitable, type Clock, setNewest } from "@junctor/core/async";
import { RawJson } from "@junctor/core/json";
import type { Caller } from "@junctor/core/mcp";
import type { AuthRequest } from "@junctor/server";
import { type AuthRefusal, toChallenge } from "@junctor/server/internal";
import { BadToken } from "./claims.ts";
import { type FetchLike, IssuerUnavailable } from "./fetch-json.ts";
import { Issuer, type IssuerOptions, type Vouched } from "./issuer.ts";

/** A token that was not accepted, for the log and the audit. */
export interface RefusedToken {
  readonly reason: string;
  /** The first 8 hex digits of the token's SHA-256: enough to find it again, and of no use to others. */
  readonly token: string;
}

interface TokensOptions {
  readonly publicUrl: string;
  /** The path of the endpoint at the listener. */
  readonly path: string;
  /** By the names that callers get: `corp` makes the caller `corp:SUBJECT`. */
  readonly issuers: { readonly [alias: string]: IssuerOptions };
  readonly fetch: FetchLike;
  readonly clock: Clock;
  readonly onRefused: (refused: RefusedToken) => void;
  /** Called when an issuer cannot be asked. */
  readonly onUnreachable: (alias: string, error: unknown) => void;
}

/** The digest under which a key or a token is known. */
export function digestOf(secret: string): string {
  return hash("sha256", secret, "hex");
}

/** Judges tokens: who sent them, and whether they were made for the resource that they are sent to. */
export class Tokens {
  readonly resources: Resources;
  readonly issuers: readonly Issuer[];
  readonly answers: TokenAnswers;
  readonly #options: TokensOptions;
  readonly #cache: TokenCache;
  readonly #underway = new Map<string, Promise<Vouched | AuthRefusal>>();

  constructor(options: TokensOptions) {
    const { publicUrl, path, fetch, clock, onUnreachable } = options;
    this.#options = options;
    this.#cache = new TokenCache(clock);
    this.issuers = Object.entries(options.issuers).map(
      ([alias, issuer]) =>
        new Issuer(alias, issuer, { fetch, clock, onUnreachable: (error) => onUnreachable(alias, error) }),
    );
    const scopes = [...new Set(this.issuers.flatMap(({ options: { scopes = [] } }) => scopes))];
    const issuers = this.issuers.map(({ options: { issuer } }) => issuer);
    this.resources = createResources({ publicUrl, path, issuers, scopes });
    this.answers = createTokenAnswers(this.resources, scopes);
  }

  /** Finds the caller of a token; at once where the token is known. */
  check(token: string, digest: string, request: AuthRequest): Awaitable<Caller | AuthRefusal> {
    const resource = this.resources.at(request.path);
    const key = resource === this.resources.main ? digest : `${digest} ${resource.url}`;
    const known = this.#cache.get(key);
    if (known !== undefined)
      return known.vouched === undefined
        ? this.answers.invalid(known.reason, resource)
        : this.#admit(known.vouched, key, resource, request);
    const last = this.#cache.lastGood(key);
    const isBusy = last?.countsWhileBusy === true && last.vouched.issuer.isBusy;
    let judged = this.#underway.get(key);
    if (judged === undefined) {
      const { remoteAddress: address } = request;
      const asked = this.#ask(token, resource.url, { issuer: last?.vouched.issuer, address });
      judged = this.#judge(asked, key, resource).finally(() => this.#underway.delete(key));
      this.#underway.set(key, judged);
    }
    const admitted = judged.then((each) =>
      "refused" in each ? each : this.#admit(each, key, resource, request),
    );
    if (!isBusy) return admitted;
    // Lookups of made-up tokens must not delay a caller that the issuer vouched for a moment ago.
    admitted.catch((error: unknown) => this.#options.onUnreachable(last.vouched.issuer.alias, error));
    return this.#admit(last.vouched, key, resource, request);
  }

  /** A token that is bound to a certificate is good on the connections of that certificate only, also when it is cached. */
  #admit(
    { caller, boundTo }: Vouched,
    key: string,
    resource: ProtectedResource,
    { certificate }: AuthRequest,
  ): Caller | AuthRefusal {
    if (boundTo === undefined || boundTo === certificate?.thumbprint) return caller;
    const reason =
      "the token is bound to a certificate (cnf): connect with that certificate, and not through a proxy that ends TLS";
    this.#options.onRefused({ reason, token: key.slice(0, 8) });
    return this.answers.invalid(reason, resource);
  }

  async #judge(
    asked: Promise<Vouched>,
    key: string,
    resource: ProtectedResource,
  ): Promise<Vouched | AuthRefusal> {
    try {
      const vouched = await asked;
      const { scopes: needed = [] } = vouched.issuer.options;
      const missing = needed.filter((scope) => vouched.caller.scopes?.includes(scope) !== true);
      if (missing.length > 0) {
        this.#options.onRefused({ reason: `it lacks ${missing.join(" ")}`, token: key.slice(0, 8) });
        return this.answers.insufficient(needed, resource);
      }
      this.#cache.accept(key, vouched);
      return vouched;
    } catch (error) {
      if (error instanceof BadToken) {
        if (error.isLasting) this.#cache.refuse(key, error.message);
        this.#options.onRefused({ reason: error.message, token: key.slice(0, 8) });
        return this.answers.invalid(error.message, resource);
      }
      if (error instanceof IssuerUnavailable)
        return {
          refused: 503,
          text: "The token cannot be checked now: its issuer does not answer, or too many tokens wait to be checked; try again",
        };
      throw error;
    }
  }

  /** `issuer` is the one that vouched for the token before. */
  async #ask(
    token: string,
    resource: string,
    { issuer: known, address }: { readonly issuer: Issuer | undefined; readonly address: string | undefined },
  ): Promise<Vouched> {
    const named = await issuerOf(token);
    if (named !== undefined) {
      const issuer = this.issuers.find(({ options }) => options.issuer === named);
      if (issuer === undefined) throw new BadToken("the token is of another issuer (iss)");
      return this.#reportUnreachable(issuer, issuer.verify(token, resource));
    }
    const lookup = { isKnown: known !== undefined, address };
    for (const issuer of known === undefined ? this.issuers : [known]) {
      const vouched = await this.#reportUnreachable(issuer, issuer.introspect(token, resource, lookup));
      if (vouched !== undefined) return vouched;
    }
    throw new BadToken("the token is not known, or it expired");
  }

  async #reportUnreachable<T>(issuer: Issuer, asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof IssuerUnavailable) this.#options.onUnreachable(issuer.alias, error);
      throw error;
    }
  }
}

/** The issuer that a JWT names, whether or not that is true; undefined for a token that is not a JWT. */
async function issuerOf(token: string): Promise<string | undefined> {
  if (token.split(".", 4).length !== 3) return undefined;
  const { decodeJwt } = await import("jose");
  try {
    return String(decodeJwt(token).iss);
  } catch {
    return undefined;
  }
}

/** The result of checking a token. */
interface KnownToken {
  /** Undefined: the token was refused. */
  readonly vouched: Vouched | undefined;
  readonly reason: string;
  readonly until: number;
}

const maxGood = 10_000;
/** Few: unknown senders fill this part, and must not push out the tokens of callers. */
const maxBad = 1000;
const keepBadMs = 30_000;

/** The results of checking tokens, by their hashes, each for as long as it is valid. Verifying a signature costs a hundred times as much. */
class TokenCache {
  readonly #clock: Clock;
  readonly #good = new Map<string, KnownToken>();
  readonly #bad = new Map<string, KnownToken>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What is known of a token. */
  get(hash: string): KnownToken | undefined {
    const known = this.#good.get(hash) ?? this.#bad.get(hash);
    return known !== undefined && this.#clock.now() < known.until ? known : undefined;
  }

  /** The caller that a token last had, however long ago, and whether that still counts while its issuer is busy. */
  lastGood(hash: string): { readonly vouched: Vouched; readonly countsWhileBusy: boolean } | undefined {
    const { vouched, until } = this.#good.get(hash) ?? {};
    if (vouched === undefined || until === undefined) return undefined;
    const busyUntil = until - vouched.keepMs + vouched.keepWhileBusyMs;
    return { vouched, countsWhileBusy: this.#clock.now() < busyUntil };
  }

  accept(hash: string, vouched: Vouched): void {
    this.#bad.delete(hash);
    const until = this.#clock.now() + vouched.keepMs;
    setNewest(this.#good, hash, { vouched, reason: "", until }, maxGood);
  }

  refuse(hash: string, reason: string): void {
    this.#good.delete(hash);
    setNewest(this.#bad, hash, { vouched: undefined, reason, until: this.#clock.now() + keepBadMs }, maxBad);
  }
}

/** How requests that are not let in are answered (RFC 6750, section 3.1). */
interface TokenAnswers {
  /** To a request without a token. */
  challenge(path: string): AuthRefusal;
  /** To a request whose header cannot be read. */
  malformed(path: string): AuthRefusal;
  /** To a bad token. */
  invalid(reason: string, resource: ProtectedResource): AuthRefusal;
  /** To a token that lacks one of the scopes that every token must have. */
  insufficient(scopes: readonly string[], resource: ProtectedResource): AuthRefusal;
  /** The challenge for a caller that lacks scopes for what it wants to do. */
  challengeFor(scopes: readonly string[], path: string): string;
}

/** `scopes` are those that some issuer wants of every token. */
function createTokenAnswers(resources: Resources, scopes: readonly string[]): TokenAnswers {
  return {
    challenge: (path) => ({
      refused: 401,
      text: "Sign in: send an access token in the header Authorization: Bearer TOKEN",
      challenge: toChallenge({ metadataUrl: resources.at(path).metadataUrl, scopes }),
    }),
    malformed: (path) => {
      const { metadataUrl } = resources.at(path);
      return {
        refused: 400,
        text: "Send one access token in the header Authorization: Bearer TOKEN",
        challenge: toChallenge({ error: "invalid_request", metadataUrl, scopes }),
      };
    },
    invalid: (reason, { metadataUrl }) => ({
      refused: 401,
      text: `The token is refused: ${reason}`,
      challenge: toChallenge({ error: "invalid_token", description: reason, metadataUrl, scopes }),
    }),
    insufficient: (needed, { metadataUrl }) => ({
      refused: 403,
      text: `The token is refused: it lacks one of the scopes ${needed.join(" ")}`,
      challenge: toChallenge({ error: "insufficient_scope", metadataUrl, scopes: needed }),
    }),
    challengeFor: (needed, path) => {
      const { metadataUrl } = resources.at(path);
      return toChallenge({ error: "insufficient_scope", metadataUrl, scopes: needed });
    },
  };
}

/** Whether tokens of an issuer can be checked. */
export interface IssuerHealth {
  readonly name: string;
  readonly issuer: string;
  /** Why its tokens will be refused; undefined if they will not. */
  readonly reason: string | undefined;
}

/** Asks each issuer for its metadata and its keys. */
export function probeIssuers(tokens: Tokens | undefined): Promise<readonly IssuerHealth[]> {
  const all = (tokens?.issuers ?? []).map(async (each): Promise<IssuerHealth> => {
    const reason = await each.probe().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    return { name: each.alias, issuer: each.options.issuer, reason };
  });
  return Promise.all(all);
}

/** One endpoint as OAuth sees it (RFC 9728): tokens are made for its URL. */
interface ProtectedResource {
  readonly url: string;
  readonly metadataUrl: string;
}

/** The resources of a listener: its endpoint, and each path below that as a resource of its own. */
interface Resources {
  readonly main: ProtectedResource;
  /** The resource that a request to a path is for. */
  at(path: string): ProtectedResource;
  /** The metadata of a resource, if this is the path of it and the resource is served. */
  documentAt(path: string, isServed: (path: string) => boolean): RawJson | undefined;
}

interface ResourceOptions {
  /** The URL that clients know the endpoint by. Nothing here comes from the `Host` of a request, which an attacker may choose. */
  readonly publicUrl: string;
  /** The path of the endpoint at the listener; that of the public URL may be another one. */
  readonly path: string;
  readonly issuers: readonly string[];
  readonly scopes: readonly string[];
}

const wellKnown = "/.well-known/oauth-protected-resource";
/** The most resources whose documents are kept. */
const maxKept = 1024;

function createResources({ publicUrl, path: own, issuers, scopes }: ResourceOptions): Resources {
  const { origin, pathname } = new URL(publicUrl);
  const publicPath = pathname === "/" ? "" : pathname;
  const main: ProtectedResource = { url: publicUrl, metadataUrl: `${origin}${wellKnown}${publicPath}` };
  const kept = new Map<string, ProtectedResource>();
  const below = (rest: string): ProtectedResource => {
    const known = kept.get(rest);
    if (known !== undefined) return known;
    const slashless = publicUrl.endsWith("/") ? publicUrl.slice(0, -1) : publicUrl;
    const resource = { url: slashless + rest, metadataUrl: main.metadataUrl.replace(/\/$/, "") + rest };
    if (kept.size >= maxKept) kept.clear();
    kept.set(rest, resource);
    return resource;
  };
  const bases = [`${own}/`, "/sse/"];
  const at = (path: string): ProtectedResource => {
    const base = bases.find((each) => path.startsWith(each));
    return base === undefined ? main : below(path.slice(base.length - 1));
  };
  const toDocument = ({ url }: ProtectedResource): RawJson =>
    RawJson.fromValue({
      resource: url,
      authorization_servers: issuers,
      ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ["header"],
    });
  return {
    main,
    at,
    documentAt: (path, isServed) => {
      if (path !== wellKnown && !path.startsWith(`${wellKnown}/`)) return undefined;
      const suffix = path.slice(wellKnown.length);
      if (suffix === "" || suffix === publicPath || suffix === own) return toDocument(main);
      for (const start of new Set([publicPath, own])) {
        const endpoint = suffix.startsWith(`${start}/`) ? own + suffix.slice(start.length) : undefined;
        if (endpoint !== undefined && isServed(endpoint)) return toDocument(at(endpoint));
      }
      return undefined;
    },
  };
}
