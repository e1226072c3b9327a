import type { Awaitable } from "../async/awaitable.ts";
import { type Missing, NotFoundError } from "../errors/not-found-error.ts";
import type { CallContext } from "./context.ts";
import { withName } from "./definition.ts";
import { createMemberLists, type Member, type OnListError } from "./member-lists.ts";
import { type Naming, prefixOf, qualify } from "./namespace.ts";
import type { Provider } from "./provider.ts";

/** Whose a qualified name is, and what its owner calls it. */
export interface Owner extends Member {
  readonly name: string;
}

/** The exact catalog of a composite's qualified names. Nothing is ever guessed from a name's spelling. */
export interface Names<T> {
  /** All items under their qualified names; the same array while no member's list changed. */
  list(context: CallContext): Promise<readonly T[]>;
  /** The owner of a name. Only when the name is not known yet is a list asked for, of the one member it could belong to. */
  find(name: string, context: CallContext): Promise<Owner | undefined>;
}

/** How many names are remembered, of members that keep inventing new ones. At the limit all are learnt anew. */
const maxNames = 100_000;

/** A catalog over the lists that `listOf` gives. */
export function createNames<T extends { readonly name: string }>(
  members: readonly Member[],
  naming: Naming,
  listOf: (provider: Provider, context: CallContext) => Awaitable<readonly T[]>,
  onListError: OnListError,
): Names<T> {
  // A name's owner follows from the name, so it is never forgotten because a list changed: the owner knows what is gone.
  const owners = new Map<string, Owner>();
  const renamed = new Map(members.map((member) => [member, new WeakMap<readonly T[], readonly T[]>()]));

  const rename = (member: Member, items: readonly T[]): readonly T[] => {
    const known = renamed.get(member)?.get(items);
    if (known !== undefined) return known;
    const own = items.map((item) => withName(item, qualify(member.namespace, item.name, naming)));
    renamed.get(member)?.set(items, own);
    return own;
  };

  const listMember = async (member: Member, context: CallContext): Promise<readonly T[]> => {
    const items = await listOf(member.provider, context);
    const own = rename(member, items);
    if (owners.size > maxNames) owners.clear();
    own.forEach(({ name: qualified }, index) => {
      const name = items[index]?.name;
      if (name !== undefined && !owners.has(qualified)) owners.set(qualified, { ...member, name });
    });
    return own;
  };

  const lists = createMemberLists(members, listMember, (item) => item.name, onListError);
  return {
    list: lists.all,
    find: async (name, context) => {
      const known = owners.get(name);
      if (known !== undefined) return known;
      // No guess: a prefix belongs to one namespace only, and whether the name exists is still for its list to say.
      const candidate = members.find(({ namespace }) => name.startsWith(prefixOf(namespace, naming)));
      if (candidate === undefined) return undefined;
      await lists.of(candidate, context);
      return owners.get(name);
    },
  };
}

/** An owner's answer. Where it no longer has the thing, the error names it as the caller did. */
export async function answerOf<R>(
  owner: Owner,
  what: Missing,
  name: string,
  answer: Awaitable<R>,
): Promise<R> {
  try {
    return await answer;
  } catch (error) {
    const isGone = error instanceof NotFoundError && error.what === what && error.id === owner.name;
    throw isGone ? new NotFoundError(what, name) : error;
  }
}
