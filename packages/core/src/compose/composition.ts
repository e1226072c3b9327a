import { andThen, type Awaitable, isPromise } from "../async/index.ts";
import { type Missing, NotFoundError, RpcError } from "../errors/index.ts";
import type { ListPart } from "../fit/index.ts";
import { strictestOf, type Tool } from "../mcp/index.ts";
import type {
  CallContext,
  OldChange,
  CallerInfo,
  OldProvider,
  ResourceProvider,
  Round,
} from "../provider/index.ts";
import type { Catalog } from "./catalog.ts";
import type { Owner } from "./claims.ts";
import { composeSkills } from "./composed-skills.ts";
import { composeTasks, toComposed } from "./composed-tasks.ts";
import type { Member } from "./member.ts";
import { renamed, toPublicChange } from "./renamed-results.ts";
import { assertScopes, assertUriScopes, type ResourceOwner, type View } from "./view.ts";

interface CompositionOptions {
  readonly catalog: Catalog;
  /** The part of the catalog a caller may see and use. */
  readonly viewFor: (caller: CallerInfo) => View;
  readonly onChange: NonNullable<OldProvider["onChange"]>;
  /** Whether members that list nothing of a URI's scheme may know the URI all the same. */
  readonly triesAll: boolean;
  /** Called with the members that a list or a call waits for because nothing is known of their lists. */
  readonly onWaiting?: (members: readonly string[]) => void;
  /** Called for each list that is given to a caller. */
  readonly onList?: (items: readonly object[], part: ListPart, view: View) => void;
  /** The error for a name that is not there. */
  readonly toMissing?: (what: Missing, id: string, round: Round | undefined) => Error;
}

/** A name a caller used, and the list it would be in. */
interface Named {
  readonly part: "tools" | "prompts";
  readonly name: string;
  readonly context: CallContext;
  readonly round?: Round | undefined;
}

