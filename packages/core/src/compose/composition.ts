import { andThen, type Awaitable, isPromise, recover, settled } from "../async/index.ts";
import { type Missing, NotFoundError, RpcError } from "../errors/index.ts";
import { type CacheHints, type Items, type Meta, type Part, strictestOf, type Tool } from "../mcp/index.ts";
import {
  type CallContext,
  type CallerInfo,
  type Entry,
  Listing,
  type Notice,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  renameOutcome,
  type Round,
  type Target,
  thingOf,
} from "../provider/index.ts";
import type { Catalog } from "./catalog.ts";
import type { Owner } from "./claims.ts";
import { composeGroups } from "./composed-groups.ts";
import { composeSkills } from "./composed-skills.ts";
import type { ListPart, Member } from "./member.ts";
import { assertScopes, assertUriScopes, type ResourceOwner, type View } from "./view.ts";

interface CompositionOptions {
  readonly catalog: Catalog;
  /** The part of the catalog a caller may see and use. */
  readonly viewFor: (caller: CallerInfo) => View;
  readonly onChange: NonNullable<Provider["onChange"]>;
  /** Whether members that list nothing of a URI's scheme may know the URI all the same. */
  readonly triesAll: boolean;
  /** What it offers; everything of the protocol when left out. */
  readonly offers?: (caller: CallerInfo) => Offers;
  /** Called with the members that a list or a call waits for because nothing is known of their lists. */
  readonly onWaiting?: (members: readonly string[]) => void;
  /** What is said of a list with it, such as which members are missing. Asked once for each view. */
  readonly describeList?: (part: ListPart, view: View) => Meta | undefined;
  /** Narrows the cache hints that the members agree on. */
  readonly limitHints?: (hints: CacheHints | undefined) => CacheHints | undefined;
  /** The error for a name that is not there. */
  readonly toMissing?: (what: Missing, id: string, round: Round | undefined) => Error;
}

