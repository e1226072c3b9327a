// Providers of tests, and short words to use one directly.
import { andThen, type Awaitable, settled } from "../../packages/core/src/async/awaitable.ts";
import type { Items, Part } from "../../packages/core/src/mcp/methods.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import { type CallContext, createCallContext } from "../../packages/core/src/provider/context.ts";
import { emptyListing, Listing } from "../../packages/core/src/provider/listing.ts";
import { createOperation } from "../../packages/core/src/provider/operation.ts";
import type { Operation, Outcome, Provider } from "../../packages/core/src/provider/provider.ts";

/** The items of a list. No promise where the provider makes none. */
export function listItems<P extends Part>(
  provider: Provider,
  part: P,
  context: CallContext = createCallContext(),
): Awaitable<readonly Items[P][]> {
  return andThen(settled(provider.list(part, context)), ({ items }) => items);
}

export function listTools(provider: Provider, context?: CallContext): Awaitable<readonly Tool[]> {
  return listItems(provider, "tools", context);
}

/** Calls a tool. RawJson keeps its bytes; any other object is written as JSON. */
export function callTool(
  provider: Provider,
  name: string,
  args: object = {},
  context: CallContext = createCallContext(),
): Awaitable<Outcome> {
  return provider.call(createOperation("tools/call", name, { arguments: args }), context);
}

/** A provider of tools alone, as far as it is not told to do more. */
export function toProvider(
  tools: readonly Tool[] | ((context: CallContext) => readonly Tool[]),
  call: (operation: Operation, context: CallContext) => Awaitable<Outcome>,
  more: Partial<Provider> = {},
): Provider {
  const fixed = typeof tools === "function" ? undefined : new Listing<Tool>(Object.freeze([...tools]));
  const listFor = (context: CallContext): Listing<Tool> =>
    fixed ?? new Listing((tools as (context: CallContext) => readonly Tool[])(context));
  return {
    list: (part, context) => (part === "tools" ? (listFor(context) as Listing<never>) : emptyListing),
    call,
    offers: () => ({ serves: (method) => method === "tools/list" || method === "tools/call" }),
    ...more,
  };
}
