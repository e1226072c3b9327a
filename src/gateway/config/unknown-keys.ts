import { nearest } from "../../errors/nearest.ts";
import type { Group } from "./config-value.ts";

/** For what is ours alone: every key that is not known is an issue. Gives whether all were known. */
export function refuseUnknownKeys(group: Group, known: readonly string[], hints: KeyHints = {}): boolean {
  let isAllKnown = true;
  for (const [key, { path }] of group.entries()) {
    if (known.includes(key)) continue;
    isAllKnown = false;
    const hint = Object.hasOwn(hints, key) ? hints[key] : undefined;
    const near = nearest(key, known);
    const list = known.join(", ");
    if (hint !== undefined) group.reading.issue(path, `does not belong here: ${hint}`);
    else if (near === undefined) group.reading.issue(path, `is not known here: write one of ${list}`);
    else group.reading.issue(path, `is not known here: did you mean ${near}? (There may be ${list}.)`);
  }
  return isAllKnown;
}

/** What to say of a key that is often tried. */
export interface KeyHints {
  readonly [key: string]: string;
}