/** Several members as one provider: lists come from the catalog, calls go to the owner, and no other member is asked. */
export function createComposition(options: CompositionOptions): Provider {
  const {
    catalog,
    viewFor,
    triesAll,
    onWaiting = () => {},
    describeList = () => undefined,
    limitHints = (hints) => hints,
    toMissing = (what, id) => new NotFoundError(what, id),
  } = options;
  const listings = new WeakMap<View, Map<ListPart, Listing<object>>>();
  const skills = composeSkills({ catalog, viewFor });
  const groups = composeGroups({ catalog, viewFor });

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

  const hintsFor = (caller: CallerInfo): CacheHints | undefined => {
    const hints = catalog.members.map((member) => member.listsFor(caller).hints);
    const isUnknown = hints.some((hint) => hint === undefined);
    return limitHints(isUnknown ? undefined : strictestOf(hints.flatMap((hint) => hint ?? [])));
  };

  /** A change of health or of a list makes a new view, so what is said of a list stays true. */
  const listingOf = (part: ListPart, context: CallContext): Listing<object> => {
    const view = viewFor(context);
    const known = listings.get(view) ?? new Map<ListPart, Listing<object>>();
    listings.set(view, known);
    let listing = known.get(part);
    if (listing === undefined) {
      const facts = { meta: describeList(part, view), hints: hintsFor(context) };
      known.set(part, (listing = new Listing<object>(view[part], facts)));
    }
    return listing;
  };

  const list = <P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>> => {
    if (part === "groups") return groups.list(context) as unknown as Promise<Listing<Items[P]>>;
    if (part === "skills")
      return skills.list(context, hintsFor(context)) as unknown as Promise<Listing<Items[P]>>;
    return andThen(
      untilListed(context, part),
      () => listingOf(part, context) as unknown as Listing<Items[P]>,
    );
  };

  /** Calls that already waited without finding a name: they do not wait a second time. */
  const waited = new WeakSet<CallContext>();

  /** Waits for the members that may turn out to have a name, until one has it or none does. */
  const lookUpLate = <T>(
    part: ListPart,
    name: string,
    context: CallContext,
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

  /** Uses the owner of a tool or a prompt, under the name the owner has for it. */
  const atOwner = <T>(
    target: Target & { readonly round?: Round | undefined },
    context: CallContext,
    work: (member: Member, own: TargetAt, owner: Owner) => Awaitable<T>,
    askFirst: (member: Member) => Promise<T | undefined> | undefined = () => undefined,
  ): Awaitable<T> => {
    const { name, ref, round } = target;
    const part = target.part === "prompts" ? "prompts" : "tools";
    const task = ref === undefined ? undefined : parseRef(ref);
    if (ref !== undefined && task === undefined) throw new NotFoundError("task", ref);
    const lookUp = (): Owner | undefined => {
      const view = viewFor(context);
      const owner = part === "tools" ? view.toolClaims.get(name) : view.promptClaims.get(name);
      // Two members may both have a task of this ref, and a name may have changed its owner.
      return task === undefined || task.member === owner?.server ? owner : undefined;
    };
    const go = (owner: Owner | undefined): Awaitable<T> | undefined => {
      const member = memberOf(owner);
      if (owner === undefined || member === undefined) return undefined;
      const { allows } = viewFor(context);
      if (allows.lackingFor !== undefined) assertScopes(allows, name, owner.ownName);
      // The string of the catalog, not that of the request: it is the same for all calls, and keeps no request in memory.
      context.observation?.found(owner.server, owner.ownName, owner.key === name ? owner.key : name);
      const made = work(member, { name: owner.ownName, ref: task?.ref }, owner);
      return owner.ownName === name ? made : underPublicName(made, thingOf(target), owner.ownName, name);
    };
    const done = go(lookUp());
    if (done !== undefined) return done;
    return andThen(round === undefined ? lookUpLate(part, name, context, lookUp) : undefined, (owner) => {
      const late = go(owner);
      if (late !== undefined) return late;
      const isAllowed = viewFor(context).allows(name);
      const possible = isAllowed ? catalog.members.filter((member) => member.names.mayOwn(name)) : [];
      const [asked] = possible.flatMap((member) => askFirst(member) ?? []);
      return andThen(asked, (outcome) => {
        const answered = outcome ?? (asked === undefined ? undefined : go(lookUp()));
        if (answered !== undefined) return answered;
        const [unlisted] = possible.flatMap((member) => member.unavailable?.() ?? []);
        throw unlisted ?? toMissing(thingOf(target), name, round);
      });
    });
  };

  const asTask = <T>(ref: string | undefined, work: () => Awaitable<T>): Awaitable<T> =>
    ref === undefined
      ? work()
      : recover(work, (error) => {
          throw error instanceof NotFoundError ? new NotFoundError("task", ref) : error;
        });

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
    work: (member: Member, ownUri: string, owner: ResourceOwner | undefined) => Awaitable<T> | undefined,
    round?: Round,
  ): Promise<T> => {
    const view = await viewThatKnows(uri, context);
    const found: ResourceOwner | undefined = view.templateOwner(uri) ?? view.resourceOwner(uri);
    const owner = memberOf(found);
    const { ownUri = uri } = found ?? {};
    const likely = new Set(view.likelyOwners(uri));
    const asked = owner === undefined ? likely : [owner.name];
    assertUriScopes(view.allows, asked, [uri, ownUri], catalog.separator);
    const others = catalog.members.filter(({ name }) => triesAll || likely.has(name));
    let failure: Error | undefined;
    let notFound: Error | undefined;
    for (const member of owner === undefined ? others : [owner]) {
      context.observation?.found(member.name, uri, uri);
      try {
        const done = await work(member, ownUri, found);
        if (done !== undefined) return done;
      } catch (error) {
        if (isNotFound(error)) notFound ??= error as Error;
        else failure ??= error as Error;
      }
    }
    const isNamed = owner !== undefined && ownUri === uri;
    throw failure ?? (isNamed ? notFound : undefined) ?? toMissing("resource", uri, round);
  };

  /** A member's outcome with the URIs that callers know, and with a task that leads back to the member. */
  const toPublic = (
    made: Awaitable<Outcome>,
    method: string,
    member: Member,
    owner: Owner | undefined,
    context: CallContext,
  ): Awaitable<Outcome> => {
    const uris = owner?.uris;
    // Only callers that declared an extension are given tasks.
    if (uris === undefined && context.capabilities.extensions === undefined) return made;
    return andThen(made, (outcome) => {
      const renamed = uris === undefined ? outcome : renameOutcome(outcome, method, uris.toPublic);
      return withMember(renamed, member.name);
    });
  };

  const call = (operation: Operation, context: CallContext): Awaitable<Outcome> => {
    const { part, name, ref, round } = operation;
    if (part === "tools" || part === "prompts")
      return asTask(ref, () =>
        atOwner(
          operation,
          context,
          (member, own, owner) => {
            if (part === "prompts" && !member.provider.offers(context).serves(operation.method))
              throw toMissing("prompt", name, round);
            const isSame = own.name === name && own.ref === ref;
            const made = member.provider.call(isSame ? operation : { ...operation, ...own }, context);
            return toPublic(settled(made), operation.method, member, owner, context);
          },
          (member) => (ref === undefined && part === "tools" ? member.askFirst?.(context, round) : undefined),
        ),
      );
    if (operation.method === "skills/get" || operation.method === "resources/directory/read")
      return skills.call(operation, context);
    if (part === undefined)
      throw new RpcError("rpc.method_not_found", `Method not found: ${operation.method}`);
    return firstOf(
      name,
      context,
      (member, uri, owner) => {
        if (!member.provider.offers(context).serves(operation.method)) return undefined;
        // What is completed keeps the template that callers know.
        const own = part === "templates" || uri === name ? operation : { ...operation, name: uri };
        return toPublic(
          settled(member.provider.call(own, context)),
          operation.method,
          member,
          owner,
          context,
        );
      },
      round,
    );
  };

  const watch: NonNullable<Provider["watch"]> = (target, context, listener) => {
    const { part, name, ref } = target;
    if (ref !== undefined)
      return asTask(ref, () =>
        atOwner(target, context, (member, own, owner) => {
          if (member.provider.watch === undefined) throw new NotFoundError("task", ref);
          return settled(
            member.provider.watch({ part, ...own }, context, (notice) => {
              // If the caller may no longer use the tool, it hears no more of the task.
              if (notice.kind !== "task" || viewFor(context).toolClaims.get(name)?.server !== owner.server)
                return;
              const { uris } = owner;
              const outcome =
                uris === undefined
                  ? notice.outcome
                  : renameOutcome(notice.outcome, "tasks/get", uris.toPublic);
              listener({ kind: "task", outcome: withMember(outcome, member.name) });
            }),
          );
        }),
      );
    return firstOf(name, context, (member, uri) =>
      member.provider.watch?.({ part, name: uri, ref }, context, (notice) => {
        const known = toPublicNotice(notice, member, context);
        if (known !== undefined) listener(known);
      }),
    );
  };

  /** What happened to a resource, as callers know it; undefined where this caller may not hear of it. */
  const toPublicNotice = (notice: Notice, member: Member, context: CallContext): Notice | undefined => {
    if (notice.kind !== "updated") return undefined;
    const uri = catalog.snapshotFor(context).uris.get(member.name)?.toPublic(notice.uri) ?? notice.uri;
    if (!viewFor(context).mayHear(member.name, uri)) return undefined;
    return uri === notice.uri ? notice : { ...notice, uri };
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

  const findTool = (name: string, context: CallContext): Awaitable<Entry<Tool> | undefined> => {
    const lookUp = (): Entry<Tool> | undefined =>
      viewFor(context).toolClaims.get(appName(name, context) ?? name);
    return lookUp() ?? lookUpLate("tools", name, context, lookUp);
  };

  return {
    list,
    call,
    watch,
    find: <P extends Part>(part: P, name: string, context: CallContext) => {
      if (part === "tools") return findTool(name, context) as Awaitable<Entry<Items[P]> | undefined>;
      return andThen(list(part, context), (listing) => {
        const item = listing.get(name);
        return item && { key: name, item };
      });
    },
    offers: options.offers ?? (() => everythingOffered),
    onChange: options.onChange,
  };
}

/** What an owner calls the target of an operation. */
type TargetAt = Pick<Target, "name" | "ref">;

const everythingOffered: Offers = { serves: () => true };

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

/** An outcome whose task leads back to the member. */
function withMember(outcome: Outcome, member: string): Outcome {
  const { task } = outcome;
  return task === undefined
    ? outcome
    : { ...outcome, task: { ...task, ref: JSON.stringify([member, task.ref]) } };
}

/** The member of a task and its own name for it. A ref that a server did not seal may be anything. */
function parseRef(text: string): { readonly member: string; readonly ref: string } | undefined {
  try {
    const parts: unknown = JSON.parse(text);
    if (!Array.isArray(parts) || parts.length !== 2 || !parts.every((part) => typeof part === "string"))
      return undefined;
    const [member, ref] = parts as [string, string];
    return { member, ref };
  } catch {
    return undefined;
  }
}

/** Servers say in several ways that they do not have a resource. */
function isNotFound(error: unknown): boolean {
  if (error instanceof NotFoundError) return true;
  return error instanceof RpcError && (error.rpcCode === -32002 || error.rpcCode === -32602);
}
