import type { Clock } from "@junctor/core/async";
import type { JWTVerifyGetKey } from "jose";
import { fetchJson, type FetchLike, IssuerUnavailable } from "./fetch-json.ts";

interface KeySetOptions {
  /** Where the keys are. */
  readonly findUrl: () => Promise<string>;
  readonly fetch: FetchLike;
  readonly clock: Clock;
  /** Called with the reason when the keys could not be renewed. */
  readonly onTrouble: (error: unknown) => void;
}

/** How old keys get before they are renewed in the background. */
const freshMs = 10 * 60_000;
/** How long keys that could not be renewed stay valid: an issuer that is down must not lock its callers out. */
const maxAgeMs = 24 * 3_600_000;
/** Unknown key ids trigger a fetch at most this often: anybody can make one up. */
const unknownEveryMs = 30_000;
/** Pause after a failed fetch. */
const retryMs = 1000;

/** The keys of one issuer. The library's own remote key set fails as soon as it is stale and the issuer is down. */
export class KeySet {
  readonly #options: KeySetOptions;
  #keys: JWTVerifyGetKey | undefined;
  #fetchedAt = -Infinity;
  #failedAt = -Infinity;
  #unknownAt = -Infinity;
  #underway: Promise<void> | undefined;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** The key that a token names. Rejects with `IssuerUnavailable` if no keys can be had, and as the library does if there is none. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const { clock } = this.#options;
    const age = clock.now() - this.#fetchedAt;
    if (this.#keys === undefined || age >= maxAgeMs) await this.fetch();
    else if (age >= freshMs && clock.now() - this.#failedAt >= unknownEveryMs)
      this.fetch().catch(this.#options.onTrouble);
    try {
      return await this.#get(header, token);
    } catch (error) {
      if (!isNoMatch(error)) throw error;
      // Others that name a new key at the same time wait for the same answer.
      const mayFetch = this.#underway !== undefined || clock.now() - this.#unknownAt >= unknownEveryMs;
      if (!mayFetch) throw error;
      this.#unknownAt = clock.now();
      // While the issuer is down, a key that is not known is refused like any other.
      await this.fetch().catch(this.#options.onTrouble);
      return this.#get(header, token);
    }
  };

  /** Fetches the keys, once for all who ask meanwhile. */
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
