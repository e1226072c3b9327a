import { andThen, type Awaitable } from "../async/awaitable.ts";
import { type Clock, settlesWithin } from "../async/clock.ts";
import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { strictestOf } from "../mcp/cache-hints.ts";
import type { CompletionResult } from "../mcp/types.ts";
import type { ChangeSource } from "../tools/changes.ts";
import type { CallContext } from "../tools/context.ts";
import type { ListPart } from "../tools/fit/list-fault.ts";
import type { Hearer, Outcome, Provider, ToolOutcome } from "../tools/provider.ts";
import type { Catalog } from "./catalog/catalog.ts";
import { missingServers } from "./catalog/missing.ts";
import type { Owner, View } from "./catalog/view.ts";
import { hideInData } from "./safe-log.ts";
import type { Upstream } from "./upstream/upstream.ts";

export interface GatewayProviderOptions {
  readonly catalog: Catalog;
  /** The servers by name. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly changes: ChangeSource;
  readonly clock: Clock;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: (json: string) => string;
  /** What a caller may see and use. */
  readonly viewFor: (context: Hearer) => View;
  /** Undefined once the first lists are there; until then, settles when they are or when waiting is over. */
  readonly untilReady: () => Promise<void> | undefined;
  /** How long the first list for callers of a new kind is waited for. */
  readonly firstListMs: number;
}

/** All servers behind the gateway as one provider. Lists come from the catalog, calls go to the owner, nothing else is asked. */
export function createGatewayProvider(options: GatewayProviderOptions): Provider {
  const { catalog, upstreams, changes, clock, hide, viewFor, untilReady, firstListMs } = options;

  /** Starts lazy servers of which nothing is known: a name may be theirs. */
  const untilKnown = (): Promise<unknown> | undefined => {
    const unknown = [...upstreams.values()].filter(({ isUnknown }) => isUnknown);
    if (unknown.length === 0) return undefined;
    return settlesWithin(Promise.all(unknown.map((upstream) => upstream.start())), firstListMs, clock);
  };

  const whenReady = <T>(then: () => T): Awaitable<T> => {
    const waiting = untilReady() ?? untilKnown();
    return waiting === undefined ? then() : waiting.then(then);
  };
  const list = <Part extends ListPart>(context: CallContext, part: Part): Awaitable<View[Part]> => {
    const coming = Array.from(upstreams.values(), (upstream) => upstream.looked(context)).filter(
      (first) => first !== undefined,
    );
    const waiting = coming.length === 0 ? undefined : settlesWithin(Promise.all(coming), firstListMs, clock);
    return andThen(waiting, () =>
      whenReady(() => {
        const view = viewFor(context);
        const items = view[part];
        // A change of health makes new lists, so what was true of one stays true of it.
        if (!notes.has(items))
          notes.set(
            items,
            hideInData(
              missingServers(
                catalog.sources.filter(({ config }) => view.knows(config)),
                view.faults.filter(({ item }) => item.part === part),
              ),
              hide,
            ),
          );
        return items;
      }),
    );
  };
  const notes = new WeakMap<readonly unknown[], ReturnType<typeof missingServers>>();

  const upstreamOf = (owner: Owner | undefined): Upstream | undefined =>
    owner === undefined ? undefined : upstreams.get(owner.server);

  /** Lists nobody asked for yet are waited for: a client may know the name from before. */
  const find = <T>(
    lookUp: () => Owner | undefined,
    use: (upstream: Upstream, ownName: string) => Awaitable<T>,
    missing: () => Error,
  ): Awaitable<T> => {
    const owner = lookUp();
    const upstream = upstreamOf(owner);
    if (owner !== undefined && upstream !== undefined) return use(upstream, owner.ownName);
    const waiting = untilReady() ?? untilKnown();
    if (waiting === undefined) throw missing();
    return waiting.then(() => {
      const late = lookUp();
      const server = upstreamOf(late);
      if (late === undefined || server === undefined) throw missing();
      return use(server, late.ownName);
    });
  };

  return {
    listTools: (context) => list(context, "tools"),
    toolNamed: (name, context) => viewFor(context).tool(name) ?? whenReady(() => viewFor(context).tool(name)),
    callTool: (call, context): Awaitable<ToolOutcome> => {
      const { name } = call;
      return find(
        () => viewFor(context).toolOwner(name),
        (upstream, ownName) =>
          upstream.callTool(ownName === name ? call : { ...call, name: ownName }, context),
        () => new NotFoundError("tool", name),
      );
    },
    resources: {
      listResources: async (context) => list(context, "resources"),
      listTemplates: async (context) => list(context, "templates"),
      readResource: async (request, context) => {
        const view = await viewThatKnows(request.uri, context);
        return firstOf(request.uri, view, (upstream) => upstream.readResource(request, context));
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
          () => viewFor(context).promptOwner(request.name),
          (upstream, ownName) => upstream.getPrompt({ ...request, name: ownName }, context),
          () => new NotFoundError("prompt", request.name),
        ),
    },
    completion: {
      complete: async (request, context): Promise<CompletionResult> => {
        const { ref } = request;
        if (ref.type === "ref/prompt")
          return find(
            () => viewFor(context).promptOwner(ref.name),
            (upstream, name) => upstream.complete({ ...request, ref: { ...ref, name } }, context),
            () => new NotFoundError("prompt", ref.name),
          );
        return find(
          () => viewFor(context).templateOwner(ref.uri) ?? viewFor(context).resourceOwner(ref.uri),
          (upstream) => upstream.complete(request, context),
          () => new NotFoundError("resource", ref.uri),
        );
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
    return view.resourceOwner(uri) === undefined ? whenReady(() => viewFor(context)) : view;
  }

  /** Its owner's answer. What no list knows may still be somebody's: those who offer such URIs are tried in turn. */
  async function firstOf<T>(uri: string, view: View, use: (upstream: Upstream) => Awaitable<T>): Promise<T> {
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
    throw new NotFoundError("resource", uri);
  }
}

/** Servers say in several ways that they do not have a resource. */
function isNotFound(error: unknown): boolean {
  if (error instanceof NotFoundError) return true;
  return error instanceof RpcError && (error.rpcCode === -32002 || error.rpcCode === -32602);
}
