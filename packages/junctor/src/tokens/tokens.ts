import { hash } from "node:crypto";
import type { Awaitable, Clock } from "@junctor/core/async";
import type { Caller } from "@junctor/core/mcp";
import type { AuthRequest } from "@junctor/server";
import type { AuthRefusal } from "@junctor/server/internal";
import { createTokenAnswers, type TokenAnswers } from "./answers.ts";
import { BadToken } from "./claims.ts";
import { type FetchLike, IssuerUnavailable } from "./fetch-json.ts";
import { Issuer, type IssuerOptions, type Vouched } from "./issuer.ts";
import { createResources, type ProtectedResource, type Resources } from "./resource.ts";
import { Verdicts } from "./verdicts.ts";

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
  readonly onTrouble: (alias: string, error: unknown) => void;
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
  readonly #verdicts: Verdicts;
  readonly #underway = new Map<string, Promise<Vouched | AuthRefusal>>();

  constructor(options: TokensOptions) {
    const { publicUrl, path, fetch, clock, onTrouble } = options;
    this.#options = options;
    this.#verdicts = new Verdicts(clock);
    this.issuers = Object.entries(options.issuers).map(
      ([alias, issuer]) =>
        new Issuer(alias, issuer, { fetch, clock, onTrouble: (error) => onTrouble(alias, error) }),
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
    const known = this.#verdicts.get(key);
    if (known !== undefined)
      return known.vouched === undefined
        ? this.answers.invalid(known.reason, resource)
        : this.#admit(known.vouched, key, resource, request);
    const last = this.#verdicts.lastGood(key);
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
    // Strangers who have the issuer asked about made-up tokens must not delay a caller that it vouched for a moment ago.
    admitted.catch((error: unknown) => this.#options.onTrouble(last.vouched.issuer.alias, error));
    return this.#admit(last.vouched, key, resource, request);
  }

  /** A token that is bound to a certificate is good on the connections of that certificate only, however well it is known. */
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
      this.#verdicts.accept(key, vouched);
      return vouched;
    } catch (error) {
      if (error instanceof BadToken) {
        if (error.isLasting) this.#verdicts.refuse(key, error.message);
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
      return this.#reportTrouble(issuer, issuer.verify(token, resource));
    }
    const lookup = { isKnown: known !== undefined, address };
    for (const issuer of known === undefined ? this.issuers : [known]) {
      const vouched = await this.#reportTrouble(issuer, issuer.introspect(token, resource, lookup));
      if (vouched !== undefined) return vouched;
    }
    throw new BadToken("the token is not known, or it expired");
  }

  async #reportTrouble<T>(issuer: Issuer, asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof IssuerUnavailable) this.#options.onTrouble(issuer.alias, error);
      throw error;
    }
  }
}

/** The issuer that a JWT names, whether or not that is true; undefined for a token that is no JWT. */
async function issuerOf(token: string): Promise<string | undefined> {
  if (token.split(".", 4).length !== 3) return undefined;
  const { decodeJwt } = await import("jose");
  try {
    return String(decodeJwt(token).iss);
  } catch {
    return undefined;
  }
}
