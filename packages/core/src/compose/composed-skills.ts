import { createSlices } from "../async/index.ts";
import { NotFoundError, RpcError, rpcCodes, SkillError } from "../errors/index.ts";
import { editMembers, RawJson } from "../json/index.ts";
import { type CacheHints, childrenOf, type Skill, type Resource } from "../mcp/index.ts";
import {
  type CallContext,
  type CallerInfo,
  Listing,
  type Operation,
  type Outcome,
  renameOutcome,
} from "../provider/index.ts";
import type { Catalog } from "./catalog.ts";
import type { UriNames } from "./claims.ts";
import type { Member } from "./member.ts";
import type { View } from "./view.ts";

interface ComposedSkillsOptions {
  readonly catalog: Catalog;
  readonly viewFor: (caller: CallerInfo) => View;
}

/** The member that a URI leads to, and its own form of the URI. */
interface SkillPlace {
  readonly member: Member;
  readonly ownUri: string;
}

/**
 * The skills of all members. Each carries the name of its member in its URIs; digests are those of the files,
 * so they stay valid. A skill is left out for callers that may not read all of its files.
 */
export class ComposedSkills {
  readonly #catalog: Catalog;
  readonly #viewFor: ComposedSkillsOptions["viewFor"];
  readonly #toPublic = rememberSkills();
  readonly #join = rememberJoined();
  /** By the URI names of a member, which no other member has. */
  readonly #shown = new WeakMap<UriNames, WeakMap<View, ShownSkills>>();

  constructor({ catalog, viewFor }: ComposedSkillsOptions) {
    this.#catalog = catalog;
    this.#viewFor = viewFor;
  }

  async list(context: CallContext, hints: CacheHints | undefined): Promise<Listing<Skill>> {
    const lists = this.#catalog.members.map((member) => this.#listOf(member, context));
    return this.#join(await Promise.all(lists), hints);
  }

  /** Serves `skills/get` and `resources/directory/read`. */
  call(operation: Operation, context: CallContext): Promise<Outcome> {
    return operation.method === "skills/get"
      ? this.#getSkill(operation, context)
      : this.#readDirectory(operation, context);
  }

  /** The skills of one member as a caller may see them, under public URIs. A member that cannot be listed has none. */
  async #listOf(member: Member, context: CallContext): Promise<readonly Skill[]> {
    const names = this.#namesOf(member, context);
    const { items: listed } = await member.provider.list("skills", context);
    if (listed.length === 0 || names === undefined) return noSkills;
    const view = this.#viewFor(context);
    const before = this.#shown.get(names)?.get(view);
    if (before?.listed === listed) return before.skills;
    const skills: Skill[] = [];
    // A server may list very many.
    const pause = createSlices();
    for (const skill of listed) {
      const turn = pause();
      if (turn !== undefined) await turn;
      if (mayRead(skill, member, view)) skills.push(this.#toPublic(skill, names));
    }
    const views = this.#shown.get(names) ?? new WeakMap<View, ShownSkills>();
    if (Object.isFrozen(listed)) this.#shown.set(names, views.set(view, { listed, skills }));
    return skills;
  }

  async #getSkill(operation: Operation, context: CallContext): Promise<Outcome> {
    const found: Outcome[] = [];
    const view = this.#viewFor(context);
    for (const place of this.#placesOf(operation.name, context)) {
      const { member, ownUri } = place;
      if (!view.allowsUri(member.name, ownUri)) continue;
      const names = this.#namesOf(member, context);
      const result = await askMember(place, operation, context);
      const skill = (result?.value as { readonly skill?: Skill } | undefined)?.skill;
      if (result === undefined || skill === undefined || names === undefined) continue;
      if (mayRead(skill, member, view)) found.push(toResult(result, operation, names));
    }
    const [only, ...others] = found;
    if (only === undefined || others.length > 0) throw new NotFoundError("skill", operation.name);
    return only;
  }

  async #readDirectory(operation: Operation, context: CallContext): Promise<Outcome> {
    const view = this.#viewFor(context);
    const found: Outcome[] = [];
    for (const place of this.#placesOf(operation.name, context)) {
      const { member } = place;
      const names = this.#namesOf(member, context);
      const result = names === undefined ? undefined : await this.#readFolder(place, operation, context);
      if (result === undefined || names === undefined) continue;
      const { resources } = result.value as { readonly resources: readonly Resource[] };
      const allowed = resources.filter((child) => view.allowsUri(member.name, child.uri));
      if (allowed.length === 0) continue;
      const left =
        allowed.length === resources.length
          ? result
          : editMembers(result, { resources: RawJson.fromValue(allowed) });
      found.push(toResult(left, operation, names));
    }
    const [only, ...others] = found;
    if (only === undefined || others.length > 0) throw new NotFoundError("directory", operation.name);
    return only;
  }

  async #readFolder(
    place: SkillPlace,
    operation: Operation,
    context: CallContext,
  ): Promise<RawJson | undefined> {
    const result = await askMember(place, operation, context);
    if (result !== undefined) return result;
    // If a server cannot read folders, its list of skills tells what is in them.
    const { items } = await place.member.provider.list("skills", context);
    const listed = items.filter((skill) => mayRead(skill, place.member, this.#viewFor(context)));
    const resources = childrenOf(place.ownUri, listed.flatMap(toFiles));
    return resources && RawJson.fromValue({ resources });
  }

  /** Where a URI leads: to the member that it names, or else to the only one that has skills. */
  #placesOf(uri: string, context: CallContext): readonly SkillPlace[] {
    const all = this.#catalog.members.filter(({ provider }) =>
      provider.offers(context).serves("skills/list"),
    );
    const named = all.flatMap((member) => {
      const head = `skill://${encodeURIComponent(member.name)}`;
      const ownUri = uri === head ? "skill:/" : this.#namesOf(member, context)?.toOwn(uri);
      return ownUri === undefined ? [] : [{ member, ownUri }];
    });
    return named.length > 0 ? named : all.map((member) => ({ member, ownUri: uri }));
  }

  #namesOf(member: Member, context: CallContext): UriNames | undefined {
    return this.#catalog.snapshotFor(context).uris.get(member.name);
  }
}

