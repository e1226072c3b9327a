import type { CacheHints, Items, Meta, Part } from "../mcp/index.ts";
import { keyOf } from "../mcp/index.ts";

interface ListingFacts {
  /** Members for the `_meta` of the list, such as which servers are missing in it. */
  readonly meta?: Meta | undefined;
  /** How long callers may cache it; not at all when left out. */
  readonly hints?: CacheHints | undefined;
}

/**
 * One list for one caller, in a deterministic order. Immutable, and the same object while nothing about it
 * changed: what is made from it is cached by its identity.
 *
 * @example
 * const listing = new Listing(Object.freeze([{ name: "add", inputSchema: { type: "object" } }]));
 */
export class Listing<Item extends object> {
  readonly items: readonly Item[];
  readonly meta: Meta | undefined;
  readonly hints: CacheHints | undefined;
  #byKey: ReadonlyMap<string, Item> | undefined;

  constructor(items: readonly Item[], { meta, hints }: ListingFacts = {}) {
    this.items = items;
    this.meta = meta;
    this.hints = hints;
  }

  /** The item with a name or URI; the first of several. */
  get(key: string): Item | undefined {
    this.#byKey ??= new Map(
      this.items.toReversed().map((item) => [keyOf(item as unknown as Items[Part]), item]),
    );
    return this.#byKey.get(key);
  }

  /** The same facts about other items. */
  with(items: readonly Item[], facts: ListingFacts = {}): Listing<Item> {
    const { meta = this.meta, hints = this.hints } = facts;
    return new Listing(items, { meta, hints });
  }
}

/** A list without items. */
export const emptyListing: Listing<never> = new Listing<never>(Object.freeze([]));

/** Maps each listing once, so that the same listing gives the same result. */
export function mapListings<Item extends object, Rest extends readonly unknown[] = []>(
  map: (listing: Listing<Item>, ...rest: Rest) => Listing<Item>,
): (listing: Listing<Item>, ...rest: Rest) => Listing<Item> {
  const made = new WeakMap<Listing<Item>, Listing<Item>>();
  return (listing, ...rest) => {
    let mapped = made.get(listing);
    if (mapped === undefined) made.set(listing, (mapped = map(listing, ...rest)));
    return mapped;
  };
}
