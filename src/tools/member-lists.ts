import type { CallContext } from "./context.ts";
import type { Provider } from "./provider.ts";

/** One provider of a composite. */
export interface Member {
  readonly namespace: string;
  readonly provider: Provider;
}

/** Told when a member could not be listed. */
export type OnListError = (namespace: string, error: unknown) => void;

/** One kind of list, had from every member of a composite. */
export interface MemberLists<T> {
  /** One member's list; when it cannot be had, the last one this caller got. */
  of(member: Member, context: CallContext): Promise<readonly T[]>;
  /** The lists of all members, in their order, each key once; the same frozen array while none of them changed. */
  all(context: CallContext): Promise<readonly T[]>;
}

/** How many callers' last good lists are kept for each member; who was not seen for longest is forgotten first. */
const maxCallers = 1024;

/** The lists that `listOf` gives. What two members, or one twice, list under one key is the earlier one's. */
export function createMemberLists<T>(
  members: readonly Member[],
  listOf: (member: Member, context: CallContext) => Promise<readonly T[]>,
  keyOf: (item: T) => string,
  onListError: OnListError,
): MemberLists<T> {
  // By caller, because lists depend on who asks: what one may see is not for another.
  const lastGood = new Map(members.map((member) => [member, new Map<string | undefined, readonly T[]>()]));
  let merged: { readonly parts: readonly (readonly T[])[]; readonly all: readonly T[] } | undefined;

  const of = async (member: Member, context: CallContext): Promise<readonly T[]> => {
    const known = lastGood.get(member);
    const { caller } = context;
    try {
      const items = await listOf(member, context);
      known?.delete(caller);
      known?.set(caller, items);
      if (known !== undefined && known.size > maxCallers) known.delete(known.keys().next().value);
      return items;
    } catch (error) {
      context.signal.throwIfAborted();
      onListError(member.namespace, error);
      return known?.get(caller) ?? [];
    }
  };

  return {
    of,
    all: async (context) => {
      const parts = await Promise.all(members.map((member) => of(member, context)));
      const isSame = merged !== undefined && parts.every((part, index) => part === merged?.parts[index]);
      if (merged === undefined || !isSame) merged = { parts, all: merge(parts, keyOf) };
      return merged.all;
    },
  };
}

function merge<T>(parts: readonly (readonly T[])[], keyOf: (item: T) => string): readonly T[] {
  const byKey = new Map<string, T>();
  for (const item of parts.flat()) if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item);
  return Object.freeze([...byKey.values()]);
}
