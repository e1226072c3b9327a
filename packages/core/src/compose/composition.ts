import { andThen, type Awaitable, isPromise, recover, settled } from "../async/index.ts";
import { type Missing, NotFoundError, RpcError } from "../errors/index.ts";
import {
  type CacheHints,
  type Items,
  type Meta,
  type Part,
  strictestOf,
  type Tool,
  type Group,
  type GroupContents,
} from "../mcp/index.ts";
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
import type { Owner, Claim } from "./claims.ts";
import { ComposedSkills } from "./composed-skills.ts";
import type { ListPart, Member } from "./member.ts";
import { toGroupName } from "./namespace.ts";
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
  /** The `_meta` of a list, such as which members are missing. Called once for each view. */
  readonly describeList?: (part: ListPart, view: View) => Meta | undefined;
  /** Narrows the cache hints that the members agree on. */
  readonly limitHints?: (hints: CacheHints | undefined) => CacheHints | undefined;
  /** The error for a name that is not there. */
  readonly toMissing?: (what: Missing, id: string, round: Round | undefined) => Error;
}

/** Several members as one provider: lists come from the catalog, calls go to the owner, and no other member is asked. */
export function createComposition(options: CompositionOptions): Provider {
  const { catalog, viewFor } = options;
  const lists = new ComposedLists(options);
  const owners = new Owners(options, lists);
  const skills = new ComposedSkills({ catalog, viewFor });
  const groups = composeGroups({ catalog, viewFor });

  const list = <P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>> => {
    if (part === "groups") return groups.list(context) as unknown as Promise<Listing<Items[P]>>;
    if (part === "skills")
      return skills.list(context, lists.hintsFor(context)) as unknown as Promise<Listing<Items[P]>>;
    return lists.get(part, context) as unknown as Awaitable<Listing<Items[P]>>;
  };
  const findTool = (name: string, context: CallContext): Awaitable<Entry<Tool> | undefined> => {
    const lookUp = (): Entry<Tool> | undefined => {
      const view = viewFor(context);
      return view.toolClaims.get(appName(name, view) ?? name);
    };
    return lookUp() ?? owners.lookUpLate("tools", name, context, lookUp);
  };
  return {
    list,
    call: (operation, context) => {
      const { part, method } = operation;
      if (part === "tools" || part === "prompts") return owners.callNamed(operation, context);
      if (method === "skills/get" || method === "resources/directory/read")
        return skills.call(operation, context);
      if (part === undefined) throw new RpcError("rpc.method_not_found", `Method not found: ${method}`);
      return owners.callAtUri(operation, context);
    },
    watch: (target, context, listener) =>
      target.ref === undefined
        ? owners.watchUri(target, context, listener)
        : owners.watchTask({ ...target, ref: target.ref }, context, listener),
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

const everythingOffered: Offers = { serves: () => true };

/** The public name of a tool that an app view calls by the server's own name: a view does not know public names. */
function appName(name: string, view: View): string | undefined {
  if (!view.hasApps || view.toolClaims.has(name)) return undefined;
  const [only, ...others] = view.appTools.get(name) ?? [];
  if (only === undefined || others.length === 0) return only?.key;
  const names = [only, ...others].map(({ key }) => key).join(", ");
  const text = `Several servers have a tool ${JSON.stringify(name)} for views; call one of ${names}`;
  throw new RpcError("rpc.invalid_params", text);
}

/** The lists of a catalog, as its views show them. */
class ComposedLists {
  readonly #options: CompositionOptions;
  readonly #listings = new WeakMap<View, Map<ListPart, Listing<object>>>();

  constructor(options: CompositionOptions) {
    this.#options = options;
  }

  get(part: ListPart, context: CallContext): Awaitable<Listing<object>> {
    return andThen(this.untilListed(context, part), () => this.#listingOf(part, context));
  }

  /** Waits for members of which this list is not known yet, each for as long as that member may be waited for. */
  untilListed(context: CallContext, part: ListPart): Promise<unknown> | undefined {
    const { catalog, onWaiting } = this.#options;
    const waits = catalog.members.flatMap((member) => {
      const wait = member.beginListing(context, part);
      return wait === undefined ? [] : [{ member, isFirst: !member.isListed, wait }];
    });
    if (waits.length === 0) return undefined;
    const first = waits.filter(({ isFirst }) => isFirst);
    if (first.length > 0) onWaiting?.(first.map(({ member }) => member.name));
    return Promise.all(waits.map(({ wait }) => wait)).then(() => {
      const isReplaced = waits.some(({ member }) => !catalog.members.includes(member));
      // An edit of the config replaced a member: its successor is waited for.
      return isReplaced ? this.untilListed(context, part) : undefined;
    });
  }

  hintsFor(caller: CallerInfo): CacheHints | undefined {
    const { catalog, limitHints = (agreed) => agreed } = this.#options;
    const hints = catalog.members.map((member) => member.listsFor(caller).hints);
    const isUnknown = hints.some((hint) => hint === undefined);
    return limitHints(isUnknown ? undefined : strictestOf(hints.flatMap((hint) => hint ?? [])));
  }

  /** A change of health or of a list makes a new view, so the `_meta` of a list stays true. */
  #listingOf(part: ListPart, context: CallContext): Listing<object> {
    const { viewFor, describeList } = this.#options;
    const view = viewFor(context);
    const known = this.#listings.get(view) ?? new Map<ListPart, Listing<object>>();
    this.#listings.set(view, known);
    let listing = known.get(part);
    if (listing === undefined) {
      const facts = { meta: describeList?.(part, view), hints: this.hintsFor(context) };
      known.set(part, (listing = new Listing<object>(view[part], facts)));
    }
    return listing;
  }
}

/** Finds the member that has the target of an operation, and passes the operation on to it. */
class Owners {
  readonly #options: CompositionOptions;
  readonly #catalog: Catalog;
  readonly #viewFor: CompositionOptions["viewFor"];
  readonly #lists: ComposedLists;
  /** Calls that already waited without finding a name: they do not wait a second time. */
  readonly #waited = new WeakSet<CallContext>();

  constructor(options: CompositionOptions, lists: ComposedLists) {
    this.#options = options;
    this.#catalog = options.catalog;
    this.#viewFor = options.viewFor;
    this.#lists = lists;
  }

  /** Calls a tool, gets a prompt, or asks for a task of a tool. */
  callNamed(operation: Operation, context: CallContext): Awaitable<Outcome> {
    const { part, method, name, ref, round } = operation;
    return asTask(ref, () =>
      this.#atOwner(
        operation,
        context,
        (member, own, owner) => {
          if (part === "prompts" && !member.provider.offers(context).serves(method))
            throw this.#toMissing("prompt", name, round);
          const isSame = own.name === name && own.ref === ref;
          const answer = member.provider.call(isSame ? operation : { ...operation, ...own }, context);
          return toPublic(settled(answer), method, member, owner, context);
        },
        (member) => (ref === undefined && part === "tools" ? member.askFirst?.(context, round) : undefined),
      ),
    );
  }

  /** Reads a resource, or does something else with a URI. */
  callAtUri(operation: Operation, context: CallContext): Awaitable<Outcome> {
    const { part, method, name, round } = operation;
    return this.#firstOf(
      name,
      context,
      (member, uri, owner) => {
        if (!member.provider.offers(context).serves(method)) return undefined;
        // A completion keeps the template that callers know.
        const own = part === "templates" || uri === name ? operation : { ...operation, name: uri };
        return toPublic(settled(member.provider.call(own, context)), method, member, owner, context);
      },
      round,
    );
  }

  watchTask(
    target: Target & { readonly ref: string },
    context: CallContext,
    listener: (notice: Notice) => void,
  ): Awaitable<() => void> {
    const { part, name, ref } = target;
    return asTask(ref, () =>
      this.#atOwner(target, context, (member, own, owner) => {
        if (member.provider.watch === undefined) throw new NotFoundError("task", ref);
        return settled(
          member.provider.watch({ part, ...own }, context, (notice) => {
            // A caller that may no longer use the tool gets no more notices of its task.
            if (
              notice.kind !== "task" ||
              this.#viewFor(context).toolClaims.get(name)?.server !== owner.server
            )
              return;
            const { uris } = owner;
            const outcome =
              uris === undefined ? notice.outcome : renameOutcome(notice.outcome, "tasks/get", uris.toPublic);
            listener({ kind: "task", outcome: withMember(outcome, member.name) });
          }),
        );
      }),
    );
  }

  watchUri(
    { part, name, ref }: Target,
    context: CallContext,
    listener: (notice: Notice) => void,
  ): Awaitable<() => void> {
    return this.#firstOf(name, context, (member, uri) =>
      member.provider.watch?.({ part, name: uri, ref }, context, (notice) => {
        const known = this.#toPublicNotice(notice, member, context);
        if (known !== undefined) listener(known);
      }),
    );
  }

  /** Waits for the members that may turn out to have a name, until one has it or none does. */
  lookUpLate<T>(
    part: ListPart,
    name: string,
    context: CallContext,
    lookUp: () => T | undefined,
  ): Awaitable<T | undefined> {
    if (this.#waited.has(context) || !this.#viewFor(context).allows(name)) return undefined;
    const waits = this.#catalog.members.flatMap((member) => {
      const wait = member.names.mayOwn(name) ? member.untilListed(context, part) : undefined;
      if (wait !== undefined && !member.isListed) this.#options.onWaiting?.([member.name]);
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
      if (late === undefined) this.#waited.add(context);
      return late;
    });
  }

  /** Uses the owner of a tool or a prompt, under the name the owner has for it. */
  #atOwner<T>(
    target: Target & { readonly round?: Round | undefined },
    context: CallContext,
    work: (member: Member, own: TargetAt, owner: Owner) => Awaitable<T>,
    askFirst?: (member: Member) => Promise<T | undefined> | undefined,
  ): Awaitable<T> {
    const { name, ref, round } = target;
    const part = target.part === "prompts" ? "prompts" : "tools";
    const task = ref === undefined ? undefined : parseRef(ref);
    if (ref !== undefined && task === undefined) throw new NotFoundError("task", ref);
    const lookUp = (): Owner | undefined => {
      const view = this.#viewFor(context);
      const owner = part === "tools" ? view.toolClaims.get(name) : view.promptClaims.get(name);
      // Two members may both have a task of this ref, and a name may have changed its owner.
      return task === undefined || task.member === owner?.server ? owner : undefined;
    };
    const go = (owner: Owner | undefined): Awaitable<T> | undefined => {
      const member = this.#memberOf(owner);
      if (owner === undefined || member === undefined) return undefined;
      const { allows } = this.#viewFor(context);
      if (allows.lackingFor !== undefined) assertScopes(allows, name, owner.ownName);
      // The string of the catalog, not that of the request: it is the same for all calls, and keeps no request in memory.
      context.observation?.found(owner.server, owner.ownName, owner.key === name ? owner.key : name);
      const result = work(member, { name: owner.ownName, ref: task?.ref }, owner);
      return owner.ownName === name ? result : underPublicName(result, thingOf(target), owner.ownName, name);
    };
    const done = go(lookUp());
    if (done !== undefined) return done;
    return andThen(
      round === undefined ? this.lookUpLate(part, name, context, lookUp) : undefined,
      (owner) => go(owner) ?? this.#askLikely(target, context, () => go(lookUp()), askFirst),
    );
  }

  /**
   * A member that lists nothing until the caller has done something may have the name: it
   * asks the caller for that.
   */
  #askLikely<T>(
    target: Target & { readonly round?: Round | undefined },
    context: CallContext,
    retry: () => Awaitable<T> | undefined,
    askFirst: ((member: Member) => Promise<T | undefined> | undefined) | undefined,
  ): Awaitable<T> {
    const { name, round } = target;
    const isAllowed = this.#viewFor(context).allows(name);
    const possible = isAllowed ? this.#catalog.members.filter(({ names }) => names.mayOwn(name)) : [];
    const [asked] = possible.flatMap((member) => askFirst?.(member) ?? []);
    return andThen(asked, (outcome) => {
      const answered = outcome ?? (asked === undefined ? undefined : retry());
      if (answered !== undefined) return answered;
      const [unlisted] = possible.flatMap((member) => member.unavailable?.() ?? []);
      throw unlisted ?? this.#toMissing(thingOf(target), name, round);
    });
  }

  /**
   * The answer of a URI's owner. A URI that is in no list is tried with the members
   * that may know it, in turn.
   */
  async #firstOf<T>(
    uri: string,
    context: CallContext,
    work: (member: Member, ownUri: string, owner: ResourceOwner | undefined) => Awaitable<T> | undefined,
    round?: Round,
  ): Promise<T> {
    const view = await this.#viewThatKnows(uri, context);
    const found: ResourceOwner | undefined = view.templateOwner(uri) ?? view.resourceOwner(uri);
    const owner = this.#memberOf(found);
    const { ownUri = uri } = found ?? {};
    const likely = new Set(view.likelyOwners(uri));
    const asked = owner === undefined ? likely : [owner.name];
    assertUriScopes(view.allows, asked, [uri, ownUri], this.#catalog.separator);
    const others = this.#catalog.members.filter(({ name }) => this.#options.triesAll || likely.has(name));
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
    throw failure ?? (isNamed ? notFound : undefined) ?? this.#toMissing("resource", uri, round);
  }

  /** A URI that is not known is a reason to wait for members that have yet to be listed. */
  #viewThatKnows(uri: string, context: CallContext): Awaitable<View> {
    const view = this.#viewFor(context);
    if ((view.templateOwner(uri) ?? view.resourceOwner(uri)) !== undefined) return view;
    const waits = (["resources", "templates"] as const).flatMap(
      (part) => this.#lists.untilListed(context, part) ?? [],
    );
    return waits.length === 0
      ? this.#viewFor(context)
      : Promise.all(waits).then(() => this.#viewFor(context));
  }

  /** What happened to a resource, as callers know it; undefined where this caller may not be told. */
  #toPublicNotice(notice: Notice, member: Member, context: CallContext): Notice | undefined {
    if (notice.kind !== "updated") return undefined;
    const uris = this.#catalog.snapshotFor(context).uris.get(member.name);
    const uri = uris?.toPublic(notice.uri) ?? notice.uri;
    if (!this.#viewFor(context).mayHear(member.name, uri)) return undefined;
    return uri === notice.uri ? notice : { ...notice, uri };
  }

  #memberOf(owner: Owner | undefined): Member | undefined {
    return owner && this.#catalog.memberNamed(owner.server);
  }

  #toMissing(what: Missing, id: string, round: Round | undefined): Error {
    return this.#options.toMissing?.(what, id, round) ?? new NotFoundError(what, id);
  }
}

