import { createChangeSource, type ChangeSource, type OldChange } from "@junctor/core/provider";

/** Things registered under a name, in the order they came, and the list that callers see. */
export interface NamedEntries<Entry, Shown> extends Pick<ChangeSource, "onChange"> {
  /** Adds an entry. Throws when the name is taken. */
  add(name: string, entry: Entry): void;
  /** Removes an entry; false when there was none. */
  remove(name: string): boolean;
  readonly entries: ReadonlyMap<string, Entry>;
  /** The same array until something is added or removed. */
  list(): readonly Shown[];
}

/** An empty catalog whose changes are reported as `change`. */
export function createNamedEntries<Entry, Shown>(
  what: string,
  change: OldChange,
  toShown: (entry: Entry) => Shown,
): NamedEntries<Entry, Shown> {
  const entries = new Map<string, Entry>();
  const source = createChangeSource();
  let shown: readonly Shown[] | undefined;
  const changed = (): void => {
    shown = undefined;
    source.report(change);
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
    list: () => (shown ??= Object.freeze(Array.from(entries.values(), toShown))),
    onChange: source.onChange,
  };
}
