import { isPromise, type Clock, systemClock, timedOut, waitFor } from "../async/index.ts";
import { type CacheHints, strictestOf } from "../mcp/index.ts";
import type { CallContext, CallerInfo, Listing, Provider } from "../provider/index.ts";
import type { ListPart, MemberLists, Member } from "./member.ts";

/** Called when a provider could not be listed. */
export type OnListError = (namespace: string, error: unknown) => void;

interface PolledListsOptions {
  readonly name: string;
  readonly provider: Provider;
  readonly onListError: OnListError;
  /** Called when a list of a caller changed. */
  readonly onChanged: () => void;
  readonly clock?: Clock;
}

/** How many callers' last lists are kept; the caller that was not seen for longest is forgotten first. */
const maxCallers = 1024;

/** How long a list waits for the provider the first time. Later lists do without it until the provider has answered. */
const maxWaitMs = 2000;

/** A list that was asked for: it settles with whether it came, or whether the caller that asked gave up. */
interface Asked {
  readonly startedAt: number;
  readonly settled: Promise<"listed" | "failed" | "given_up">;
}

/** The last lists one caller got, and those that are being asked for on its behalf. */
interface CallerLists {
  lists: MemberLists;
  readonly hints: Map<ListPart, CacheHints | undefined>;
  readonly underway: Map<ListPart, Asked>;
}

const nothingListed: MemberLists = { tools: [], prompts: [], resources: [], templates: [] };

/**
 * The lists of a provider that must be asked each time a caller looks. By caller, because lists depend on who asks. When a
 * list cannot be had, the caller sees the last one it got.
 */
export function createPolledLists(
  options: PolledListsOptions,
): Pick<Member, "listsFor" | "beginListing" | "untilListed"> {
  const { name, provider, onListError, onChanged, clock = systemClock } = options;
  const callers = new Map<string | undefined, CallerLists>();

  const listsOf = ({ caller }: Pick<CallerInfo, "caller">): CallerLists => {
    const known = callers.get(caller) ?? { lists: nothingListed, hints: new Map(), underway: new Map() };
    callers.delete(caller);
    callers.set(caller, known);
    if (callers.size > maxCallers) callers.delete(callers.keys().next().value);
    return known;
  };

  const take = (known: CallerLists, part: ListPart, { items, hints }: Listing<object>): void => {
    if (known.lists[part] === items && known.hints.has(part)) return;
    known.hints.set(part, hints);
    const all = [...known.hints.values()];
    const together = all.includes(undefined) ? undefined : strictestOf(all.flatMap((each) => each ?? []));
    known.lists = { ...known.lists, [part]: items, hints: together };
    onChanged();
  };

  const ask = (known: CallerLists, part: ListPart, context: CallContext): Asked | undefined => {
    const listing = tryList(provider, part, context);
    if (!isPromise(listing)) {
      take(known, part, listing);
      return undefined;
    }
    const settled = listing
      .then(
        (list) => {
          take(known, part, list);
          return "listed" as const;
        },
        (error: unknown) => {
          if (context.signal.aborted) return "given_up" as const;
          onListError(name, error);
          return "failed" as const;
        },
      )
      .finally(() => known.underway.delete(part));
    const asked: Asked = { startedAt: clock.now(), settled };
    known.underway.set(part, asked);
    void waitFor(settled, { ms: maxWaitMs, clock }).then((outcome) => {
      if (outcome === timedOut) onListError(name, new Error(`No list came within ${maxWaitMs} ms`));
    });
    return asked;
  };

  const beginListing = (context: CallContext, part: ListPart): Promise<unknown> | undefined => {
    const known = listsOf(context);
    const asked = known.underway.get(part) ?? ask(known, part, context);
    return asked === undefined ? undefined : wait(asked, context, part);
  };

  const wait = async (
    { startedAt, settled }: Asked,
    context: CallContext,
    part: ListPart,
  ): Promise<unknown> => {
    const leftMs = startedAt + maxWaitMs - clock.now();
    const outcome = leftMs > 0 ? await waitFor(settled, { ms: leftMs, clock }) : timedOut;
    context.signal.throwIfAborted();
    // Another request asked, and its caller gave up; that says nothing about the list.
    return outcome === "given_up" ? beginListing(context, part) : undefined;
  };

  return { listsFor: (caller) => listsOf(caller).lists, beginListing, untilListed: beginListing };
}

function tryList(
  provider: Provider,
  part: ListPart,
  context: CallContext,
): Listing<object> | Promise<Listing<object>> {
  try {
    return provider.list(part, context);
  } catch (error) {
    return Promise.reject(error);
  }
}
