import { andThen, type Awaitable } from "../async/awaitable.ts";
import { type Missing, NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { strictestOf } from "../mcp/cache-hints.ts";
import type { CompletionResult } from "../mcp/types.ts";
import type { ChangeSource } from "../tools/changes.ts";
import type { CallContext } from "../tools/context.ts";
import type { ListPart } from "../tools/fit/list-fault.ts";
import type { Hearer, Outcome, Provider, Resumption, ToolOutcome } from "../tools/provider.ts";
import { abandonedCall, notParked } from "./bridge/abandoned.ts";
import { isParkedState } from "./bridge/parking.ts";
import type { Catalog } from "./catalog/catalog.ts";
import type { Owner } from "./catalog/merge.ts";
import { missingServers } from "./catalog/missing.ts";
import type { View } from "./catalog/view.ts";
import type { DisabledServer } from "./config/config.ts";
import { hideInData } from "./safe-log.ts";
import type { Upstream } from "./upstream/upstream.ts";

export interface GatewayProviderOptions {
  readonly catalog: Catalog;
  /** The servers by name. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly changes: ChangeSource;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: (json: string) => string;
  /** What a caller may see and use. */
  readonly viewFor: (context: Hearer) => View;
  readonly disabled: () => readonly DisabledServer[];
  /** Told which servers a list or a call waits for, because nothing is known of what they offer. */
  readonly onWaiting: (servers: readonly string[]) => void;
}

/** All servers behind the gateway as one provider. Lists come from the catalog, calls go to the owner, nothing else is asked. */
export function createGatewayProvider(options: GatewayProviderOptions): Provider {
  const { catalog, upstreams, changes, hide, viewFor, disabled, onWaiting } = options;

  /** Waits for servers of which this list is not known yet, each for as long as the first list may wait for it. */
  const untilListed = (context: CallContext, part: ListPart): Promise<unknown> | undefined => {
    const waits = [...upstreams.values()].flatMap((upstream) => {
      const wait = upstream.looked(context, part);
      return wait === undefined ? [] : [{ upstream, isFirst: !upstream.isListed, wait }];
    });
    if (waits.length === 0) return undefined;
    const first = waits.filter(({ isFirst }) => isFirst);
    if (first.length > 0) onWaiting(first.map(({ upstream }) => upstream.name));
    return Promise.all(waits.map(({ wait }) => wait)).then(() => {
      const isReplaced = waits.some(({ upstream }) => upstreams.get(upstream.name) !== upstream);
      // An edit of the config put another in its place, which has the rest of the time.
      return isReplaced ? untilListed(context, part) : undefined;
    });
  };

  const list = <Part extends ListPart>(context: CallContext, part: Part): Awaitable<View[Part]> =>
    andThen(untilListed(context, part), () => {
      const view = viewFor(context);
      const items = view[part];
      // A change of health makes new lists, so what was true of one stays true of it.
      if (!notes.has(items))
        notes.set(
          items,
          hideInData(
            missingServers(
              catalog.sources.filter(({ config }) => view.knows(config)),
              disabled().filter((server) => view.knows(server)),
              view.faults.filter(({ item }) => item.part === part),
            ),
            hide,
          ),
        );
      return items;
    });
  const notes = new WeakMap<readonly unknown[], ReturnType<typeof missingServers>>();

  const upstreamOf = (owner: Owner | undefined): Upstream | undefined =>
    owner === undefined ? undefined : upstreams.get(owner.server);

  /** Servers that may turn out to have this name, if the caller may use it: they have not listed since they were started. */
  const mayHave = (name: string, context: CallContext): readonly Upstream[] => {
    if (!viewFor(context).allows(name)) return [];
    const unlisted = [...upstreams.values()].filter((each) => !each.listedFor("").areToolsConfirmed);
    return unlisted.filter(({ config }) => catalog.mayName(config, name));
  };

  /** What a name stands for. Where that may be something of a server that is starting, it waits for that server. */
  const whenKnown = <T>(
    named: { readonly part: ListPart; readonly name: string; readonly context: CallContext },
    lookUp: () => T | undefined,
  ): Awaitable<T | undefined> => {
    const found = lookUp();
    if (found !== undefined || waited.has(named.context)) return found;
    const servers = mayHave(named.name, named.context);
    return servers.length === 0 ? undefined : untilFound(servers, named, lookUp);
  };
  /** Calls that waited in vain, and are not to wait again when they are looked up once more. */
  const waited = new WeakSet<CallContext>();

  const untilFound = async <T>(
    servers: readonly Upstream[],
    { part, context }: { readonly part: ListPart; readonly context: CallContext },
    lookUp: () => T | undefined,
  ): Promise<T | undefined> => {
    const waits = servers.flatMap((upstream) => {
      const wait = upstream.untilListed(part, context.signal);
      if (wait !== undefined) onWaiting([upstream.name]);
      return wait ?? [];
    });
    // Until one of them turns out to have it, or none does.
    const none = Promise.all(waits).then(() => {});
    const found = waits.map(async (wait) => {
      await wait;
      if (lookUp() === undefined) await none;
    });
    await Promise.race([none, ...found]);
    const late = lookUp();
    if (late === undefined) waited.add(context);
    return late;
  };

  const find = <T>(
    named: {
      readonly part: "tools" | "prompts";
      readonly name: string;
      readonly context: CallContext;
      readonly resumption?: Resumption | undefined;
    },
    lookUp: () => Owner | undefined,
    use: (upstream: Upstream, ownName: string) => Awaitable<T>,
  ): Awaitable<T> => {
    const known = lookUp();
    const owner = upstreamOf(known);
    if (known !== undefined && owner !== undefined) return use(owner, known.ownName);
    const { part, name, context, resumption } = named;
    if (isParkedState(resumption?.state)) throw toMissing(things[part], name, resumption);
    return andThen(whenKnown(named, lookUp), (late) => {
      const upstream = upstreamOf(late);
      if (late !== undefined && upstream !== undefined) return use(upstream, late.ownName);
      const unlisted = mayHave(name, context).find(
        ({ config, isListed }) => !isListed && config.prefix !== false,
      );
      throw unlisted?.unavailable() ?? toMissing(things[part], name, undefined);
    });
  };

  return {
    listTools: (context) => list(context, "tools"),
    toolNamed: (name, context) =>
      whenKnown({ part: "tools", name, context }, () => viewFor(context).tool(name)),
    callTool: (call, context): Awaitable<ToolOutcome> => {
      const { name } = call;
      return find(
        { part: "tools", name, context, resumption: call.resumption },
        () => viewFor(context).toolOwner(name),
        (upstream, ownName) =>
          upstream.callTool(ownName === name ? call : { ...call, name: ownName }, context),
      );
    },
    resources: {
      listResources: async (context) => list(context, "resources"),
      listTemplates: async (context) => list(context, "templates"),
      readResource: async (request, context) => {
        const view = await viewThatKnows(request.uri, context);
        return firstOf(
          request.uri,
          view,
          (upstream) => upstream.readResource(request, context),
          request.resumption,
        );
      },
      watch: async (uri, context) => {
        const view = await viewThatKnows(uri, context);
        return firstOf(uri, view, (upstream) => upstream.watch(uri, context));
      },
      mayHear: ({ uri, origin }, hearer) => origin === undefined || viewFor(hearer).mayHear(origin, uri),
    },
    prompts: {
      listPrompts: async (context) => list(context, "prompts"),
      getPrompt: async (request, context): Promise<Outcome> =>
        find(
          { part: "prompts", name: request.name, context, resumption: request.resumption },
          () => viewFor(context).promptOwner(request.name),
          (upstream, ownName) => upstream.getPrompt({ ...request, name: ownName }, context),
        ),
    },
    completion: {
      complete: async (request, context): Promise<CompletionResult> => {
        const { ref } = request;
        if (ref.type === "ref/prompt")
          return find(
            { part: "prompts", name: ref.name, context },
            () => viewFor(context).promptOwner(ref.name),
            (upstream, name) => upstream.complete({ ...request, ref: { ...ref, name } }, context),
          );
        const view = await viewThatKnows(ref.uri, context);
        const owner = upstreamOf(view.templateOwner(ref.uri) ?? view.resourceOwner(ref.uri));
        if (owner === undefined) throw new NotFoundError("resource", ref.uri);
        return owner.complete(request, context);
      },
    },
    onChange: changes.onChange,
    listMeta: (items) => notes.get(items),
    get cacheHints() {
      return strictestOf(Array.from(upstreams.values(), (upstream) => upstream.listedFor("").hints));
    },
  };

  /** Only what is not known is a reason to wait for servers that have yet to be listed. */
  function viewThatKnows(uri: string, context: CallContext): Awaitable<View> {
    const view = viewFor(context);
    if ((view.templateOwner(uri) ?? view.resourceOwner(uri)) !== undefined) return view;
    const waits = (["resources", "templates"] as const).flatMap((part) => untilListed(context, part) ?? []);
    return waits.length === 0 ? view : Promise.all(waits).then(() => viewFor(context));
  }

  /** Its owner's answer. What no list knows may still be somebody's: those who offer such URIs are tried in turn. */
  async function firstOf<T>(
    uri: string,
    view: View,
    use: (upstream: Upstream) => Awaitable<T>,
    resumption?: Resumption,
  ): Promise<T> {
    const owner = upstreamOf(view.resourceOwner(uri));
    if (owner !== undefined) return use(owner);
    for (const server of view.likelyOwners(uri)) {
      const upstream = upstreams.get(server);
      if (upstream === undefined) continue;
      try {
        return await use(upstream);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    throw toMissing("resource", uri, resumption);
  }
}

const things = { tools: "tool", prompts: "prompt" } as const;

/** What a caller is told of a name that is not there. A call that was parked had begun when it still was. */
function toMissing(what: Missing, id: string, resumption: Resumption | undefined): Error {
  const state = resumption?.state;
  return isParkedState(state) ? abandonedCall(state.server, notParked) : new NotFoundError(what, id);
}

/** Servers say in several ways that they do not have a resource. */
function isNotFound(error: unknown): boolean {
  if (error instanceof NotFoundError) return true;
  return error instanceof RpcError && (error.rpcCode === -32002 || error.rpcCode === -32602);
}
