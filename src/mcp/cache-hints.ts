import type { CacheHints } from "./types.ts";

/** Hints for something made of parts that came with these: the shortest time, and private if any part is. */
export function strictestOf(parts: readonly CacheHints[]): CacheHints {
  const ttlMs = Math.min(...parts.map((part) => part.ttlMs));
  const isPublic = parts.every((part) => part.cacheScope === "public");
  return { ttlMs: Number.isFinite(ttlMs) ? ttlMs : 0, cacheScope: isPublic ? "public" : "private" };
}
