import { andThen, type Awaitable, recover, settled, tryThen } from "../async/index.ts";
import { NotFoundError } from "../errors/index.ts";
import { editMembers, joinJson, RawJson, scanElements } from "../json/index.ts";
import {
  type Group,
  type GroupContents,
  type Items,
  keyOf,
  methods,
  type Part,
  viewUriOf,
  withMembers,
  withViewUri,
} from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import { mapListings } from "./listing.ts";
import { findIn, thingOf } from "./operation.ts";
import type { Notice, Outcome, Provider, Target, Wrapper } from "./provider.ts";

/** The names that callers use for what a provider has. */
export interface Names {
  /** The lists whose names differ. With `resources` among them, URIs in results and definitions are renamed too. */
  readonly parts: readonly Part[];
  /** The provider's name for one that a caller uses; undefined for a name that means nothing here. */
  toInner(part: Part, name: string, context: CallContext): Awaitable<string | undefined>;
  /** The reverse: a listed name, or a URI that a result has, as callers know it. */
  toOuter(part: Part, name: string, context: CallContext): string;
  /** Further changes to a definition that has its new name. */
  finish?<P extends Part>(item: Items[P], part: P): Items[P];
}

type Rename = (uri: string) => string;

/** A group whose contents have the names that callers know. */
function renameContents(group: Group, { parts, toOuter }: Names, context: CallContext): Group {
  if (group.contents === undefined) return group;
  const contents = Object.entries(group.contents).map(([part, keys]) => [
    part,
    parts.includes(part as Part) ? keys.map((key) => toOuter(part as Part, key, context)) : keys,
  ]);
  return { ...group, contents: Object.fromEntries(contents) as GroupContents };
}

/**
 * A provider under other names: in lists, requests, notices, errors, and wherever a result names a URI. All
 * other bytes stay as they were.
 *
 * @example
 * const loud = withNames(provider, { parts: ["tools"], toInner: (_, name) => name.toLowerCase(), toOuter: (_, name) => name.toUpperCase() });
 */
export function withNames(inner: Provider, names: Names): Wrapper {
  const renamedParts: ReadonlySet<Part | undefined> = new Set(names.parts);
  const hasUris = renamedParts.has("resources");
  const toUri = (context: CallContext): Rename => toUriOf(names, context);
  const toItem = createItemRenamer(names, hasUris);
  const lists = mapListings<Items[Part], [Part, CallContext]>((listing, part, context) =>
    listing.with(Object.freeze(listing.items.map((item) => toItem(item, part, context)))),
  );

  const groupLists = mapListings<Group, [CallContext]>((listing, context) =>
    listing.with(Object.freeze(listing.items.map((group) => renameContents(group, names, context)))),
  );

  const inward = <T extends Target, R>(target: T, context: CallContext, go: (own: T) => Awaitable<R>) =>
    renamedParts.has(target.part) ? goInward(names, target, context, go) : go(target);

  return {
    list: (part, context) => {
      const listed = settled(inner.list(part, context));
      if (part === "groups")
        return andThen(
          listed,
          (listing) => groupLists(listing as never, context) as unknown as typeof listing,
        );
      return renamedParts.has(part)
        ? andThen(listed, (listing) => lists(listing as never, part, context) as unknown as typeof listing)
        : listed;
    },
    call: (operation, context) =>
      inward(operation, context, (own) => {
        if (own === operation && !hasUris) return inner.call(own, context);
        return tryThen(
          () => settled(inner.call(own, context)),
          (outcome) => (hasUris ? renameOutcome(outcome, operation.method, toUri(context)) : outcome),
          (error) => {
            throw toOuterError(error, own, operation);
          },
        );
      }),
    find: (part, name, context) => {
      if (!renamedParts.has(part)) return findIn(inner, part, name, context);
      return andThen(names.toInner(part, name, context), (own) => {
        if (own === undefined) return undefined;
        return andThen(findIn(inner, part, own, context), (entry) => {
          if (entry === undefined) return undefined;
          const item = toItem(entry.item, part, context);
          return { ...entry, key: keyOf(item), item };
        });
      });
    },
    watch:
      inner.watch &&
      ((target, context, listener) =>
        inward(target, context, (own) => {
          const onNotice = hasUris
            ? (notice: Notice): void => listener(renameNotice(notice, toUri(context)))
            : listener;
          return recover(
            () => settled(inner.watch?.(own, context, onNotice) ?? (() => {})),
            (error) => {
              throw toOuterError(error, own, target);
            },
          );
        })),
    offers: (caller) => inner.offers(caller),
    onChange: inner.onChange?.bind(inner),
  };
}

function toUriOf(names: Names, context: CallContext): Rename {
  return (uri) => names.toOuter("resources", uri, context);
}