/** What an owner calls the target of an operation. */
type TargetAt = Pick<Target, "name" | "ref">;

/** A member that no longer has the tool of a task no longer has the task. */
function asTask<T>(ref: string | undefined, work: () => Awaitable<T>): Awaitable<T> {
  if (ref === undefined) return work();
  return recover(work, (error) => {
    throw error instanceof NotFoundError ? new NotFoundError("task", ref) : error;
  });
}

/** A member's outcome with the URIs that callers know, and with a task that leads back to the member. */
function toPublic(
  answer: Awaitable<Outcome>,
  method: string,
  member: Member,
  owner: Owner | undefined,
  context: CallContext,
): Awaitable<Outcome> {
  const uris = owner?.uris;
  // Only callers that declared an extension get tasks.
  if (uris === undefined && context.capabilities.extensions === undefined) return answer;
  return andThen(answer, (outcome) => {
    const renamed = uris === undefined ? outcome : renameOutcome(outcome, method, uris.toPublic);
    return withMember(renamed, member.name);
  });
}

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

interface ComposedGroupsOptions {
  readonly catalog: Catalog;
  readonly viewFor: (caller: CallerInfo) => View;
}

/** The groups of each member that has some. */
type Sources = readonly { readonly member: Member; readonly listing: Listing<Group> }[];

