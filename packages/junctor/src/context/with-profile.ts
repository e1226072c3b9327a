import { andThen, settled } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import { keyOf, type Tool, withMembers } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  findIn,
  type Listing,
  mapListings,
  type Middleware,
  type Provider,
  withMiddleware,
  withNames,
} from "@junctor/core/provider";
import { createGlobs } from "@junctor/server/internal";

/** Which part of a provider a profile shows, and under which names. */
export interface ProfileOptions {
  /** Globs of the names and URIs that may be used; all when left out, none when empty. */
  readonly allow?: readonly string[];
  /** Globs of those that may not, whatever `allow` says. */
  readonly deny?: readonly string[];
  /** New names of tools, by the names they have. A tool is no longer known by its old name. */
  readonly rename?: { readonly [name: string]: string };
  /** Names of tools that clients which defer tools are to load at once: the new names, where there are some. */
  readonly pin?: readonly string[];
}

const optionKeys: KeysOf<ProfileOptions> = keys("allow deny rename pin");

/**
 * A part of a provider, under other names if need be. It only takes away: what it does not list cannot be used through it.
 *
 * @example
 * const reading = withProfile(provider, { allow: ["github__get_*"], rename: { github__get_issue: "issue" } });
 */
export function withProfile(given: Provider, options: ProfileOptions): Provider {
  assertKnownKeys("withProfile", options, optionKeys);
  const { allow, deny, rename = {}, pin = [] } = options;
  const isNarrow = allow !== undefined || (deny ?? []).length > 0;
  const narrow = isNarrow ? withMiddleware(given, [createFilter(createGlobs(allow, deny))]) : given;
  const isSame = Object.keys(rename).length === 0 && pin.length === 0;
  return isSame ? narrow : withToolNames(narrow, new Map(Object.entries(rename)), new Set(pin));
}

/** Leaves the things whose names or URIs may pass, in lists and in use. */
function createFilter(mayPass: (name: string) => boolean): Middleware {
  return {
    filterTools: (items) => items.filter((item) => mayPass(keyOf(item))),
    // A resource that no list has is judged by its URI.
    beforeCall: ({ part, name }) => {
      if (part === "resources" && !mayPass(name)) throw new NotFoundError("resource", name);
    },
  };
}

function withToolNames(
  inner: Provider,
  names: ReadonlyMap<string, string>,
  pin: ReadonlySet<string>,
): Provider {
  const oldNames = new Map([...names].map(([old, name]) => [name, old]));
  // A new name hides a tool that has it already.
  const shown = mapListings<Tool>((listing) =>
    listing.with(
      Object.freeze(
        listing.items.filter(
          ({ name }) => names.has(name) || listing.get(oldNames.get(name) ?? "") === undefined,
        ),
      ),
    ),
  );
  const list: Provider["list"] = (part, context) =>
    andThen(settled(inner.list(part, context)), (listing) =>
      part === "tools" ? (shown(listing as Listing<Tool>) as typeof listing) : listing,
    );
  return withNames(
    { ...inner, list },
    {
      parts: ["tools"],
      toInner: (_, name, context) => {
        const other = names.has(name) ? undefined : name;
        const old = oldNames.get(name);
        if (old === undefined) return other;
        return andThen(findIn(inner, "tools", old, context), (entry) => (entry?.key === old ? old : other));
      },
      toOuter: (_, name) => names.get(name) ?? name,
      finish: (item) =>
        pin.has(keyOf(item))
          ? withMembers(item, { _meta: { ...item._meta, "anthropic/alwaysLoad": true } } as object)
          : item,
    },
  );
}
