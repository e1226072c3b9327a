import { andThen, type Awaitable, settled } from "../async/index.ts";
import { UriTemplateError } from "../errors/index.ts";
import type { ListPart } from "../fit/index.ts";
import {
  type CompletionRef,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  parseUriTemplate,
} from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import type { OldProvider, ToolCall } from "./old.ts";
import { foldCase, spellingsOf } from "./uri-spellings.ts";

/** A tool, prompt, resource or template in a list. */
export type ListedItem = Tool | Prompt | Resource | ResourceTemplate;

/** The things of a list that a caller may see. */
export type ListFilter = (
  items: readonly ListedItem[],
  context: CallContext,
  part: ListPart,
) => Awaitable<readonly ListedItem[]>;

/** A list as every filter leaves it. */
interface FilteredList<T> {
  /** In the order of declaration; the same frozen array while it is the same items. */
  list(context: CallContext): Awaitable<readonly T[]>;
  /** The provider's own list that a list was made from; undefined if it is no list of ours. */
  originOf(list: readonly object[]): readonly T[] | undefined;
}

/** The lists of a provider as the filters, in their order, leave them to each caller. */
export interface FilteredLists {
  readonly tools: FilteredList<Tool>;
  readonly prompts: FilteredList<Prompt>;
  readonly resources: FilteredList<Resource>;
  readonly templates: FilteredList<ResourceTemplate>;
  /** The provider's own list that a list was made from; itself, if it is no list of ours. */
  originOf(list: readonly object[]): readonly object[];
  /** Whether a caller may see the thing that a call is for. A filter may judge a thing by its neighbours, so whole lists are filtered. */
  shows(call: ToolCall, context: CallContext): Awaitable<boolean>;
}

/** The kind of thing that a call is for, as errors name it. */
export function thingOf(call: ToolCall): "tool" | "prompt" | "resource" {
  if (call.kind === undefined || call.kind === "task" || call.kind === "method") return "tool";
  if (call.kind !== "completion") return call.kind;
  return refOf(call).type === "ref/prompt" ? "prompt" : "resource";
}

/** The prompt or resource template that a completion is for. */
export function refOf({ arguments: args }: ToolCall): CompletionRef {
  return (args.value as { readonly ref: CompletionRef }).ref;
}

/** How many callers' lists are remembered; those of the caller that was not seen for longest are forgotten first. */
const maxCallers = 1024;

export function createFilteredLists(provider: OldProvider, filters: readonly ListFilter[]): FilteredLists {
  const create = <T extends ListedItem>(
    part: ListPart,
    list: (context: CallContext) => Awaitable<readonly T[]>,
  ): FilteredList<T> => createFilteredList({ part, list, hasMeta: provider.listMeta !== undefined }, filters);
  const tools = create("tools", (context) => provider.listTools(context));
  const prompts = create("prompts", (context) => provider.prompts?.listPrompts(context) ?? []);
  const resources = create("resources", (context) => provider.resources?.listResources(context) ?? []);
  const templates = create("templates", (context) => provider.resources?.listTemplates(context) ?? []);
  const all: readonly FilteredList<object>[] = [tools, prompts, resources, templates];

  const isListed = async <T extends object>(list: FilteredList<T>, key: string, context: CallContext) =>
    keysOf(await list.list(context)).has(key);

  /** A resource may be known without being listed. It is hidden if it would be listed, or fit a template, but for a filter. */
  const showsResource = async (uri: string, context: CallContext): Promise<boolean> => {
    const [listed, patterns] = await Promise.all([resources.list(context), templates.list(context)]);
    const isHidden = (spelling: string): boolean => {
      if (keysOf(listed).has(spelling)) return false;
      const folded = foldCase(spelling);
      if (leftOutOf(listed, resources.originOf(listed)).has(folded)) return true;
      if (patterns.some(({ uriTemplate }) => isFitting(uriTemplate, spelling))) return false;
      const before = templates.originOf(patterns) ?? patterns;
      return before.some(
        ({ uriTemplate }) => isFitting(uriTemplate, spelling) || isFitting(foldCase(uriTemplate), folded),
      );
    };
    return !spellingsOf(uri).some(isHidden);
  };

  /** A template to complete must be listed; a plain URI is judged as a resource. */
  const showsTemplate = async (uri: string, context: CallContext): Promise<boolean> => {
    const left = await templates.list(context);
    if (keysOf(templates.originOf(left) ?? left).has(uri)) return keysOf(left).has(uri);
    return showsResource(uri, context);
  };

  return {
    tools,
    prompts,
    resources,
    templates,
    originOf: (items) => all.reduce((found, list) => list.originOf(found) ?? found, items),
    shows: (call, context) => {
      switch (call.kind) {
        case undefined:
        case "tool":
        case "task":
          return andThen(tools.list(context), (left) => keysOf(left).has(call.name));
        case "method":
          return true;
        case "prompt":
          return isListed(prompts, call.name, context);
        case "resource":
          return showsResource(call.name, context);
        case "completion":
          return refOf(call).type === "ref/prompt"
            ? isListed(prompts, call.name, context)
            : showsTemplate(call.name, context);
      }
    },
  };
}

