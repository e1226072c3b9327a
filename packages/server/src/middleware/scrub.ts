import { rewriteStrings } from "@junctor/core/json";
import { suggest } from "@junctor/core/options";
import { withinTime } from "@junctor/core/schema";
import { hideAll, type SecretKind, secrets } from "./secret-kinds.ts";

export interface ScrubberOptions {
  /** What to hide: kinds of secrets by their names, and patterns of your own. */
  readonly patterns: readonly (RegExp | SecretKind)[];
  /** How long patterns of your own may search one text; 100. */
  readonly maxSearchMs?: number;
}

/** Keys of the protocol that hold what a server says. A pattern that fits one of them must not break the message. */
const protocolKeys = new Set(
  "content type text structuredContent isError _meta resultType data mimeType resource uri name title description annotations messages role contents blob completion values total hasMore".split(
    " ",
  ),
);

/** Hides what must be hidden in the strings and keys of a JSON text. The very same text if there is nothing. */
export type Scrub = (json: string) => string;

const mask = "[redacted]";

/** @throws TypeError for a kind of secret there is not */
export function createScrubber({ patterns, maxSearchMs = 100 }: ScrubberOptions): Scrub {
  const searches = patterns.map(toSearch);
  // Ours end in time; others are watched, which costs 60 µs.
  const limitMs = patterns.some((pattern) => typeof pattern !== "string") ? maxSearchMs : Infinity;
  return (json) => {
    // An escape can spell any character, so the text as it is written cannot be searched.
    const isPlain = !json.includes("\\u");
    const needed = isPlain ? searches.filter(({ hint }) => hint?.test(json) ?? true) : searches;
    if (needed.length === 0) return json;
    const hideIn = (value: string): string => needed.reduce((text, { hide }) => hide(text, mask), value);
    const hideInKey = (key: string): string => (protocolKeys.has(key) ? key : hideIn(key));
    return withinTime(limitMs, () => rewriteStrings(json, hideIn, hideInKey));
  };
}

interface Search {
  /** Undefined where nothing can be said before each string is looked at. */
  readonly hint: RegExp | undefined;
  readonly hide: (text: string, mask: string) => string;
}

function toSearch(pattern: RegExp | SecretKind): Search {
  if (typeof pattern === "string") {
    if (Object.hasOwn(secrets, pattern)) return secrets[pattern];
    const known = Object.keys(secrets);
    const hint = suggest(pattern, known, `use a RegExp or one of ${known.join(", ")}`);
    throw new TypeError(`There is no kind of secret ${JSON.stringify(pattern)}: ${hint}`);
  }
  // A copy, global and not sticky: a pattern that others use as well has a position of its own.
  const flags = `${pattern.flags.replaceAll(/[gy]/g, "")}g`;
  return { hint: undefined, hide: hideAll(new RegExp(pattern.source, flags)) };
}
