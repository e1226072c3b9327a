import {
  andThen,
  type Awaitable,
  isPromise,
  type Clock,
  systemClock,
  timedOut,
  waitFor,
} from "../async/index.ts";
import { NotFoundError, RpcError } from "../errors/index.ts";
import { methods, type CacheHints, strictestOf } from "../mcp/index.ts";
import { assertKnownKeys, keys, type KeysOf } from "../options/index.ts";
import {
  type CallContext,
  type CallerInfo,
  createChanges,
  type Entry,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  type Wrapper,
  type Listing,
} from "../provider/index.ts";
import { Catalog } from "./catalog.ts";
import { createComposition } from "./composition.ts";
import type { Member, ListPart, MemberLists } from "./member.ts";
import { assertNamespaces, defaultNaming, type Naming, prefixOf, qualify } from "./namespace.ts";
import { allowAll } from "./view.ts";

export interface ComposeOptions extends Partial<Naming> {
  /**
   * What to do with a name that has no separator. `exact` (the default) looks it up like any other; `first_match` tries
   * the providers in order; `refuse` answers that the format is wrong.
   */
  readonly bareNames?: "exact" | "first_match" | "refuse";
  /**
   * Called when a provider could not be listed; its last good list is used. The default writes it to the standard error
   * stream.
   */
  readonly onListError?: OnListError;
}

const optionKeys: KeysOf<ComposeOptions> = keys("separator maxLength bareNames onListError");

/** Several providers as one. Made by {@link compose}. */
interface Composite extends Provider {
  readonly namespaces: readonly string[];
}

/**
 * Puts providers side by side, each under its namespace: the tool `search` of `{ github }` is `github__search`.
 * Resources keep their URIs; earlier providers win.
 *
 * @example
 * const all = compose({ github: upstream, local: registry });
 */
