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
  return [...middlewares].reduceRight(withOne, provider);
}

function withOne(provider: Provider, middleware: Middleware): Provider {
  const listTools = async (context: CallContext): Promise<readonly Tool[]> => {
    const tools = await provider.listTools(context);
    return middleware.filterTools === undefined ? tools : await middleware.filterTools(tools, context);
  };

  /** A filter may judge a tool by its neighbours, so the whole list is filtered to decide about one. */
  const assertVisible = async (name: string, context: CallContext): Promise<void> => {
    if (middleware.filterTools === undefined) return;
    const tools = await listTools(context);
    if (!tools.some((tool) => tool.name === name)) throw new NotFoundError("tool", name);
  };

  return {
    ...facetsOf(provider),
    listTools,
    callTool: async (call, context) => {
      await assertVisible(call.name, context);
      const changed = (await middleware.beforeCall?.(call, context)) ?? call;
      if (changed.name !== call.name) await assertVisible(changed.name, context);
      if (middleware.afterCall === undefined) return provider.callTool(changed, context);
      const end = await endOf(provider.callTool(changed, context));
      const replaced = (await middleware.afterCall(changed, end, context)) ?? end;
      if (replaced.kind === "failed") throw replaced.error;
      return replaced;
    },
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
export function facetsOf(provider: Provider): Omit<Provider, "listTools" | "callTool"> {
  const { resources, prompts, completion, cacheHints } = provider;
  return {
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
    ...(completion === undefined ? {} : { completion }),
    ...(cacheHints === undefined ? {} : { cacheHints }),
    ...(provider.onChange === undefined
      ? {}
      : { onChange: (listener) => provider.onChange?.(listener) ?? (() => {}) }),
  };
}
