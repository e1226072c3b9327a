import type { Awaitable } from "../async/awaitable.ts";
import type { RawJson } from "../json/raw.ts";
import type { Fit } from "../tools/fit/fit-listed.ts";
import { describeNotes, type ListFault, type ListPart, toListFault } from "../tools/fit/list-fault.ts";

/** How the things of one list are read. */
export interface ListReader<T> {
  readonly part: ListPart;
  /** The member that no two things of a list may share. */
  readonly key: string;
  fit(raw: RawJson): Awaitable<Fit<T>>;
}

/** Most faults of one list that are kept to be told. */
const maxFaults = 1000;

/** Reads what a server listed: things that clients would refuse are mended or left out, and told. */
export async function fitList<T extends object>(
  raws: readonly RawJson[],
  { part, key, fit }: ListReader<T>,
): Promise<{ readonly items: readonly T[]; readonly faults: readonly ListFault[] }> {
  const items: T[] = [];
  const faults: ListFault[] = [];
  const seen = new Set<unknown>();
  const report = (name: string, isLeftOut: boolean, reason: string): void => {
    if (faults.length < maxFaults) faults.push(toListFault(part, name, isLeftOut, reason));
  };
  for (const [index, raw] of raws.entries()) {
    const fitted = await fit(raw);
    const id = raw.kind === "object" ? (raw.value as { readonly [key: string]: unknown })[key] : undefined;
    const name = typeof id === "string" ? id : `#${index + 1}`;
    if (fitted.kind === "unfit") report(name, true, fitted.reason);
    else if (seen.has(id)) report(name, true, `its ${key} is listed twice; the first one is used`);
    else {
      seen.add(id);
      items.push(fitted.item);
      if (fitted.notes.length > 0) report(name, false, describeNotes(fitted.notes));
    }
  }
  return { items, faults };
}
