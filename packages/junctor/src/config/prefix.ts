import { createHash } from "node:crypto";
import {
  assertNamespaces,
  defaultNaming,
  type Naming,
  prefixOf,
  type Separator,
} from "@junctor/core/compose";

const maxLength = defaultNaming.maxLength / 2;

/** What a prefix must look like, for messages. */
export function describePrefixRule(separator: Separator): string {
  const rule = `use up to ${maxLength} of the characters A-Z a-z 0-9 _ . -, begin with a letter or digit`;
  return `${rule}, and do not write or end in what could be taken for the separator ${JSON.stringify(separator)}`;
}

export function isPrefix(text: string, separator: Separator): boolean {
  try {
    assertNamespaces([text], toNaming(separator));
    return true;
  } catch {
    return false; // It throws for this reason only, and says so in words for programmers.
  }
}

/**
 * The prefix of a server that was given none: its name, or, when that cannot be one (`@scope/x`, `my server`), the
 * nearest thing that can. It depends on nothing but the name, so it does not change when other servers come or go.
 */
export function toPrefix(name: string, separator: Separator): string {
  const filler = separator === "-" ? "_" : "-";
  const trim = (text: string): string => text.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  const lightly = trim(name.replaceAll(/[^A-Za-z0-9_.-]+/g, filler));
  const fully = trim(name.replaceAll(/[^A-Za-z0-9]+/g, filler));
  const cut = trim(fully.slice(0, maxLength - hash.length - 1));
  const last = `${cut === "" ? "server" : cut}${filler}${hash}`;
  return [name, lightly, fully].find((candidate) => isPrefix(candidate, separator)) ?? last;
}

/** Pairs of names whose prefixes are spelled the same in a tool's name, such as `a.b` and `a_b`. */
export function findSamePrefixes(
  prefixes: ReadonlyMap<string, string | false>,
  separator: Separator,
): readonly (readonly [first: string, second: string])[] {
  const owners = new Map<string, string>();
  const same: [string, string][] = [];
  for (const [name, prefix] of prefixes) {
    if (prefix === false) continue;
    const spelled = prefixOf(prefix, toNaming(separator));
    const owner = owners.get(spelled);
    if (owner === undefined) owners.set(spelled, name);
    else same.push([owner, name]);
  }
  return same;
}

function toNaming(separator: Separator): Naming {
  return { ...defaultNaming, separator };
}
