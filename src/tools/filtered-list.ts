import { andThen, type Awaitable, settled } from "../async/awaitable.ts";
import type { Tool } from "../mcp/types.ts";
import type { CallContext } from "./context.ts";
import type { Provider } from "./provider.ts";

/** One filter: the tools this caller may see. */
type ToolFilter = (
  tools: readonly Tool[],
  context: CallContext,
) => readonly Tool[] | Promise<readonly Tool[]>;

/** What every filter leaves of a provider's tools. */
interface FilteredList {
  /** In the order of declaration; the same frozen array while it is the same tools. */
  list(context: CallContext): Awaitable<readonly Tool[]>;
  /** The provider's own list that a list was made from; itself, if it is no list of ours. */
  originOf(list: readonly object[]): readonly object[];
  /** A filter may judge a tool by its neighbours, so the whole list is filtered to decide about one. */
  has(name: string, context: CallContext): Awaitable<boolean>;
}

/** How many callers' lists are remembered; who was not seen for longest is forgotten first. */
const maxCallers = 1024;

/** The tools of a provider as the filters, in their order, leave them to each caller. */
export function createFilteredList(provider: Provider, filters: readonly ToolFilter[]): FilteredList {
  const shown = new Map<string | undefined, readonly Tool[]>();
  // By the list, so that a call of a tool in a list that did not change looks at one name and not at all of them.
  const names = new WeakMap<readonly Tool[], ReadonlySet<string>>();

  const filterFrom = (
    index: number,
    tools: readonly Tool[],
    context: CallContext,
  ): Awaitable<readonly Tool[]> => {
    const filter = filters[index];
    if (filter === undefined) return tools;
    return andThen(settled(filter(tools, context)), (left) => {
      if (!Array.isArray(left))
        throw new TypeError("filterTools must return the tools that are left, an array");
      return filterFrom(index + 1, left, context);
    });
  };

  /** The list of the provider that a filtered list was made from. Notes about it hold for the filtered list too. */
  const origins = new WeakMap<readonly object[], readonly Tool[]>();

  const remember = (
    tools: readonly Tool[],
    origin: readonly Tool[],
    caller: string | undefined,
  ): readonly Tool[] => {
    const last = shown.get(caller);
    const saysTheSame =
      provider.listMeta === undefined || (last !== undefined && origins.get(last) === origin);
    const list = last !== undefined && saysTheSame && isSame(tools, last) ? last : toFrozen(tools);
    origins.set(list, origin);
    shown.delete(caller);
    shown.set(caller, list);
    if (shown.size > maxCallers) shown.delete(shown.keys().next().value);
    return list;
  };

  const list = (context: CallContext): Awaitable<readonly Tool[]> =>
    andThen(settled(provider.listTools(context)), (tools) =>
      andThen(filterFrom(0, tools, context), (left) => remember(left, tools, context.caller)),
    );

  return {
    list,
    originOf: (tools) => origins.get(tools) ?? tools,
    has: (name, context) =>
      andThen(list(context), (tools) => {
        const known = names.get(tools) ?? new Set(tools.map((tool) => tool.name));
        names.set(tools, known);
        return known.has(name);
      }),
  };
}

function isSame(tools: readonly Tool[], last: readonly Tool[]): boolean {
  if (tools === last) return true;
  return tools.length === last.length && tools.every((tool, index) => tool === last[index]);
}

/** A frozen list keeps its identity and its items. */
function toFrozen(tools: readonly Tool[]): readonly Tool[] {
  return Object.isFrozen(tools) ? tools : Object.freeze([...tools]);
}
