import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { assertKnownKeys, type KeysOf } from "../options/known-keys.ts";
import { createChangeSource } from "./changes.ts";
import { toCompletion, toPrompts, toResources } from "./composite-facets.ts";
import type { CallContext } from "./context.ts";
import type { Member, OnListError } from "./member-lists.ts";
import { answerOf, createNames } from "./names.ts";
import { assertNamespaces, defaultNaming, type Naming, qualify } from "./namespace.ts";
import type { Provider, ToolCall, ToolOutcome } from "./provider.ts";

export interface ComposeOptions extends Partial<Naming> {
  /**
   * What to do with a name that has no separator. `exact` (the default) looks it up like any other; `first_match` tries
   * the providers in order; `refuse` answers that the format is wrong.
   */
  readonly bareNames?: "exact" | "first_match" | "refuse";
  /**
   * Told when a provider could not be listed; its last good list is used. The default writes it to the standard error
   * stream.
   */
  readonly onListError?: OnListError;
}

const optionKeys: KeysOf<ComposeOptions> = {
  separator: true,
  maxLength: true,
  bareNames: true,
  onListError: true,
};

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
  const namespaces = Object.keys(providers);
  assertNamespaces(namespaces, naming);
  const members: readonly Member[] = Object.entries(providers).map(([namespace, provider]) => ({
    namespace,
    provider,
  }));
  const tools = createNames(members, naming, (provider, context) => provider.listTools(context), onListError);

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

  const firstMatch = async (name: string, context: CallContext): Promise<string | undefined> => {
    if (name.includes(naming.separator)) return undefined;
    const listed = new Set((await tools.list(context)).map((tool) => tool.name));
    const qualified = namespaces.map((namespace) => qualify(namespace, name, naming));
    return qualified.find((candidate) => listed.has(candidate));
  };

  return {
    namespaces,
    listTools: (context) => tools.list(context),
    callTool: async (call, context) => {
      const { name } = call;
      if (bareNames !== "exact" && !name.includes(naming.separator)) return callBare(call, context);
      const owner = await tools.find(name, context);
      if (owner === undefined) throw new NotFoundError("tool", name);
      return answerOf(owner, "tool", name, owner.provider.callTool({ ...call, name: owner.name }, context));
    },
    ...(bareNames === "first_match" ? { listedName: firstMatch } : {}),
    ...toChanges(members),
    ...toResources(members, onListError),
    ...toPrompts(members, naming, onListError),
    ...toCompletion(members, naming, onListError),
  };
}

/** The changes of all members, if any reports some. What several report at once is one change. */
function toChanges(members: readonly Member[]): Pick<Provider, "onChange"> {
  const watched = members.filter(({ provider }) => provider.onChange !== undefined);
  if (watched.length === 0) return {};
  return {
    onChange: (listener) => {
      const source = createChangeSource();
      source.onChange(listener);
      const stops = watched.map(({ provider }) => provider.onChange?.(source.report));
      return () => stops.forEach((stop) => stop?.());
    },
  };
}

function writeListError(namespace: string, error: unknown): void {
  console.error(`Listing ${namespace} failed:`, error);
}