/**
 * Lists the groups of all members. A name begins with that of its member, so no server can take
 * the place of another's group; the contents of a group have the names that callers know, without
 * those that they may not use.
 */
function composeGroups({ catalog, viewFor }: ComposedGroupsOptions): {
  list(context: CallContext): Promise<Listing<Group>>;
} {
  const listed = new WeakMap<View, { readonly sources: Sources; readonly listing: Listing<Group> }>();
  const sourcesFor = async (context: CallContext): Promise<Sources> => {
    const members = catalog.members.filter(({ provider }) => provider.offers(context).serves("groups/list"));
    const listings = await Promise.all(
      // A member that cannot be listed has none.
      members
        .map(async (member) => member.provider.list("groups", context))
        .map((list) => list.catch(() => undefined)),
    );
    return members.flatMap((member, index) => {
      const listing = listings[index];
      return listing === undefined || listing.items.length === 0 ? [] : [{ member, listing }];
    });
  };
  return {
    list: async (context) => {
      const sources = await sourcesFor(context);
      const view = viewFor(context);
      const known = listed.get(view);
      if (known !== undefined && isSame(known.sources, sources)) return known.listing;
      const groups = sources.flatMap(({ member, listing }) => {
        const rename = renamesOf(member, view, catalog, context);
        return listing.items.map((group) => rename(group));
      });
      // Of two groups that would have one name, the first is kept: members come in the order of the config.
      const listing = new Listing(
        Object.freeze(
          [...new Map(groups.toReversed().map((group) => [group.name, group])).values()].toReversed(),
        ),
      );
      listed.set(view, { sources, listing });
      return listing;
    },
  };
}

