import { andThen, type Awaitable } from "../async/index.ts";
import { NotFoundError, RpcError } from "../errors/index.ts";
import { methods } from "../mcp/index.ts";
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
} from "../provider/index.ts";
import { Catalog } from "./catalog.ts";
import { createComposition } from "./composition.ts";
import type { Member } from "./member.ts";
import { assertNamespaces, defaultNaming, type Naming, prefixOf, qualify } from "./namespace.ts";
import { createPolledLists, type OnListError } from "./polled-lists.ts";
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
export interface Composite extends Provider {
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
  const { bareNames = "exact", onListError = writeListError, ...given } = options;
  const naming: Naming = { ...defaultNaming, ...given };
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
  const isHeard = all.some((provider) => provider.onChange !== undefined);
  const { list, call, watch, offers, onChange } = composition;
  const composite: Wrapper = {
    list,
    call: (operation, context) =>
      isBare(operation) ? callBare(operation, context) : call(operation, context),
    find,
    watch: isWatchable ? watch : undefined,
    offers,
    onChange: isHeard ? onChange : undefined,
  };
  return Object.assign(composite, { namespaces });
}

/** What several providers offer together. Opened methods have no owner among them. */
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

/** The changes of all providers. Changes of one list that several report at once are one. */
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
