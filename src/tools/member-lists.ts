import { settlesWithin, systemClock } from "../async/clock.ts";
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

/** How many callers' last lists are kept; who was not seen for longest is forgotten first. */
const maxCallers = 1024;

/** How long a list waits for a member the first time. After that it goes on without, until the member has answered. */
const maxWaitMs = 2000;

/** A list that was asked for: it settles with whether it came, or whether whoever asked gave up. */
interface Asked {
  readonly startedAt: number;
  readonly settled: Promise<"listed" | "failed" | "given_up">;
}

/** What one caller was shown, and what is being asked for on its behalf. */
interface View<T> {
  readonly lastGood: Map<Member, readonly T[]>;
  readonly underway: Map<Member, Asked>;
  merged: { readonly parts: readonly (readonly T[])[]; readonly all: readonly T[] } | undefined;
}

/**
 * The lists that `listOf` gives. What two members, or one twice, list under one key is the earlier one's. A member that
 * fails, or does not answer, does not hold up the others.
 */
export function createMemberLists<T>(
  members: readonly Member[],
  listOf: (member: Member, context: CallContext) => Promise<readonly T[]>,
  keyOf: (item: T) => string,
  onListError: OnListError,
): MemberLists<T> {
  // By caller, because lists depend on who asks: what one may see is not for another.
  const views = new Map<string | undefined, View<T>>();

  const viewOf = ({ caller }: CallContext): View<T> => {
    const view = views.get(caller) ?? { lastGood: new Map(), underway: new Map(), merged: undefined };
    views.delete(caller);
    views.set(caller, view);
    if (views.size > maxCallers) views.delete(views.keys().next().value);
    return view;
  };

  const ask = async (
    member: Member,
    view: View<T>,
    context: CallContext,
  ): Promise<"listed" | "failed" | "given_up"> => {
    try {
      view.lastGood.set(member, await listOf(member, context));
      return "listed";
    } catch (error) {
      if (context.signal.aborted) return "given_up";
      onListError(member.namespace, error);
      return "failed";
    } finally {
      view.underway.delete(member);
    }
  };

  const start = (member: Member, view: View<T>, context: CallContext): Asked => {
    const asked = { startedAt: systemClock.now(), settled: ask(member, view, context) };
    view.underway.set(member, asked);
    void settlesWithin(asked.settled, maxWaitMs, systemClock).then((isInTime) => {
      if (!isInTime) onListError(member.namespace, new Error(`No list came within ${maxWaitMs} ms`));
    });
    return asked;
  };

  const of = async (member: Member, context: CallContext): Promise<readonly T[]> => {
    const view = viewOf(context);
    const { startedAt, settled } = view.underway.get(member) ?? start(member, view, context);
    const leftMs = startedAt + maxWaitMs - systemClock.now();
    const isSettled = leftMs > 0 && (await settlesWithin(settled, leftMs, systemClock));
    context.signal.throwIfAborted();
    // Somebody else asked, and gave up; that says nothing about the list.
    if (isSettled && (await settled) === "given_up") return of(member, context);
    return view.lastGood.get(member) ?? [];
  };

  return {
    of,
    all: async (context) => {
      const parts = await Promise.all(members.map((member) => of(member, context)));
      const view = viewOf(context);
      const isSame =
        view.merged !== undefined && parts.every((part, index) => part === view.merged?.parts[index]);
      if (view.merged === undefined || !isSame) view.merged = { parts, all: merge(parts, keyOf) };
      return view.merged.all;
    },
  };
}

function merge<T>(parts: readonly (readonly T[])[], keyOf: (item: T) => string): readonly T[] {
  const byKey = new Map<string, T>();
  for (const item of parts.flat()) if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item);
  return Object.freeze([...byKey.values()]);
}
