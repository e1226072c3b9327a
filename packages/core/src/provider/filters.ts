import { Buffer } from "node:buffer";
import { andThen, type Awaitable, settled } from "../async/index.ts";
import { NotFoundError, UriTemplateError } from "../errors/index.ts";
import { editMembers, RawJson } from "../json/index.ts";
import {
  type Group,
  type Items,
  keyOf,
  type Part,
  parseUriTemplate,
  type Resource,
  type Skill,
} from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import type { Listing } from "./listing.ts";
import type { Operation, Outcome, Provider, Target } from "./provider.ts";

/** The lists that filters judge. The contents of a skill or a group are judged as what they are. */
export type FilteredPart = Exclude<Part, "skills" | "groups">;

/** A tool, prompt, resource or template in a list. */
export type ListedItem = Items[FilteredPart];

/** Returns the items of a list that a caller may see. The files of skills come as resources. */
type ListFilter = (
  items: readonly ListedItem[],
  context: CallContext,
  part: FilteredPart,
) => Awaitable<readonly ListedItem[]>;

/** The most callers whose lists are remembered; the least recently seen is forgotten first. */
const maxCallers = 1024;

/** The lists of a provider as the filters, in their order, leave them to each caller. */
export class Filters {
  readonly #inner: Provider;
  readonly #filters: readonly ListFilter[];
  readonly #isJudging: boolean;
  /** By list and caller: the listing that the caller got last. */
  readonly #shown = new Map<Part, Map<string | undefined, Listing<object>>>();
  /** The provider's listing that a filtered one was made from. */
  readonly #origins = new WeakMap<Listing<object>, Listing<object>>();
  readonly #filesOf = rememberBy(toFiles);
  readonly #allFilesOf = rememberBy((skills: readonly Skill[]) =>
    Object.freeze(skills.flatMap((skill) => this.#filesOf(skill))),
  );

  /** With `isJudging`, a caller cannot use what a filter leaves out; else filters only change how things are described. */
  constructor(inner: Provider, filters: readonly ListFilter[], isJudging: boolean) {
    this.#inner = inner;
    this.#filters = filters;
    this.#isJudging = isJudging;
  }

  list<P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>> {
    const listed = settled(this.#inner.list(part, context));
    if (this.#filters.length === 0) return listed;
    return andThen(listed, (listing) =>
      andThen(this.#leave(listing.items, context, part), (left) =>
        this.#remember(part, left as readonly Items[P][], listing, context.caller),
      ),
    );
  }

  /** Whether a caller may see what an operation is for. A filter may judge a thing by its neighbours, so whole lists are filtered. */
  shows({ part, name }: Target, context: CallContext): Awaitable<boolean> {
    switch (part) {
      case undefined:
      // Its files are judged when they are known.
      case "skills":
        return true;
      case "tools":
      case "prompts":
      case "groups":
        return andThen(this.list(part, context), (listing) => listing.get(name) !== undefined);
      case "resources":
        return this.#showsResource(name, context);
      case "templates":
        return this.#showsTemplate(name, context);
    }
  }

  /** What the filters leave of a result that contains listed items. */
  leaveOf(operation: Operation, outcome: Outcome, context: CallContext): Awaitable<Outcome> {
    if (this.#filters.length === 0 || outcome.kind !== "complete") return outcome;
    if (operation.method === "skills/get") {
      const { skill } = outcome.result.value as { readonly skill: Skill };
      return andThen(this.#leave([skill], context, "skills"), ([left]) => {
        if (left === undefined) throw new NotFoundError("skill", operation.name);
        return outcome;
      });
    }
    if (operation.method !== "resources/directory/read") return outcome;
    const { resources } = outcome.result.value as { readonly resources: readonly Resource[] };
    return andThen(this.#leave(resources, context, "resources"), (left) =>
      isSame(left, resources)
        ? outcome
        : { ...outcome, result: editMembers(outcome.result, { resources: RawJson.fromValue(left) }) },
    );
  }

  /**
   * A resource may be known without being listed. It is hidden if it would be listed, or match a template,
   * without the filters.
   */
  async #showsResource(uri: string, context: CallContext): Promise<boolean> {
    const [listed, templates] = await Promise.all([
      this.list("resources", context),
      this.list("templates", context),
    ]);
    const unfiltered = this.#originOf(templates).items;
    const isHidden = (spelling: string): boolean => {
      if (listed.get(spelling) !== undefined) return false;
      const folded = foldCase(spelling);
      if (leftOutOf(listed, this.#originOf(listed)).has(folded)) return true;
      if (templates.items.some(({ uriTemplate }) => isMatch(uriTemplate, spelling))) return false;
      return unfiltered.some(
        ({ uriTemplate }) => isMatch(uriTemplate, spelling) || isMatch(foldCase(uriTemplate), folded),
      );
    };
    return !spellingsOf(uri).some(isHidden);
  }

  /** A template to complete must be listed; a plain URI is judged as a resource. */
  async #showsTemplate(uri: string, context: CallContext): Promise<boolean> {
    const left = await this.list("templates", context);
    if (this.#originOf(left).get(uri) !== undefined) return left.get(uri) !== undefined;
    return this.#showsResource(uri, context);
  }

  #originOf<Item extends object>(listing: Listing<Item>): Listing<Item> {
    return (this.#origins.get(listing) ?? listing) as Listing<Item>;
  }

  #leave<P extends Part>(
    items: readonly Items[P][],
    context: CallContext,
    part: P,
  ): Awaitable<readonly Items[Part][]> {
    if (part === "groups") return this.#leaveGroups(items as readonly Group[], context);
    if (part !== "skills") return applyFilters(this.#filters, items as readonly ListedItem[], context, part);
    const skills = items as readonly Skill[];
    return andThen(applyFilters(this.#filters, this.#allFilesOf(skills), context, "resources"), (files) => {
      const left = new Set<unknown>(files);
      return skills.filter((skill) => this.#filesOf(skill).every((file) => left.has(file)));
    });
  }

  /** The groups with what filters leave of their contents. A group that becomes empty is left out. */
  async #leaveGroups(groups: readonly Group[], context: CallContext): Promise<readonly Group[]> {
    if (groups.length === 0) return groups;
    const lists = {
      tools: await this.list("tools", context),
      prompts: await this.list("prompts", context),
      resources: await this.list("resources", context),
    };
    return groups.flatMap((group) => {
      const { contents } = group;
      if (contents === undefined) return [group];
      const leave = (part: keyof typeof lists): readonly string[] =>
        (contents[part] ?? []).filter((key) => lists[part].get(key) !== undefined);
      const left = { tools: leave("tools"), prompts: leave("prompts"), resources: leave("resources") };
      const { groups: nested = [] } = contents;
      const isEmpty = [...Object.values(left), nested].every(({ length }) => length === 0);
      return isEmpty ? [] : [{ ...group, contents: { ...left, groups: nested } }];
    });
  }

  #remember<P extends Part>(
    part: P,
    items: readonly Items[P][],
    origin: Listing<Items[P]>,
    caller: string | undefined,
  ): Listing<Items[P]> {
    let byCaller = this.#shown.get(part);
    if (byCaller === undefined)
      this.#shown.set(part, (byCaller = new Map<string | undefined, Listing<object>>()));
    const last = byCaller.get(caller) as Listing<Items[P]> | undefined;
    // A filter may show each caller another list, so one caller's is not for a cache that serves others.
    const hints =
      this.#isJudging && origin.hints !== undefined
        ? { ...origin.hints, cacheScope: "private" as const }
        : origin.hints;
    const isSameList =
      last !== undefined &&
      last.meta === origin.meta &&
      last.hints?.ttlMs === hints?.ttlMs &&
      last.hints?.cacheScope === hints?.cacheScope &&
      isSame(items, last.items);
    const listing = isSameList ? last : origin.with(toFrozen(items), { hints });
    this.#origins.set(listing, origin);
    byCaller.delete(caller);
    byCaller.set(caller, listing);
    if (byCaller.size > maxCallers) byCaller.delete(byCaller.keys().next().value);
    return listing;
  }
}

/** What the filters, in their order, leave of a list. */
function applyFilters(
  [filter, ...others]: readonly ListFilter[],
  items: readonly ListedItem[],
  context: CallContext,
  part: FilteredPart,
): Awaitable<readonly ListedItem[]> {
  if (filter === undefined) return items;
  return andThen(settled(filter(items, context, part)), (left) => {
    if (!Array.isArray(left))
      throw new TypeError(`filterTools must return the ${part} that are left, an array`);
    return applyFilters(others, left as readonly ListedItem[], context, part);
  });
}

/** By filtered list: the URIs that filters left out, case-folded. Filters may leave the same list of several. */
const leftOut = new WeakMap<
  Listing<object>,
  { readonly origin: Listing<object>; readonly uris: ReadonlySet<string> }
>();

function leftOutOf(listing: Listing<Resource>, origin: Listing<Resource>): ReadonlySet<string> {
  const known = leftOut.get(listing);
  if (known?.origin === origin) return known.uris;
  const keys = origin.items.map(keyOf).filter((key) => listing.get(key) === undefined);
  const uris = new Set(keys.map(foldCase));
  leftOut.set(listing, { origin, uris });
  return uris;
}

/** A template that cannot be parsed matches nothing. */
function isMatch(uriTemplate: string, uri: string): boolean {
  try {
    return parseUriTemplate(uriTemplate).match(uri) !== undefined;
  } catch (error) {
    if (error instanceof UriTemplateError) return false;
    throw error;
  }
}

function isSame(items: readonly object[], last: readonly object[]): boolean {
  return (
    items === last || (items.length === last.length && items.every((item, index) => item === last[index]))
  );
}

function toFrozen<T>(items: readonly T[]): readonly T[] {
  return Object.isFrozen(items) ? items : Object.freeze([...items]);
}

/** The files of a skill as resources. That of its `SKILL.md` has the description that the list has. */
function toFiles({ uri, frontmatter, resources }: Skill): readonly Resource[] {
  const { name } = frontmatter;
  const manifest = { uri, name, description: JSON.stringify(frontmatter), mimeType: "text/markdown" };
  const others = resources === "dynamic" ? [] : resources.filter((file) => file.uri !== uri);
  return [
    manifest,
    ...others.map((file) => ({ uri: file.uri, name: file.uri.slice(file.uri.lastIndexOf("/") + 1) })),
  ];
}

/** The same result for the same object, so that filters which remember lists know it again. */
function rememberBy<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = make(key)));
    return value;
  };
}

