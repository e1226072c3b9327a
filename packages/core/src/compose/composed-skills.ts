import { createSlices } from "../async/index.ts";
import { NotFoundError, RpcError, rpcCodes, SkillError } from "../errors/index.ts";
import { childrenOf, type Skill, type Resource } from "../mcp/index.ts";
import type { CallContext, CallerInfo, SkillProvider } from "../provider/index.ts";
import type { Catalog } from "./catalog.ts";
import type { UriNames } from "./claims.ts";
import type { Member } from "./member.ts";
import type { View } from "./view.ts";

interface ComposedSkillsOptions {
  readonly catalog: Catalog;
  readonly viewFor: (caller: CallerInfo) => View;
}

/** A member that a URI is of, and its own form of the URI. */
interface SkillPlace {
  readonly member: Member;
  readonly skills: SkillProvider;
  readonly ownUri: string;
}

/**
 * The skills of all members. Each carries the name of its member in its URIs; digests are of the files and stay true. A skill is left out
 * for callers that may not read all of its files.
 */
export function composeSkills({ catalog, viewFor }: ComposedSkillsOptions): Required<SkillProvider> {
  const namesOf = (member: Member, context: CallContext): UriNames | undefined =>
    catalog.snapshotFor(context).uris.get(member.name);

  const toPublic = rememberSkills();

  /** By the names of the member, which are its own. */
  const shown = new WeakMap<UriNames, WeakMap<View, ShownSkills>>();

  /** The skills of one member as a caller may see them, under public URIs. A member that cannot be listed has none. */
  const listOf = async (member: Member, context: CallContext): Promise<readonly Skill[]> => {
    const names = namesOf(member, context);
    const listed = await member.provider.skills?.listSkills(context);
    if (listed === undefined || names === undefined) return [];
    const view = viewFor(context);
    const before = shown.get(names)?.get(view);
    if (before?.listed === listed) return before.skills;
    const skills: Skill[] = [];
    // A server may list very many.
    const pause = createSlices();
    for (const skill of listed) {
      const turn = pause();
      if (turn !== undefined) await turn;
      if (mayRead(skill, member, view)) skills.push(toPublic(skill, names));
    }
    const views = shown.get(names) ?? new WeakMap<View, ShownSkills>();
    if (Object.isFrozen(listed)) shown.set(names, views.set(view, { listed, skills }));
    return skills;
  };

  const join = rememberJoined();

  /** Where a URI leads: to the member that it names, or else to the only one that has skills. */
  const placesOf = (uri: string, context: CallContext): readonly SkillPlace[] => {
    const all = catalog.members.flatMap((member) => {
      const { skills } = member.provider;
      return skills === undefined ? [] : [{ member, skills }];
    });
    const named = all.flatMap(({ member, skills }) => {
      const head = `skill://${encodeURIComponent(member.name)}`;
      const ownUri = uri === head ? "skill:/" : namesOf(member, context)?.toOwn(uri);
      return ownUri === undefined ? [] : [{ member, skills, ownUri }];
    });
    return named.length > 0 ? named : all.map((each) => ({ ...each, ownUri: uri }));
  };

  const readOf = async (
    { member, skills, ownUri }: SkillPlace,
    context: CallContext,
  ): Promise<readonly Resource[] | undefined> => {
    const read = skills.readDirectory?.(ownUri, context);
    const found = await read?.catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      return undefined;
    });
    if (found !== undefined) return found;
    // Of a server that cannot read folders, the lists of its skills say what is in them.
    const listed = (await skills.listSkills(context)).filter((skill) =>
      mayRead(skill, member, viewFor(context)),
    );
    return childrenOf(ownUri, listed.flatMap(toFiles));
  };

  return {
    listSkills: async (context) => {
      return join(await Promise.all(catalog.members.map((member) => listOf(member, context))));
    },
    getSkill: async (uri, context) => {
      const found: Skill[] = [];
      const view = viewFor(context);
      for (const { member, skills, ownUri } of placesOf(uri, context)) {
        if (!view.allowsUri(member.name, ownUri)) continue;
        const names = namesOf(member, context);
        const skill = await skills.getSkill(ownUri, context).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
          return undefined;
        });
        if (skill === undefined || names === undefined || !mayRead(skill, member, view)) continue;
        found.push(toPublic(skill, names));
      }
      const [only, ...others] = found;
      if (only === undefined || others.length > 0) throw new NotFoundError("skill", uri);
      return only;
    },
    readDirectory: async (uri, context) => {
      const view = viewFor(context);
      const found: (readonly Resource[])[] = [];
      for (const place of placesOf(uri, context)) {
        const { member } = place;
        const names = namesOf(member, context);
        const children = names === undefined ? undefined : await readOf(place, context);
        const allowed = children?.filter((child) => view.allowsUri(member.name, child.uri)) ?? [];
        if (names !== undefined && allowed.length > 0)
          found.push(allowed.map((child) => ({ ...child, uri: names.toPublic(child.uri) })));
      }
      const [only, ...others] = found;
      if (only === undefined || others.length > 0) throw new NotFoundError("directory", uri);
      return only;
    },
  };
}

/** The skills of one list as one view shows them. */
interface ShownSkills {
  readonly listed: readonly Skill[];
  readonly skills: readonly Skill[];
}

/** Most lists of skills that are remembered: one for each kind of caller. */
const maxJoined = 64;

/** Lists of several members as one list, the same array for the same lists. Of a URI with another scheme, the first member has it. */
function rememberJoined(): (lists: readonly (readonly Skill[])[]) => readonly Skill[] {
  const known: { readonly lists: readonly (readonly Skill[])[]; readonly skills: readonly Skill[] }[] = [];
  return (lists) => {
    const isSame = (other: readonly (readonly Skill[])[]): boolean =>
      other.length === lists.length && other.every((list, index) => list === lists[index]);
    const before = known.find((each) => isSame(each.lists));
    if (before !== undefined) return before.skills;
    const byUri = new Map<string, Skill>();
    for (const skill of lists.flat()) if (!byUri.has(skill.uri)) byUri.set(skill.uri, skill);
    const skills = Object.freeze([...byUri.values()]);
    known.push({ lists, skills });
    if (known.length > maxJoined) known.shift();
    return skills;
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
    // An entry that is none.
    error instanceof SkillError ||
    (error instanceof RpcError &&
      [rpcCodes["rpc.invalid_params"], rpcCodes["rpc.method_not_found"], -32_002].includes(error.rpcCode))
  );
}