/** Renames definitions, each once. */
function createItemRenamer(
  names: Names,
  hasUris: boolean,
): <P extends Part>(item: Items[P], part: P, context: CallContext) => Items[P] {
  const made = new WeakMap<object, object>();
  return <P extends Part>(item: Items[P], part: P, context: CallContext) => {
    let renamed = made.get(item) as Items[P] | undefined;
    if (renamed === undefined) {
      const named = renameItem(item, names.toOuter(part, keyOf(item), context));
      const whole = hasUris ? renameUrisOf(named, toUriOf(names, context)) : named;
      made.set(item, (renamed = names.finish?.(whole as Items[P], part) ?? (whole as Items[P])));
    }
    return renamed;
  };
}

/** Calls `go` with the target under the provider's name. */
function goInward<T extends Target, R>(
  names: Names,
  target: T,
  context: CallContext,
  go: (own: T) => Awaitable<R>,
): Awaitable<R> {
  const { part, name, ref } = target;
  if (part === undefined) return go(target);
  return andThen(names.toInner(part, name, context), (own) => {
    if (own === undefined)
      throw ref === undefined ? new NotFoundError(thingOf(target), name) : new NotFoundError("task", ref);
    return go(own === name ? target : { ...target, name: own });
  });
}

/** An error about a missing item has the name that the caller used. */
function toOuterError(error: unknown, own: Target, target: Target): unknown {
  const isMissing = error instanceof NotFoundError && error.what === thingOf(own) && error.id === own.name;
  return isMissing ? new NotFoundError(error.what, target.name) : error;
}

function renameItem(item: Items[Part], key: string): Items[Part] {
  if (key === keyOf(item)) return item;
  if ("uriTemplate" in item) return withMembers(item, { uriTemplate: key });
  return "uri" in item ? withMembers(item, { uri: key }) : withMembers(item, { name: key });
}

/** The URIs in a definition beside its own: the view of a tool, the files of a skill. */
function renameUrisOf(item: Items[Part], rename: Rename): Items[Part] {
  if ("resources" in item)
    return item.resources === "dynamic"
      ? item
      : withMembers(item, {
          resources: item.resources.map((file) => ({ ...file, uri: rename(file.uri) })),
        });
  const { _meta } = item;
  const view = viewUriOf(item);
  if (_meta === undefined || view === undefined || rename(view) === view) return item;
  return withMembers(item as Items["tools"], { _meta: withViewUri(_meta, rename(view)) });
}

/** An outcome with other URIs, in the places that the method has for them. */
export function renameOutcome(outcome: Outcome, method: string, rename: Rename): Outcome {
  if (outcome.kind !== "complete") return outcome;
  const { uris = [] } = methods.get(method) ?? {};
  const result = renameAt(outcome.result, uris, rename);
  return result === outcome.result ? outcome : { ...outcome, result };
}

function renameNotice(notice: Notice, rename: Rename): Notice {
  // Only tools have tasks.
  if (notice.kind === "task")
    return { ...notice, outcome: renameOutcome(notice.outcome, "tasks/get", rename) };
  const { params } = notice;
  return { ...notice, uri: rename(notice.uri), params: params && renameAt(params, ["uri"], rename) };
}

const viewUris = ["_meta.ui.resourceUri", "_meta.ui/resourceUri"];

/**
 * JSON with the URIs at some places renamed, and at those where a result names its view. A place is a path of members; `*` is each
 * element of an array. All other bytes stay as they were; JSON without such a URI is the same object.
 */
export function renameAt(raw: RawJson, places: readonly string[], rename: Rename): RawJson {
  // A letter of a key may be written as an escape.
  if (raw.kind !== "object" || !/uri"|\\u00/i.test(raw.text)) return raw;
  return [...places, ...viewUris].reduce((json, place) => renameIn(json, place.split("."), rename), raw);
}

function renameIn(raw: RawJson, [member, ...rest]: readonly string[], rename: Rename): RawJson {
  if (member === undefined) {
    if (raw.kind !== "string") return raw;
    const renamed = rename(raw.value as string);
    return renamed === raw.value ? raw : RawJson.fromValue(renamed);
  }
  if (member === "*") return renameInEach(raw, rest, rename);
  const value = raw.kind === "object" ? raw.at(member) : undefined;
  const renamed = value && renameIn(value, rest, rename);
  return renamed === undefined || renamed === value ? raw : editMembers(raw, { [member]: renamed });
}

function renameInEach(array: RawJson, path: readonly string[], rename: Rename): RawJson {
  if (array.kind !== "array") return array;
  const { bytes } = array;
  const elements = scanElements(bytes).map(({ start, end }) =>
    RawJson.fromChecked(bytes.subarray(start, end)),
  );
  const renamed = elements.map((element) => renameIn(element, path, rename));
  if (renamed.every((element, index) => element === elements[index])) return array;
  const parts = renamed.flatMap((element, index) => (index === 0 ? [element] : [",", element]));
  return joinJson(["[", ...parts, "]"]);
}