/** What the filters, in their order, leave of a list. */
export function applyFilters(
  [filter, ...others]: readonly ListFilter[],
  items: readonly ListedItem[],
  context: CallContext,
  part: ListPart,
): Awaitable<readonly ListedItem[]> {
  if (filter === undefined) return items;
  return andThen(settled(filter(items, context, part)), (left) => {
    if (!Array.isArray(left))
      throw new TypeError(`filterTools must return the ${part} that are left, an array`);
    return applyFilters(others, left as readonly ListedItem[], context, part);
  });
}

interface ListSource<T> {
  readonly part: ListPart;
  readonly list: (context: CallContext) => Awaitable<readonly T[]>;
  /** Whether the provider says something of its lists, which holds for one array. */
  readonly hasMeta: boolean;
}

function createFilteredList<T extends ListedItem>(
  { part, list: listAll, hasMeta }: ListSource<T>,
  filters: readonly ListFilter[],
): FilteredList<T> {
  const shown = new Map<string | undefined, readonly T[]>();
  /** Which of the provider's lists a filtered one was made from: what it says of that holds for this. */
  const origins = new WeakMap<readonly object[], readonly T[]>();

  const remember = (items: readonly T[], origin: readonly T[], caller: string | undefined): readonly T[] => {
    const last = shown.get(caller);
    const saysTheSame = !hasMeta || (last !== undefined && origins.get(last) === origin);
    const list = last !== undefined && saysTheSame && isSame(items, last) ? last : toFrozen(items);
    origins.set(list, origin);
    shown.delete(caller);
    shown.set(caller, list);
    if (shown.size > maxCallers) shown.delete(shown.keys().next().value);
    return list;
  };

  return {
    list: (context) => {
      const all = settled(listAll(context));
      if (filters.length === 0) return all;
      return andThen(all, (items) =>
        andThen(applyFilters(filters, items, context, part), (left) =>
          remember(left as readonly T[], items, context.caller),
        ),
      );
    },
    originOf: (items) => origins.get(items),
  };
}

const keys = new WeakMap<readonly object[], ReadonlySet<string>>();

/** The names or URIs of a list. Kept, so that a use of a thing in a list that did not change looks at one name and not at all. */
function keysOf(items: readonly object[]): ReadonlySet<string> {
  const known = keys.get(items);
  if (known !== undefined) return known;
  const made = new Set((items as readonly ListedItem[]).map(keyOf));
  if (Object.isFrozen(items)) keys.set(items, made);
  return made;
}

/** By list: the URIs that filters left out of it, in one case; the same list may be left of several. */
const leftOut = new WeakMap<
  readonly object[],
  { readonly origin: readonly object[]; readonly uris: ReadonlySet<string> }
>();

function leftOutOf(items: readonly object[], origin: readonly object[] = items): ReadonlySet<string> {
  const known = leftOut.get(items);
  if (known?.origin === origin) return known.uris;
  const left = keysOf(items);
  const uris = new Set([...keysOf(origin)].filter((key) => !left.has(key)).map(foldCase));
  if (Object.isFrozen(items) && Object.isFrozen(origin)) leftOut.set(items, { origin, uris });
  return uris;
}

/** The name or URI by which a listed thing is used. */
export function keyOf(item: ListedItem): string {
  if ("uriTemplate" in item) return item.uriTemplate;
  return "uri" in item ? item.uri : item.name;
}

/** A template that cannot be parsed fits nothing. */
function isFitting(uriTemplate: string, uri: string): boolean {
  try {
    return parseUriTemplate(uriTemplate).match(uri) !== undefined;
  } catch (error) {
    if (error instanceof UriTemplateError) return false;
    throw error;
  }
}

function isSame(items: readonly object[], last: readonly object[]): boolean {
  if (items === last) return true;
  return items.length === last.length && items.every((item, index) => item === last[index]);
}

/** A frozen list keeps its identity and its items. */
function toFrozen<T>(items: readonly T[]): readonly T[] {
  return Object.isFrozen(items) ? items : Object.freeze([...items]);
}
