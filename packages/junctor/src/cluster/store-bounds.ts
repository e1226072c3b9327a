import { StoreError } from "@junctor/core/errors";
import type { SharedLimit } from "./store.ts";

/** The limits of keys, values and times. All stores refuse the same. */
export const storeBounds = {
  /** Characters of a key, of a holder and of the id of a replica. */
  key: 512,
  /** Characters of a value, of the facts of a replica and of one piece of news. */
  value: 4096,
  /** Keys of one `renew`. */
  renewed: 1000,
  /** A lease, value or registration lives for a week at most. */
  ttlMs: 604_800_000,
} as const;

export function assertKey(key: string, what = "The key"): void {
  if (key !== "" && key.length <= storeBounds.key) return;
  throw new StoreError(
    "store.invalid",
    `${what} must have 1 to ${storeBounds.key} characters, not ${key.length}`,
  );
}

export function assertValue(value: string, what = "The value"): void {
  if (value.length <= storeBounds.value) return;
  throw new StoreError(
    "store.invalid",
    `${what} must have at most ${storeBounds.value} characters, not ${value.length}`,
  );
}

export function assertTtl(ttlMs: number): void {
  if (Number.isInteger(ttlMs) && ttlMs >= 1 && ttlMs <= storeBounds.ttlMs) return;
  throw new StoreError(
    "store.invalid",
    `The time to live must be a whole number of milliseconds from 1 to ${storeBounds.ttlMs}, not ${ttlMs}`,
  );
}

export function assertKeys(keys: readonly string[]): void {
  if (keys.length > storeBounds.renewed)
    throw new StoreError(
      "store.invalid",
      `At most ${storeBounds.renewed} leases are renewed at once, not ${keys.length}`,
    );
  for (const key of keys) assertKey(key);
}

export function assertLimit({ key, everyMs, burst }: SharedLimit, count: number): void {
  assertKey(key);
  if (!(everyMs > 0 && burst >= 1 && everyMs * burst <= storeBounds.ttlMs))
    throw new StoreError(
      "store.invalid",
      `A limit must have everyMs above 0, a burst of 1 or more, and be full again within a week; not ${everyMs} and ${burst}`,
    );
  if (!Number.isInteger(count) || count < 1)
    throw new StoreError("store.invalid", `The number of tokens must be 1 or more, not ${count}`);
}