export function compose(
  providers: { readonly [namespace: string]: Provider },
  options: ComposeOptions = {},
): Composite {
  assertKnownKeys("compose", options, optionKeys);
  const { bareNames = "exact", onListError = writeListError, ...namingOptions } = options;
  const naming: Naming = { ...defaultNaming, ...namingOptions };
  const { separator } = naming;
  const namespaces = Object.keys(providers);
  assertNamespaces(namespaces, naming);
  // Each caller has an edition of its own: providers may list other things for each.
  const catalog = new Catalog({ kindOf: ({ caller }) => caller, separator: () => separator });
  const all = Object.values(providers);
  catalog.members = namespaces.map((name, index) =>
    toMember(name, all[index] as Provider, naming, { onListError, onChanged: () => catalog.outdated() }),
  );
  const composition = createComposition({
    catalog,
    viewFor: (caller) => catalog.viewFor(caller, allowAll),
    triesAll: true,
    offers: (caller) => offersOf(all, caller),
    onChange: (listener) => listenToAll(all, listener),
  });

  const callBare = async (operation: Operation, context: CallContext): Promise<Outcome> => {
    if (bareNames === "refuse") {
      throw new RpcError("rpc.invalid_params", `Invalid tool name format: '${operation.name}'`);
    }
    for (const provider of all) {
      try {
        return await provider.call(operation, context);
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    }
    throw new NotFoundError("tool", operation.name);
  };
  const isBare = ({ method, name }: Operation): boolean =>
    bareNames !== "exact" && method === "tools/call" && !name.includes(separator);

  const find = (
    ...[part, name, context]: Parameters<NonNullable<Provider["find"]>>
  ): Awaitable<Entry<never> | undefined> => {
    const isAlias = bareNames === "first_match" && part === "tools" && !name.includes(separator);
    if (!isAlias) return composition.find?.(part, name, context) as Awaitable<Entry<never> | undefined>;
    return andThen(composition.list("tools", context), (listing) => {
      const names = namespaces.map((namespace) => qualify(namespace, name, naming));
      const key = names.find((each) => listing.get(each) !== undefined);
      const item = key === undefined ? undefined : listing.get(key);
      return key === undefined || item === undefined ? undefined : { key, item: item as never };
    });
  };

  const isWatchable = all.some((provider) => provider.watch !== undefined);
  const reportsChanges = all.some((provider) => provider.onChange !== undefined);
  const { list, call, watch, offers, onChange } = composition;
  const composite: Wrapper = {
    list,
    call: (operation, context) =>
      isBare(operation) ? callBare(operation, context) : call(operation, context),
    find,
    watch: isWatchable ? watch : undefined,
    offers,
    onChange: reportsChanges ? onChange : undefined,
  };
  return Object.assign(composite, { namespaces });
}

/** What several providers offer together. Methods that we do not know have no owner among them. */
function offersOf(all: readonly Provider[], caller: CallerInfo): Offers {
  const offers = all.map((provider) => provider.offers(caller));
  const ids = offers.flatMap(({ extensions = {} }) => Object.entries(extensions));
  return {
    serves: (method) => methods.has(method) && offers.some(({ serves }) => serves(method)),
    extensions: Object.fromEntries(ids),
  };
}

/** A provider whose names begin with its namespace. */
function toMember(
  name: string,
  provider: Provider,
  naming: Naming,
  listeners: { readonly onListError: OnListError; readonly onChanged: () => void },
): Member {
  const prefix = prefixOf(name, naming);
  return {
    name,
    provider,
    isListed: true,
    names: {
      tool: (ownName) => ({ name: qualify(name, ownName, naming) }),
      prompt: (ownName) => qualify(name, ownName, naming),
      mayOwn: (publicName) => publicName.startsWith(prefix),
    },
    ...createPolledLists({ name, provider, ...listeners }),
  };
}

/** The changes of all providers. Changes of one list that several report at once are reported once. */
function listenToAll(
  all: readonly Provider[],
  listener: Parameters<NonNullable<Provider["onChange"]>>[0],
): () => void {
  const source = createChanges();
  source.onChange(listener);
  const stops = all.map((provider) => provider.onChange?.((change) => source.report(change)));
  return () => stops.forEach((stop) => stop?.());
}

function writeListError(namespace: string, error: unknown): void {
  console.error(`Listing ${namespace} failed:`, error);
}

/** Called when a provider could not be listed. */
type OnListError = (namespace: string, error: unknown) => void;

interface PolledListsOptions {
  readonly name: string;
  readonly provider: Provider;
  readonly onListError: OnListError;
  /** Called when a list of a caller changed. */
  readonly onChanged: () => void;
  readonly clock?: Clock;
}

/** The most callers whose last lists are kept; the least recently seen is forgotten first. */
const maxCallers = 1024;

/** How long a list waits for the provider the first time. Later lists do without it until the provider has answered. */
const maxWaitMs = 2000;

/** A request for a list. It settles with whether the list came, or whether the caller that asked gave up. */
interface ListRequest {
  readonly startedAt: number;
  readonly settled: Promise<"listed" | "failed" | "given_up">;
}

/** The last lists that one caller got, and the requests underway on its behalf. */
interface CallerLists {
  lists: MemberLists;
  readonly hints: Map<ListPart, CacheHints | undefined>;
  readonly underway: Map<ListPart, ListRequest>;
}

const noLists: MemberLists = { tools: [], prompts: [], resources: [], templates: [] };

/**
 * The lists of a provider that must be asked each time a caller looks. By caller, because lists depend on who
 * asks. When a request for a list fails, the caller sees the last one it got.
 */
export function createPolledLists(
  options: PolledListsOptions,
): Pick<Member, "listsFor" | "beginListing" | "untilListed"> {
  const { name, provider, onListError, onChanged, clock = systemClock } = options;
  const callers = new Map<string | undefined, CallerLists>();

  const listsOf = ({ caller }: Pick<CallerInfo, "caller">): CallerLists => {
    const known = callers.get(caller) ?? { lists: noLists, hints: new Map(), underway: new Map() };
    callers.delete(caller);
    callers.set(caller, known);
    if (callers.size > maxCallers) callers.delete(callers.keys().next().value);
    return known;
  };

  const take = (known: CallerLists, part: ListPart, { items, hints }: Listing<object>): void => {
    if (known.lists[part] === items && known.hints.has(part)) return;
    known.hints.set(part, hints);
    const all = [...known.hints.values()];
    const strictest = all.includes(undefined) ? undefined : strictestOf(all.flatMap((each) => each ?? []));
    known.lists = { ...known.lists, [part]: items, hints: strictest };
    onChanged();
  };

  const ask = (known: CallerLists, part: ListPart, context: CallContext): ListRequest | undefined => {
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
    const request: ListRequest = { startedAt: clock.now(), settled };
    known.underway.set(part, request);
    void waitFor(settled, { ms: maxWaitMs, clock }).then((outcome) => {
      if (outcome === timedOut) onListError(name, new Error(`No list came within ${maxWaitMs} ms`));
    });
    return request;
  };

  const beginListing = (context: CallContext, part: ListPart): Promise<unknown> | undefined => {
    const known = listsOf(context);
    const request = known.underway.get(part) ?? ask(known, part, context);
    return request === undefined ? undefined : wait(request, context, part);
  };

  const wait = async (
    { startedAt, settled }: ListRequest,
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
