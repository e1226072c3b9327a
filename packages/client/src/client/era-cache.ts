import { systemClock, setNewest } from "@junctor/core/async";

/** Which era a server turned out to speak. */
type Verdict = "modern" | "legacy";

/** Remembers verdicts, so that a server is not probed again by every client. Share one between clients. */
export interface EraCache {
  get(key: string): Verdict | undefined;
  set(key: string, verdict: Verdict): void;
  delete(key: string): void;
}

const maxEntries = 1000;

/**
 * A cache in memory. A verdict of *legacy* succeeds forever against a server that was upgraded meanwhile, so it expires;
 * a wrong *modern* one fails loudly and is dropped then.
 */
export function createEraCache(
  options: { readonly legacyTtlMs?: number; readonly now?: () => number } = {},
): EraCache {
  const { legacyTtlMs = 10 * 60_000, now = systemClock.now } = options;
  const entries = new Map<string, { readonly verdict: Verdict; readonly expiresAt: number }>();
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (entry === undefined || entry.expiresAt > now()) return entry?.verdict;
      entries.delete(key);
      return undefined;
    },
    set: (key, verdict) => {
      const expiresAt = verdict === "legacy" ? now() + legacyTtlMs : Number.POSITIVE_INFINITY;
      setNewest(entries, key, { verdict, expiresAt }, maxEntries);
    },
    delete: (key) => void entries.delete(key),
  };
}
