import { isDeepStrictEqual } from "node:util";
import { createGlob } from "@junctor/server/internal";
import type { Rows } from "./rows.ts";

/** The part of an edit that may be used before a person agrees to the rest, and the settings that wait. */
export interface Narrowed<T> {
  readonly value: T;
  readonly waiting: readonly string[];
}

/** Asks each row which part of the edit may be used. */
export function narrowRows<T extends object>(rows: Rows, next: T, agreed: T): Narrowed<T> {
  const [now, before] = [next, agreed] as readonly { readonly [key: string]: unknown }[];
  const value: { [key: string]: unknown } = { ...now };
  const waiting: string[] = [];
  for (const [key, { consent }] of Object.entries(rows)) {
    if (consent === "free" || !(now !== undefined && before !== undefined && (key in now || key in before)))
      continue;
    const [one, other] = [now[key], before[key]];
    if (isDeepStrictEqual(one, other)) continue;
    const part = consent === "asks" ? other : consent(one, other);
    if (part === undefined && !(key in before)) delete value[key];
    else value[key] = part;
    if (!isDeepStrictEqual(part, one)) waiting.push(key);
  }
  return { value: value as T, waiting };
}

/** Both lists are of globs; an empty one allows everything. */
export function narrowAllow(next: readonly string[], agreed: readonly string[]): readonly string[] {
  if (agreed.length === 0) return next;
  const kept = next.filter((glob) => isCovered(glob, agreed));
  return kept.length === 0 ? agreed : kept;
}

export function narrowDeny(next: readonly string[], agreed: readonly string[]): readonly string[] {
  return [...next, ...agreed.filter((glob) => !isCovered(glob, next))];
}

/** Whether every name that fits a glob fits one of the others. A glob without `?` fits the text of each narrower glob. */
function isCovered(glob: string, others: readonly string[]): boolean {
  return others.some((other) => other === glob || (!other.includes("?") && createGlob(other)(glob)));
}

/** Lists of names of which undefined means all. */
export function narrowNames<Names extends readonly string[] | undefined>(
  next: Names,
  agreed: Names,
): Names | readonly string[] {
  if (agreed === undefined) return next;
  return next?.filter((name) => agreed.includes(name)) ?? agreed;
}

/** What may be switched on only by a person. */
export const narrowOn = (next: boolean, agreed: boolean): boolean => next && agreed;
