// Providers of tests, and short words to use one directly.
import { andThen, type Awaitable, settled } from "../../packages/core/src/async/awaitable.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Items, Part } from "../../packages/core/src/mcp/methods.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import { type CallContext, createCallContext } from "../../packages/core/src/provider/context.ts";
import { emptyListing, Listing } from "../../packages/core/src/provider/listing.ts";
import { createCompletion, createOperation } from "../../packages/core/src/provider/operation.ts";
import type { Notice, Operation, Outcome, Provider } from "../../packages/core/src/provider/provider.ts";

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

/** Reads a resource. */
export async function readResource(
  provider: Provider,
  uri: string,
  context: CallContext = createCallContext(),
): Promise<Outcome> {
  return provider.call(createOperation("resources/read", uri), context);
}

/** Gets a prompt. */
export async function getPrompt(
  provider: Provider,
  name: string,
  args: object = {},
  context: CallContext = createCallContext(),
): Promise<Outcome> {
  return provider.call(createOperation("prompts/get", name, { arguments: args }), context);
}

/** Completes an argument or a variable. Gives the completion of the result. */
export async function complete(
  provider: Provider,
  params: object,
  context: CallContext = createCallContext(),
): Promise<unknown> {
  const outcome = await provider.call(createCompletion(RawJson.fromValue(params)), context);
  return (valueOf(outcome) as { readonly completion?: unknown }).completion;
}

/** Watches a resource. Rejects where nothing can be watched. */
export async function watchResource(
  provider: Provider,
  uri: string,
  listener: (notice: Notice) => void = () => {},
  context: CallContext = createCallContext(),
): Promise<() => void> {
  if (provider.watch === undefined) throw new Error("The provider lets nothing be watched");
  return provider.watch({ part: "resources", name: uri, ref: undefined }, context, listener);
}

/** The value of a complete outcome, else the outcome. */
export function valueOf(outcome: Outcome): unknown {
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

/** The lists of a provider, for `list`. Parts that are left out are empty. */
export function toLists(items: { readonly [P in Part]?: readonly Items[P][] }): Provider["list"] {
  const entries = Object.entries(items).map(([part, each]) => [part, new Listing(Object.freeze([...each]))]);
  const listings = Object.fromEntries(entries) as { readonly [part: string]: Listing<never> };
  return (part) => listings[part] ?? emptyListing;
}

/** A provider that does not serve some methods of another. */
export function withoutMethods(provider: Provider, ...hidden: readonly string[]): Provider {
  return {
    ...provider,
    offers: (caller) => {
      const { serves, extensions } = provider.offers(caller);
      return { extensions, serves: (method) => !hidden.includes(method) && serves(method) };
    },
  };
}
