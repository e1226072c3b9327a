import { NotFoundError } from "../errors/not-found-error.ts";
import type { Tool } from "../mcp/types.ts";
import type { CallContext } from "./context.ts";
import type { Provider, ToolCall, ToolOutcome } from "./provider.ts";

/** How a call ended, as `afterCall` sees it. */
export type CallEnd = ToolOutcome | { readonly kind: "failed"; readonly error: unknown };

/**
 * Three optional hooks around a provider's tools. Several middlewares nest: the first in the list is the outermost, so
 * its `filterTools` and `beforeCall` come first and its `afterCall` comes last.
 */
export interface Middleware {
  /** The tools this caller may see. What is left out cannot be called either, under any spelling. */
  filterTools?(tools: readonly Tool[], context: CallContext): readonly Tool[] | Promise<readonly Tool[]>;
  /**
   * Runs before a call; returning a call replaces it. Throw to refuse: a `ToolError` is told to the model, an
   * `RpcError` to the client.
   */
  beforeCall?(call: ToolCall, context: CallContext): ToolCall | void | Promise<ToolCall | void>;
  /**
   * Runs after a call that this middleware let through, however it ended; returning an end replaces it. `call` is what
   * was called in the end.
   */
  afterCall?(call: ToolCall, end: CallEnd, context: CallContext): CallEnd | void | Promise<CallEnd | void>;
}

/**
 * A provider with middleware around its tools; its other facets are as they were. The list of middlewares is fixed
 * here, in the order given.
 *
 * @example
 * const guarded = withMiddleware(registry, [{ filterTools: (tools) => tools.filter((tool) => tool.name !== "drop") }]);
 */
export function withMiddleware(provider: Provider, middlewares: readonly Middleware[]): Provider {
  const chain = [...middlewares];
  const hasFilters = chain.some(({ filterTools }) => filterTools !== undefined);
  const listTools = hasFilters ? createFilteredList(provider, chain) : provider.listTools.bind(provider);

  /** A filter may judge a tool by its neighbours, so the whole list is filtered to decide about one. */
  const assertVisible = async (name: string, context: CallContext): Promise<void> => {
    const tools = await listTools(context);
    if (!tools.some((tool) => tool.name === name)) throw new NotFoundError("tool", name);
  };

  /** The call under the name the list has for it: filters judge by the list. */
  const resolve = async (call: ToolCall, context: CallContext): Promise<ToolCall> => {
    const listed = hasFilters ? await provider.listedName?.(call.name, context) : undefined;
    return listed === undefined ? call : { ...call, name: listed };
  };

  /** `isVisible` says that the call's name is known to have passed every filter. */
  const callFrom = async (
    index: number,
    call: ToolCall,
    isVisible: boolean,
    context: CallContext,
  ): Promise<ToolOutcome> => {
    const middleware = chain[index];
    if (middleware === undefined) return provider.callTool(call, context);
    const { name } = call;
    const isJudgedHere = !isVisible && middleware.filterTools !== undefined;
    if (isJudgedHere) await assertVisible(name, context);
    const changed = (await middleware.beforeCall?.(call, context)) ?? call;
    const isRenamed = changed.name !== name;
    if (isRenamed && hasFilters) await assertVisible(changed.name, context);
    const next = callFrom(index + 1, changed, isVisible || isJudgedHere || isRenamed, context);
    if (middleware.afterCall === undefined) return next;
    const end = await endOf(next);
    const replaced = (await middleware.afterCall(changed, end, context)) ?? end;
    if (replaced.kind === "failed") throw replaced.error;
    return replaced;
  };

  return {
    ...facetsOf(provider, hasFilters),
    listTools,
    callTool: async (call, context) => {
      const resolved = await resolve(call, context);
      try {
        return await callFrom(0, resolved, !hasFilters, context);
      } catch (error) {
        // The caller is told about the name it used.
        const isMissing =
          error instanceof NotFoundError && error.what === "tool" && error.id === resolved.name;
        throw isMissing ? new NotFoundError("tool", call.name) : error;
      }
    },
  };
}

/** How many callers' lists are remembered; who was not seen for longest is forgotten first. */
const maxCallers = 1024;

/** What every filter leaves for a caller, in the order of declaration; the same frozen array while it is the same tools. */
function createFilteredList(provider: Provider, chain: readonly Middleware[]): Provider["listTools"] {
  const shown = new Map<string | undefined, readonly Tool[]>();
  return async (context) => {
    let tools = await provider.listTools(context);
    for (const middleware of chain) {
      if (middleware.filterTools !== undefined) tools = await middleware.filterTools(tools, context);
    }
    const last = shown.get(context.caller);
    const isSame = tools.length === last?.length && tools.every((tool, index) => tool === last[index]);
    const list = isSame && last !== undefined ? last : Object.freeze([...tools]);
    shown.delete(context.caller);
    shown.set(context.caller, list);
    if (shown.size > maxCallers) shown.delete(shown.keys().next().value);
    return list;
  };
}

async function endOf(outcome: Promise<ToolOutcome>): Promise<CallEnd> {
  try {
    return await outcome;
  } catch (error) {
    return { kind: "failed", error };
  }
}

/** What a provider offers besides tools. Read at once: facets are fixed for a provider's life. */
function facetsOf(provider: Provider, isFiltered: boolean): Omit<Provider, "listTools" | "callTool"> {
  const { resources, prompts, completion, cacheHints } = provider;
  return {
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
    ...(completion === undefined ? {} : { completion }),
    // A filter may show each caller another list, so one caller's is not for a cache that serves others.
    ...(provider.listedName === undefined ? {} : { listedName: provider.listedName.bind(provider) }),
    ...(cacheHints === undefined
      ? {}
      : { cacheHints: isFiltered ? { ...cacheHints, cacheScope: "private" } : cacheHints }),
    ...(provider.onChange === undefined
      ? {}
      : { onChange: (listener) => provider.onChange?.(listener) ?? (() => {}) }),
  };
}
