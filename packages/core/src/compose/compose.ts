import { NotFoundError, RpcError } from "../errors/index.ts";
import { assertKnownKeys, keys, type KeysOf } from "../options/index.ts";
import {
  createChangeSource,
  type CallContext,
  type OldProvider,
  type ToolCall,
  type ToolOutcome,
} from "../provider/index.ts";
import { Catalog } from "./catalog.ts";
import { createComposition } from "./composition.ts";
import type { Member } from "./member.ts";
import { assertNamespaces, defaultNaming, type Naming, prefixOf, qualify } from "./namespace.ts";
import { createPolledLists, type OnListError } from "./polled-lists.ts";
import { everything } from "./view.ts";

export interface ComposeOptions extends Partial<Naming> {
  /**
   * What to do with a name that has no separator. `exact` (the default) looks it up like any other; `first_match` tries
   * the providers in order; `refuse` answers that the format is wrong.
   */
  readonly bareNames?: "exact" | "first_match" | "refuse";
  /**
   * Called when a provider could not be listed; its last good list is used. The default writes it to the standard error
   * stream.
   */
  readonly onListError?: OnListError;
}

const optionKeys: KeysOf<ComposeOptions> = keys("separator maxLength bareNames onListError");

/** Several providers as one. Made by {@link compose}. */
export interface Composite extends OldProvider {
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
  providers: { readonly [namespace: string]: OldProvider },
  options: ComposeOptions = {},
): Composite {
  assertKnownKeys("compose", options, optionKeys);
  const { bareNames = "exact", onListError = writeListError, ...given } = options;
  const naming: Naming = { ...defaultNaming, ...given };
  const { separator } = naming;
  const namespaces = Object.keys(providers);
  assertNamespaces(namespaces, naming);
  // Each caller has an edition of its own: providers may list other things for each.
  const catalog = new Catalog({ kindOf: ({ caller }) => caller, separator: () => separator });
  const all = Object.values(providers);
  catalog.members = Object.entries(providers).map(([name, provider]) =>
    toMember(name, provider, naming, { onListError, onChanged: () => catalog.outdated() }),
  );
  const composition = createComposition({
    catalog,
    viewFor: (caller) => catalog.viewFor(caller, everything),
    triesAll: true,
    onChange: (listener) => listenToAll(providers, listener),
  });

  const callBare = async (call: ToolCall, context: CallContext): Promise<ToolOutcome> => {
    if (bareNames === "refuse") {
      throw new RpcError("rpc.invalid_params", `Invalid tool name format: '${call.name}'`);
    }
    for (const provider of all) {
      try {
        return await provider.callTool(call, context);
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    }
    throw new NotFoundError("tool", call.name);
  };

  const firstMatch = async (name: string, context: CallContext): Promise<string | undefined> => {
    if (name.includes(separator)) return undefined;
    const listed = new Set((await composition.listTools(context)).map((tool) => tool.name));
    return namespaces.map((namespace) => qualify(namespace, name, naming)).find((each) => listed.has(each));
  };

  const {
    resources,
    prompts,
    completion,
    skills,
    tasks,
    onChange,
    mayHear: _,
    toolNamed: __,
    listedName: ____,
    ...tools
  } = composition;
  const mayHear: OldProvider["mayHear"] = (change, callerInfo) =>
    all.every((provider) => provider.mayHear?.(change.inner ?? change, callerInfo) !== false);
  const has = (facet: "resources" | "prompts" | "completion" | "skills" | "tasks"): boolean =>
    all.some((provider) => provider[facet] !== undefined);
  const isWatchable = all.some((provider) => provider.resources?.watch !== undefined);
  const { watch: ___, ...unwatchable } = resources ?? {};
  return {
    ...tools,
    namespaces,
    callTool: (call: ToolCall, context: CallContext) =>
      bareNames !== "exact" && !call.name.includes(separator)
        ? callBare(call, context)
        : composition.callTool(call, context),
    ...(bareNames === "first_match" ? { listedName: firstMatch } : {}),
    ...(has("resources") ? { resources: isWatchable ? resources : unwatchable } : {}),
    ...(has("prompts") ? { prompts } : {}),
    ...(has("completion") ? { completion } : {}),
    ...(has("tasks") ? { tasks } : {}),
    ...(has("skills") ? { skills } : {}),
    ...(all.some((provider) => provider.onChange !== undefined) ? { onChange } : {}),
    ...(all.some((provider) => provider.mayHear !== undefined) ? { mayHear } : {}),
  } as unknown as Composite;
}

/** A provider whose names begin with its namespace. */
function toMember(
  name: string,
  provider: OldProvider,
  naming: Naming,
  listeners: { readonly onListError: OnListError; readonly onChanged: () => void },
): Member {
  const prefix = prefixOf(name, naming);
  return {
    name,
    provider,
    isListed: true,
    names: {
      tool: (ownName) => ({ name: qualify(name, ownName, naming) }),
      prompt: (ownName) => qualify(name, ownName, naming),
      mayOwn: (publicName) => publicName.startsWith(prefix),
    },
    ...createPolledLists({ name, provider, ...listeners }),
  };
}

/** The changes of all providers. Changes of lists that several report at once are one. */
function listenToAll(
  providers: { readonly [namespace: string]: OldProvider },
  listener: Parameters<NonNullable<OldProvider["onChange"]>>[0],
): () => void {
  const source = createChangeSource();
  source.onChange(listener);
  const stops = Object.entries(providers).map(([origin, provider]) =>
    provider.onChange?.((change) =>
      source.report(change.kind === "resource" ? { ...change, origin, inner: change } : change),
    ),
  );
  return () => stops.forEach((stop) => stop?.());
}

function writeListError(namespace: string, error: unknown): void {
  console.error(`Listing ${namespace} failed:`, error);
}
