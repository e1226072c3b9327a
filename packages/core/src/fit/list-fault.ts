import { clip } from "../schema/index.ts";
import type { Note } from "./check.ts";

/** The lists a server has. */
export type ListPart = "tools" | "resources" | "templates" | "prompts";

/** A listed thing that clients would refuse, and with it the whole list. */
export interface ListFault {
  readonly part: ListPart;
  /** What its server calls it: a name, a URI or a URI template, in 200 characters at most; `#3` for the third if it has none. */
  readonly name: string;
  /** Whether it is missing from the list. Otherwise it was mended, without changing its meaning. */
  readonly isLeftOut: boolean;
  /** The fault, and what was done about it, in 500 characters at most. */
  readonly reason: string;
}

const maxNotes = 5;

/** A fault whose texts may be shown anywhere: servers choose parts of them. */
export function toListFault(part: ListPart, name: string, isLeftOut: boolean, reason: string): ListFault {
  return { part, name: clip(toLine(name), 200), isLeftOut, reason: clip(toLine(reason), 500) };
}

/** What was changed in one thing, as a sentence. */
export function describeNotes(notes: readonly Note[]): string {
  const texts = notes.slice(0, maxNotes).map(({ path, text }) => `${path} ${text}`);
  const more = notes.length - texts.length;
  return [...texts, ...(more > 0 ? [`${more} more changes`] : [])].join("; ");
}

/** Without characters that break lines, steer a terminal, or make text run the other way (CVE-2021-42574). */
function toLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