/** More levels of escapes than a real URI has. */
const maxRounds = 4;

/**
 * A URI as it is written, and as a server may read it: with escapes undone, and with the way through folders
 * gone. A filter that judges a URI judges all of them, or `%65tc` and `docs/../etc` are ways into `etc`.
 */
export function spellingsOf(uri: string): readonly string[] {
  const spellings = new Set([uri]);
  let plain = uri;
  for (let round = 0; round <= maxRounds; round++) {
    const read = toUrl(plain);
    spellings.add(plain).add(walk(plain)).add(read).add(walk(read));
    const unescaped = unescape(plain);
    if (unescaped === plain) break;
    plain = unescaped;
  }
  return [...spellings];
}

/**
 * A URI or a glob with all letters in one case. Scheme and host have no case (RFC 3986, section 6.2.2.1); the
 * path has one, but file systems may fold it. So a filter that keeps a URI from a caller keeps it in every
 * case: keeping one too many is the lesser evil.
 */
export function foldCase(text: string): string {
  // Upper case first, because several small letters may share a capital: "ſ" and "s".
  return isAscii.test(text) ? text.toLowerCase() : text.normalize().toUpperCase().toLowerCase();
}

// oxlint-disable-next-line no-control-regex -- all of ASCII
const isAscii = /^[\x00-\x7f]*$/;

/**
 * As a URL is read by the rules of the web, which many servers follow: without tabs, line breaks and outer
 * blanks, scheme and host in small letters, backslashes as slashes. The text itself if it is not a URL.
 */
function toUrl(text: string): string {
  return URL.canParse(text) ? new URL(text).href : text;
}

/** With every escape decoded. Bytes that are not text become the replacement character, which matches nothing. */
function unescape(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) =>
    Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"),
  );
}

/** With `.`, `..` and empty segments resolved. */
function walk(uri: string): string {
  const [start = ""] = /^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i.exec(uri) ?? [];
  const steps: string[] = [];
  for (const step of uri.slice(start.length).split(/[/\\]/)) {
    if (step === "..") steps.pop();
    else if (step !== "." && step !== "") steps.push(step);
  }
  return start === "" ? steps.join("/") : [start, ...steps].join("/");
}
