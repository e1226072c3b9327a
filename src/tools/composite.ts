import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { toCompletion, toPrompts, toResources } from "./composite-facets.ts";
import type { CallContext } from "./context.ts";
import { createNames, type Member } from "./names.ts";
import { assertNamespace, defaultNaming, type Naming } from "./namespace.ts";
import type { Provider, ToolCall, ToolOutcome } from "./provider.ts";

export interface ComposeOptions extends Partial<Naming> {
  /**
   * What to do with a name that has no separator. `exact` (the default) looks it up like any other; `first_match` tries
   * the providers in order; `refuse` answers that the format is wrong.
   */
  readonly bareNames?: "exact" | "first_match" | "refuse";
  /** Told when a provider could not be listed; its last good list is used. */
  readonly onListError?: (namespace: string, error: unknown) => void;
}

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
  const { bareNames = "exact", onListError = () => {}, ...given } = options;
  const naming: Naming = { ...defaultNaming, ...given };
  const members: readonly Member[] = Object.entries(providers).map(([namespace, provider]) => {
    assertNamespace(namespace, naming);
    return { namespace, provider };
  });
  const tools = createNames(members, naming, (provider, context) => provider.listTools(context), onListError);
  const watched = members.filter(({ provider }) => provider.onChange !== undefined);
  for (const { provider } of watched) {
    provider.onChange?.((change) => {
      if (change.kind === "tools") tools.forget();
    });
  }

  const callBare = async (call: ToolCall, context: CallContext): Promise<ToolOutcome> => {
    if (bareNames === "refuse") {
      throw new RpcError("rpc.invalid_params", `Invalid tool name format: '${call.name}'`);
    }
    for (const { provider } of members) {
      try {
        return await provider.callTool(call, context);
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    }
    throw new NotFoundError("tool", call.name);
  };

  return {
    namespaces: members.map(({ namespace }) => namespace),
    listTools: (context) => tools.list(context),
    callTool: async (call, context) => {
      if (bareNames !== "exact" && !call.name.includes(naming.separator)) return callBare(call, context);
      const owner = await tools.find(call.name, context);
      if (owner === undefined) throw new NotFoundError("tool", call.name);
      return owner.provider.callTool({ ...call, name: owner.name }, context);
    },
    onChange: (listener) => {
      const stops = watched.map(({ provider }) => provider.onChange?.(listener));
      return () => stops.forEach((stop) => stop?.());
    },
    ...toResources(members, onListError),
    ...toPrompts(members, naming, onListError),
    ...toCompletion(members, naming, onListError),
  };
}
