import { type Awaitable, isPromise } from "@junctor/core/async";
import { NotFoundError, RpcError } from "@junctor/core/errors";
import type { CacheHints, Items, Part } from "@junctor/core/mcp";
import {
  type CallContext,
  createCallContext,
  findIn,
  Listing,
  type Offers,
  type Provider,
  type Change,
  type ChangeSource,
  createChanges,
} from "@junctor/core/provider";

/** Offers these methods to everybody. */
export function offering(...methods: readonly string[]): Offers {
  return { serves: (method) => methods.includes(method) };
}

/** Resources that can be listed, read and watched. */
export const resourceOffers: Offers = offering(
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/subscribe",
  "resources/unsubscribe",
);

const nobody = createCallContext();

/** Several providers as one. What they offer does not depend on the caller. */
interface Members extends Pick<Provider, "list" | "call"> {
  readonly find: NonNullable<Provider["find"]>;
  readonly watch: NonNullable<Provider["watch"]>;
  readonly offers: Offers;
}

/** Joins members. If several have the same name, the first one wins. `hints` say how long lists and contents may be kept. */
export function joinMembers(members: readonly Provider[], hints: CacheHints | undefined): Members {
  const joins = new Map<Part, <Item extends object>(listings: readonly Listing<Item>[]) => Listing<Item>>();
  const joinOf = (part: Part): ReturnType<typeof createJoin> => {
    const join = joins.get(part) ?? createJoin(hints);
    joins.set(part, join);
    return join;
  };
  const list = <P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>> => {
    const listed = members.map((member) => member.list(part, context));
    const join = joinOf(part);
    if (listed.some(isPromise)) return Promise.all(listed.map(async (listing) => listing)).then(join);
    return join(listed as readonly Listing<Items[P]>[]);
  };
  const offersOf = (member: Provider): Offers => member.offers(nobody);
  const firstOf = async <T>(
    method: string,
    missing: Error,
    ask: (member: Provider) => Awaitable<T | undefined>,
  ): Promise<T> => {
    let last = missing;
    for (const member of members) {
      if (!offersOf(member).serves(method)) continue;
      try {
        const found = await ask(member);
        if (found !== undefined) return found;
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
        last = error;
      }
    }
    throw last;
  };
  return {
    list,
    call: async (operation, context) => {
      const { method } = operation;
      const missing = new RpcError("rpc.method_not_found", `Method not found: ${method}`);
      const outcome = await firstOf(method, missing, (member) => member.call(operation, context));
      return outcome.kind === "complete" && hints !== undefined ? { ...outcome, hints } : outcome;
    },
    find: async (part, name, context) => {
      for (const member of members) {
        const entry = await findIn(member, part, name, context);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    watch: (target, context, listener) =>
      firstOf("resources/subscribe", new NotFoundError("resource", target.name), (member) =>
        member.watch?.(target, context, listener),
      ),
    offers: {
      serves: (method) => members.some((member) => offersOf(member).serves(method)),
      get extensions() {
        return Object.fromEntries(
          members.flatMap((member) => Object.entries(offersOf(member).extensions ?? {})),
        );
      },
    },
  };
}

/** Joins lists. As long as all of them stay the same, the result is the same object. */
function createJoin(
  hints: CacheHints | undefined,
): <Item extends object>(listings: readonly Listing<Item>[]) => Listing<Item> {
  let last: readonly Listing<object>[] = [];
  let whole: Listing<object> | undefined;
  return <Item extends object>(listings: readonly Listing<Item>[]) => {
    if (whole === undefined || listings.some((listing, index) => listing !== last[index])) {
      last = listings;
      whole = new Listing(Object.freeze(listings.flatMap(({ items }) => items)), { hints });
    }
    return whole as Listing<Item>;
  };
}

/** Entries registered under names, in the order of registration, and the list that callers see. */
export interface NamedEntries<Entry, Shown extends object> extends Pick<ChangeSource<Change>, "onChange"> {
  /** Adds an entry. Throws when the name is taken. */
  add(name: string, entry: Entry): void;
  /** Removes an entry; false when there was none. */
  remove(name: string): boolean;
  readonly entries: ReadonlyMap<string, Entry>;
  /** The same list until something is added or removed. */
  list(): Listing<Shown>;
}

/** An empty list of named entries. */
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