/** Several members as one provider: lists come from the catalog, calls go to the owner, and no other member is asked. */
export function createComposition(options: CompositionOptions): OldProvider {
  const {
    catalog,
    viewFor,
    triesAll,
    onWaiting = () => {},
    onList = () => {},
    toMissing = (what, id) => new NotFoundError(what, id),
  } = options;

  const memberOf = (owner: Owner | undefined): Member | undefined =>
    owner && catalog.memberNamed(owner.server);

  /** Waits for members of which this list is not known yet, each for as long as that member may be waited for. */
  const untilListed = (context: CallContext, part: ListPart): Promise<unknown> | undefined => {
    const waits = catalog.members.flatMap((member) => {
      const wait = member.beginListing(context, part);
      return wait === undefined ? [] : [{ member, isFirst: !member.isListed, wait }];
    });
    if (waits.length === 0) return undefined;
    const first = waits.filter(({ isFirst }) => isFirst);
    if (first.length > 0) onWaiting(first.map(({ member }) => member.name));
    return Promise.all(waits.map(({ wait }) => wait)).then(() => {
      const isReplaced = waits.some(({ member }) => !catalog.members.includes(member));
      // An edit of the config replaced a member: its successor is waited for.
      return isReplaced ? untilListed(context, part) : undefined;
    });
  };

  const list = <Part extends ListPart>(context: CallContext, part: Part): Awaitable<View[Part]> =>
    andThen(untilListed(context, part), () => {
      const view = viewFor(context);
      onList(view[part], part, view);
      return view[part];
    });

  /** Calls that waited in vain, and are not to wait again when they are looked up once more. */
  const waited = new WeakSet<CallContext>();

  /** Waits for the members that may turn out to have a name, until one has it or none does. */
  const lookUpLate = <T>(
    { part, name, context }: Named,
    lookUp: () => T | undefined,
  ): Awaitable<T | undefined> => {
    if (waited.has(context) || !viewFor(context).allows(name)) return undefined;
    const waits = catalog.members.flatMap((member) => {
      const wait = member.names.mayOwn(name) ? member.untilListed(context, part) : undefined;
      if (wait !== undefined && !member.isListed) onWaiting([member.name]);
      return wait ?? [];
    });
    if (waits.length === 0) return lookUp();
    const none = Promise.all(waits).then(() => {});
    const found = waits.map(async (wait) => {
      await wait;
      if (lookUp() === undefined) await none;
    });
    return Promise.race([none, ...found]).then(() => {
      const late = lookUp();
      if (late === undefined) waited.add(context);
      return late;
    });
  };

  /** Uses the owner of a name, under the name the owner has for it. */
  const use = <T>(
    named: Named,
    ownerIn: (view: View) => Owner | undefined,
    work: (provider: OldProvider, ownName: string, owner: Owner) => Awaitable<T> | undefined,
    askFirst: (member: Member) => Promise<T | undefined> | undefined = () => undefined,
  ): Awaitable<T> => {
    const { part, name, context, round } = named;
    const lookUp = (): Owner | undefined => ownerIn(viewFor(context));
    const what = things[part];
    const go = (owner: Owner | undefined): Awaitable<T> | undefined => {
      const member = memberOf(owner);
      if (owner === undefined || member === undefined) return undefined;
      const { allows } = viewFor(context);
      if (allows.lackingFor !== undefined) assertScopes(allows, name, owner.ownName);
      // The string of the catalog, not that of the request: it is the same for all calls, and keeps no request in memory.
      context.observation?.found(owner.server, owner.ownName, owner.key === name ? owner.key : name);
      const made = work(member.provider, owner.ownName, owner);
      const done = owner.uris === undefined || made === undefined ? made : renamed(made, owner.uris);
      return done !== undefined && owner.ownName !== name
        ? underPublicName(done, what, owner.ownName, name)
        : done;
    };
    const done = go(lookUp());
    if (done !== undefined) return done;
    return andThen(round === undefined ? lookUpLate(named, lookUp) : undefined, (owner) => {
      const late = go(owner);
      if (late !== undefined) return late;
      const isAllowed = viewFor(context).allows(name);
      const possible = isAllowed ? catalog.members.filter((member) => member.names.mayOwn(name)) : [];
      const [asked] = possible.flatMap((member) => askFirst(member) ?? []);
      return andThen(asked, (outcome) => {
        const done = outcome ?? (asked === undefined ? undefined : go(lookUp()));
        if (done !== undefined) return done;
        const [unlisted] = possible.flatMap((member) => member.unavailable?.() ?? []);
        throw unlisted ?? toMissing(what, name, round);
      });
    });
  };

  /** A URI that is not known is a reason to wait for members that have yet to be listed. */
  const viewThatKnows = (uri: string, context: CallContext): Awaitable<View> => {
    const view = viewFor(context);
    if ((view.templateOwner(uri) ?? view.resourceOwner(uri)) !== undefined) return view;
    const waits = (["resources", "templates"] as const).flatMap((part) => untilListed(context, part) ?? []);
    return waits.length === 0 ? viewFor(context) : Promise.all(waits).then(() => viewFor(context));
  };

  /** The answer of a URI's owner. A URI that no list knows is tried with the members that may know it, in turn. */
  const firstOf = async <T>(
    uri: string,
    context: CallContext,
    work: (provider: OldProvider, uri: string) => Awaitable<T> | undefined,
    round?: Round,
  ): Promise<T> => {
    const view = await viewThatKnows(uri, context);
    const found: ResourceOwner | undefined = view.templateOwner(uri) ?? view.resourceOwner(uri);
    const owner = memberOf(found);
    const { ownUri = uri, uris } = found ?? {};
    const likely = new Set(view.likelyOwners(uri));
    const asked = owner === undefined ? likely : [owner.name];
    assertUriScopes(view.allows, asked, [uri, ownUri], catalog.separator);
    const others = catalog.members.filter(({ name }) => triesAll || likely.has(name));
    let failure: Error | undefined;
    let notFound: Error | undefined;
    for (const { provider, name } of owner === undefined ? others : [owner]) {
      context.observation?.found(name, uri, uri);
      try {
        const done = await work(provider, ownUri);
        if (done !== undefined) return uris === undefined ? done : await renamed(done, uris);
      } catch (error) {
        if (isNotFound(error)) notFound ??= error as Error;
        else failure ??= error as Error;
      }
    }
    const isNamed = owner !== undefined && ownUri === uri;
    throw failure ?? (isNamed ? notFound : undefined) ?? toMissing("resource", uri, round);
  };

  const resources: ResourceProvider = {
    listResources: async (context) => list(context, "resources"),
    listTemplates: async (context) => list(context, "templates"),
    readResource: (request, context) =>
      firstOf(
        request.uri,
        context,
        (provider, uri) => provider.resources?.readResource({ ...request, uri }, context),
        request.round,
      ),
    watch: (uri, context) =>
      firstOf(uri, context, (provider, own) => provider.resources?.watch?.(own, context)),
  };

  /** The public name of a tool that an app view calls by the server's own name: a view does not know public names. */
  const appName = (name: string, context: CallContext): string | undefined => {
    const view = viewFor(context);
    if (!view.hasApps || view.toolClaims.has(name)) return undefined;
    const [only, ...others] = view.appTools.get(name) ?? [];
    if (only === undefined || others.length === 0) return only?.key;
    const names = [only, ...others].map(({ key }) => key).join(", ");
    const text = `Several servers have a tool ${JSON.stringify(name)} for views; call one of ${names}`;
    throw new RpcError("rpc.invalid_params", text);
  };

  return {
    listTools: (context) => list(context, "tools"),
    listedName: appName,
    toolNamed: (name, context) => {
      const lookUp = (): Tool | undefined =>
        viewFor(context).toolClaims.get(appName(name, context) ?? name)?.item;
      return lookUp() ?? lookUpLate({ part: "tools", name, context }, lookUp);
    },
    callTool: (call, context) =>
      use(
        { part: "tools", name: call.name, context, round: call.round },
        (view) => view.toolClaims.get(call.name),
        (provider, name, { server }) => {
          const outcome = provider.callTool(name === call.name ? call : { ...call, name }, context);
          // Only callers that declared an extension are given tasks.
          if (context.capabilities.extensions === undefined) return outcome;
          return andThen(outcome, (ended) => toComposed(ended, call.name, server));
        },
        (member) => member.askFirst?.(context, call.round),
      ),
    tasks: composeTasks({
      owns: (server, tool, context) => viewFor(context).toolClaims.get(tool)?.server === server,
      useTool: (tool, context, isOwner, work) =>
        use(
          { part: "tools", name: tool, context },
          (view) => {
            const owner = view.toolClaims.get(tool);
            return owner !== undefined && isOwner(owner) ? owner : undefined;
          },
          work,
        ),
    }),
    resources,
    prompts: {
      listPrompts: async (context) => list(context, "prompts"),
      getPrompt: async (request, context) =>
        use(
          { part: "prompts", name: request.name, context, round: request.round },
          (view) => view.promptClaims.get(request.name),
          ({ prompts }, name) => prompts?.getPrompt({ ...request, name }, context),
        ),
    },
    completion: {
      complete: async (request, context) => {
        const { ref } = request;
        if (ref.type === "ref/resource")
          return firstOf(ref.uri, context, ({ completion }) => completion?.complete(request, context));
        return use(
          { part: "prompts", name: ref.name, context },
          (view) => view.promptClaims.get(ref.name),
          ({ completion }, name) => completion?.complete({ ...request, ref: { ...ref, name } }, context),
        );
      },
    },
    onChange: (listener) => options.onChange((change) => listener(toPublicChange(change, catalog))),
    skills: composeSkills({ catalog, viewFor }),
    mayHear: (change: OldChange, callerInfo: CallerInfo) => {
      const { origin } = change;
      const member = origin === undefined ? undefined : catalog.memberNamed(origin);
      if (member?.provider.mayHear?.(change.inner ?? change, callerInfo) === false) return false;
      if (change.kind !== "resource" || origin === undefined) return true;
      return viewFor(callerInfo).mayHear(origin, change.uri);
    },
    get cacheHints() {
      const hints = catalog.members.map(({ provider }) => provider.cacheHints);
      return hints.some((hint) => hint === undefined)
        ? undefined
        : strictestOf(hints.flatMap((hint) => hint ?? []));
    },
  };
}

const things = { tools: "tool", prompts: "prompt" } as const;

/** An owner's answer. Where it no longer has the thing, the error names it as the caller did. */
function underPublicName<T>(
  answer: Awaitable<T>,
  what: Missing,
  ownName: string,
  name: string,
): Awaitable<T> {
  if (!isPromise(answer)) return answer;
  return answer.catch((error: unknown) => {
    const isGone = error instanceof NotFoundError && error.what === what && error.id === ownName;
    throw isGone ? new NotFoundError(what, name) : error;
  });
}

/** Servers say in several ways that they do not have a resource. */
function isNotFound(error: unknown): boolean {
  if (error instanceof NotFoundError) return true;
  return error instanceof RpcError && (error.rpcCode === -32002 || error.rpcCode === -32602);
}
