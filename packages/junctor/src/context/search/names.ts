import type { Document } from "./document.ts";
import type { SlicedWork } from "./slices.ts";

/** What a name in a query is worth: more than all terms together. A public name counts before a server's own. */
const exactly = 2_000_000;
const inOtherCase = 1_000_000;
const asOwn = 10_000;

/** Finds the tools whose names are in a query, by their numbers, and what that is worth for each. */
type FindNames = (query: string) => ReadonlyMap<number, number>;

/** A query is cut here, as for its terms. */
const maxQuery = 1000;

/** Makes a function that finds tools by the names in a query. Documents are numbered one after the other. */
export function* indexNames(servers: readonly (readonly Document[])[]): SlicedWork<FindNames> {
  const documents: Document[] = [];
  const byName = new Map<string, number[]>();
  for (const list of servers) {
    for (const document of list) {
      const { name, ownName } = document;
      for (const key of new Set([name, ownName, name.toLowerCase(), ownName.toLowerCase()])) {
        const places = byName.get(key);
        if (places === undefined) byName.set(key, [documents.length]);
        else places.push(documents.length);
      }
      documents.push(document);
      yield 20;
    }
  }
  return (query) => {
    const found = new Map<number, number>();
    for (const { text, isName } of partsOf(query.slice(0, maxQuery))) {
      for (const key of new Set([text, text.toLowerCase()])) {
        for (const number of byName.get(key) ?? []) {
          const { name = "" } = documents[number] ?? {};
          const isPublic = name.toLowerCase() === text.toLowerCase();
          // `search` and `query` are the names of tools, and words that people use.
          if (!isPublic && !isName) continue;
          const bonus = name === text ? exactly : isPublic ? inOtherCase : asOwn;
          found.set(number, Math.max(bonus, found.get(number) ?? 0));
        }
      }
    }
    return found;
  };
}

interface NamedPart {
  readonly text: string;
  /** Whether it is meant as a name: all of the query, in quotes, or written as no word is. */
  readonly isName: boolean;
}

/** Everything in a query that may be a name: all of it, and each part without the marks around it. */
function partsOf(query: string): readonly NamedPart[] {
  const whole = query.trim();
  const parts = whole.split(/\s+/).flatMap((part): readonly NamedPart[] => {
    const bare = part.replaceAll(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "");
    const isName = /^["'`].*["'`]\W*$/.test(part) || /[_\p{N}:/.-]|\p{Ll}\p{Lu}/u.test(bare);
    return [
      { text: part, isName },
      { text: bare, isName },
    ];
  });
  return [{ text: whole, isName: true }, ...parts].filter(({ text }) => text !== "");
}