/** The result of a member; undefined where it does not have what was asked for. */
async function askMember(
  { member, ownUri }: SkillPlace,
  operation: Operation,
  context: CallContext,
): Promise<RawJson | undefined> {
  if (!member.provider.offers(context).serves(operation.method)) return undefined;
  try {
    const outcome = await member.provider.call({ ...operation, name: ownUri }, context);
    return outcome.kind === "complete" ? outcome.result : undefined;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return undefined;
  }
}

/** A result under the URIs that callers know. */
function toResult(result: RawJson, { method }: Operation, names: UriNames): Outcome {
  return renameOutcome({ kind: "complete", result }, method, names.toPublic);
}

const noSkills: readonly Skill[] = Object.freeze([]);

/** The skills of one list as one view shows them. */
interface ShownSkills {
  readonly listed: readonly Skill[];
  readonly skills: readonly Skill[];
}

/** The most lists of skills that are remembered: one for each kind of caller. */
const maxJoined = 64;

/**
 * Joins the lists of several members; the same lists give the same result. Of skills with one URI, that of
 * the first member is kept.
 */
function rememberJoined(): (
  lists: readonly (readonly Skill[])[],
  hints: CacheHints | undefined,
) => Listing<Skill> {
  const known: { readonly lists: readonly (readonly Skill[])[]; readonly listing: Listing<Skill> }[] = [];
  return (lists, hints) => {
    const isSame = (other: readonly (readonly Skill[])[]): boolean =>
      other.length === lists.length && other.every((list, index) => list === lists[index]);
    const before = known.find((each) => isSame(each.lists) && each.listing.hints?.ttlMs === hints?.ttlMs);
    if (before !== undefined) return before.listing;
    const byUri = new Map<string, Skill>();
    for (const skill of lists.flat()) if (!byUri.has(skill.uri)) byUri.set(skill.uri, skill);
    const listing = new Listing(Object.freeze([...byUri.values()]), { hints });
    known.push({ lists, listing });
    if (known.length > maxJoined) known.shift();
    return listing;
  };
}

function mayRead({ uri, resources }: Skill, { name }: Member, view: View): boolean {
  const files = resources === "dynamic" ? [uri] : resources.map((file) => file.uri);
  return files.every((file) => view.allowsUri(name, file));
}

/** Public forms of skills, made once for each. */
function rememberSkills(): (skill: Skill, names: UriNames) => Skill {
  const known = new WeakMap<Skill, { readonly names: UriNames; readonly skill: Skill }>();
  return (skill, names) => {
    const before = known.get(skill);
    if (before?.names === names) return before.skill;
    const { uri, resources } = skill;
    const renamed = {
      ...skill,
      uri: names.toPublic(uri),
      resources:
        resources === "dynamic"
          ? resources
          : resources.map((file) => ({ ...file, uri: names.toPublic(file.uri) })),
    };
    known.set(skill, { names, skill: renamed });
    return renamed;
  };
}

function toFiles({ uri, frontmatter, resources }: Skill): readonly Resource[] {
  const { name, description } = frontmatter;
  const manifest = { uri, name, description, mimeType: "text/markdown" };
  if (resources === "dynamic") return [manifest];
  return resources.map((file) =>
    file.uri === uri ? manifest : { uri: file.uri, name: file.uri.slice(file.uri.lastIndexOf("/") + 1) },
  );
}

function isNotFound(error: unknown): boolean {
  return (
    error instanceof NotFoundError ||
    // Not a valid skill entry.
    error instanceof SkillError ||
    (error instanceof RpcError &&
      [rpcCodes["rpc.invalid_params"], rpcCodes["rpc.method_not_found"], -32_002].includes(error.rpcCode))
  );
}
