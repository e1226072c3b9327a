import { vi } from "vitest";

/** Ends a wait that hangs. It is not a bound of speed: on a busy machine everything takes longer. */
export const patience = { timeout: 90_000, interval: 5 } as const;

/** Resolves with what is read as soon as it is something: not false, 0, empty or undefined. */
export function until<T>(read: () => T | Promise<T>): ReturnType<typeof vi.waitUntil<T>> {
  return vi.waitUntil(read, patience);
}
