import type { CacheHints, Part } from "@junctor/core/mcp";
import { type Change, type ChangeSource, createChanges, Listing } from "@junctor/core/provider";

/** Things registered under a name, in the order they came, and the list that callers see. */
export interface NamedEntries<Entry, Shown extends object> extends Pick<ChangeSource<Change>, "onChange"> {
  /** Adds an entry. Throws when the name is taken. */
  add(name: string, entry: Entry): void;
  /** Removes an entry; false when there was none. */
  remove(name: string): boolean;
  readonly entries: ReadonlyMap<string, Entry>;
  /** The same list until something is added or removed. */
  list(): Listing<Shown>;
}

/** An empty catalog of one list. */
export function createNamedEntries<Entry, Shown extends object>(
  what: string,
  part: Part,
  toShown: (entry: Entry) => Shown,
  hints?: CacheHints,
): NamedEntries<Entry, Shown> {
  const entries = new Map<string, Entry>();
  const changes = createChanges();
  let shown: Listing<Shown> | undefined;
  const changed = (): void => {
    shown = undefined;
    changes.report({ part });
  };
  return {
    add: (name, entry) => {
      if (entries.has(name))
        throw new TypeError(`${what} ${JSON.stringify(name)} is registered already; unregister it first`);
      entries.set(name, entry);
      changed();
    },
    remove: (name) => {
      const existed = entries.delete(name);
      if (existed) changed();
      return existed;
    },
    entries,
    list: () => (shown ??= new Listing(Object.freeze(Array.from(entries.values(), toShown)), { hints })),
    onChange: changes.onChange,
  };
}