function isSame(some: Sources, others: Sources): boolean {
  return (
    some.length === others.length && some.every(({ listing }, index) => listing === others[index]?.listing)
  );
}

/** Gives a member's group the names that callers know. */
function renamesOf(
  member: Member,
  view: View,
  catalog: Catalog,
  context: CallContext,
): (group: Group) => Group {
  const tools = ownNames(view.toolClaims, member.name);
  const prompts = ownNames(view.promptClaims, member.name);
  const uris = catalog.snapshotFor(context).uris.get(member.name);
  const renameAll = (
    names: readonly string[] | undefined,
    to: (name: string) => string | undefined,
  ): readonly string[] => (names ?? []).flatMap((name) => to(name) ?? []);
  return (group) => {
    const { contents, name } = group;
    const renamed: GroupContents | undefined = contents && {
      tools: renameAll(contents.tools, (own) => tools.get(own)),
      prompts: renameAll(contents.prompts, (own) => prompts.get(own)),
      resources: renameAll(contents.resources, (own) => uris?.toPublic(own) ?? own),
      groups: renameAll(contents.groups, (own) => toGroupName(member.name, own)),
    };
    return {
      ...group,
      name: toGroupName(member.name, name),
      ...(renamed === undefined ? {} : { contents: renamed }),
    };
  };
}

/** The public names of a member's things, by its own. */
function ownNames<T>(claims: ReadonlyMap<string, Claim<T>>, member: string): ReadonlyMap<string, string> {
  return new Map(
    [...claims.values()].flatMap(({ server, ownName, key }) =>
      server === member ? [[ownName, key] as const] : [],
    ),
  );
}
