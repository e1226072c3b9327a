import type { CallContext } from "./context.ts";
import { withName } from "./definition.ts";
import { type Naming, qualify } from "./namespace.ts";
import type { Provider } from "./provider.ts";

/** One provider of a composite. */
export interface Member {
  readonly namespace: string;
  readonly provider: Provider;
}

/** Whose a qualified name is, and what its owner calls it. */
export interface Owner extends Member {
  readonly name: string;
}

/** The exact catalog of a composite's qualified names. Nothing is ever guessed from a name's spelling. */
export interface Names<T> {
  /** All items under their qualified names; the same array while no member's list changed. */
  list(context: CallContext): Promise<readonly T[]>;
  /** The owner of a name. Members are listed only when the name is not known yet. */
  find(name: string, context: CallContext): Promise<Owner | undefined>;
  /** Forgets the names, because a member's list changed. */
  forget(): void;
}

/** A catalog over the lists that `listOf` gives. A member that cannot be listed keeps its last good list. */
export function createNames<T extends { readonly name: string }>(
  members: readonly Member[],
  naming: Naming,
  listOf: (provider: Provider, context: CallContext) => Promise<readonly T[]>,
  onListError: (namespace: string, error: unknown) => void,
): Names<T> {
  const owners = new Map<string, Owner>();
  const lastGood = new Map<Member, readonly T[]>();
  const renamed = new WeakMap<readonly T[], readonly T[]>();
  let merged: { readonly parts: readonly (readonly T[])[]; readonly all: readonly T[] } | undefined;

  const rename = (member: Member, items: readonly T[]): readonly T[] => {
    let own = renamed.get(items);
    if (own === undefined) {
      own = items.map((item) => withName(item, qualify(member.namespace, item.name, naming)));
      renamed.set(items, own);
    }
    return own;
  };

  const listMember = async (member: Member, context: CallContext): Promise<readonly T[]> => {
    let items: readonly T[];
    try {
      items = await listOf(member.provider, context);
      lastGood.set(member, items);
    } catch (error) {
      context.signal.throwIfAborted();
      onListError(member.namespace, error);
      items = lastGood.get(member) ?? [];
    }
    const own = rename(member, items);
    own.forEach((item, index) => {
      const name = items[index]?.name;
      if (name !== undefined && !owners.has(item.name)) owners.set(item.name, { ...member, name });
    });
    return own;
  };

  const list = async (context: CallContext): Promise<readonly T[]> => {
    const parts = await Promise.all(members.map((member) => listMember(member, context)));
    const isSame = merged !== undefined && parts.every((part, index) => part === merged?.parts[index]);
    if (!isSame) merged = { parts, all: Object.freeze(parts.flat()) };
    return merged?.all ?? [];
  };

  return {
    list,
    find: async (name, context) => {
      const known = owners.get(name);
      if (known !== undefined) return known;
      await list(context);
      return owners.get(name);
    },
    forget: () => owners.clear(),
  };
}
