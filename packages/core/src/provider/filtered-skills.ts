import type { Awaitable } from "../async/index.ts";
import { NotFoundError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import type { Skill, Resource } from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import { applyFilters, type ListFilter } from "./filtered-lists.ts";
import type { ServeTask } from "./guarded-tasks.ts";
import type { SkillProvider, ToolCall, ToolOutcome } from "./old.ts";

/** Makes a call through all hooks. */
type RunSkill = (call: ToolCall, context: CallContext, serve: ServeTask) => Awaitable<ToolOutcome>;

const nothing = RawJson.fromText("{}");

/** Skills with hooks around them: the request for an entry or a folder is a call of the kind `resource`, under its URI. */
export function guardSkills(skills: SkillProvider, run: RunSkill): SkillProvider {
  const make = async <T>(
    uri: string,
    context: CallContext,
    read: (uri: string, context: CallContext) => Promise<T>,
  ): Promise<T> => {
    let found: { readonly value: T; readonly result: RawJson } | undefined;
    const call: ToolCall = { kind: "resource", name: uri, arguments: nothing };
    const outcome = await run(call, context, async ({ name }, mapped) => {
      const value = await read(name, mapped);
      found = { value, result: RawJson.fromValue(value) };
      return { kind: "complete", result: found.result };
    });
    if (outcome.kind !== "complete") throw new TypeError("A skill cannot ask its caller anything");
    // Where no hook changed it, it keeps the text that its server wrote.
    return outcome.result === found?.result ? found.value : (outcome.result.value as T);
  };
  const readDirectory = skills.readDirectory?.bind(skills);
  return {
    listSkills: (context) => skills.listSkills(context),
    getSkill: (uri, context) => make(uri, context, (own, mapped) => skills.getSkill(own, mapped)),
    ...(readDirectory === undefined
      ? {}
      : {
          readDirectory: (uri: string, context: CallContext) => make(uri, context, readDirectory),
        }),
  };
}

/**
 * Skills as filters of resources leave them: each file of a skill is a resource, and a skill of which a filter takes or changes one is
 * left out. What a filter changes would not fit the digests.
 */
export function filterSkills(skills: SkillProvider, filters: readonly ListFilter[]): SkillProvider {
  if (filters.length === 0) return skills;
  const filesOf = rememberBy<Skill, readonly Resource[]>(toFiles);
  const allFilesOf = rememberBy<readonly Skill[], readonly Resource[]>((list) =>
    Object.freeze(list.flatMap(filesOf)),
  );
  const filter = async (list: readonly Skill[], context: CallContext): Promise<readonly Skill[]> => {
    const left = new Set<unknown>(await applyFilters(filters, allFilesOf(list), context, "resources"));
    return list.filter((skill) => filesOf(skill).every((file) => left.has(file)));
  };
  const readDirectory = skills.readDirectory?.bind(skills);
  return {
    listSkills: async (context) => filter(await skills.listSkills(context), context),
    getSkill: async (uri, context) => {
      const [skill] = await filter([await skills.getSkill(uri, context)], context);
      if (skill === undefined) throw new NotFoundError("skill", uri);
      return skill;
    },
    ...(readDirectory === undefined
      ? {}
      : {
          readDirectory: async (uri: string, context: CallContext) => {
            const children = await readDirectory(uri, context);
            return (await applyFilters(filters, children, context, "resources")) as readonly Resource[];
          },
        }),
  };
}

/** The files of a skill as resources. That of its `SKILL.md` says what the list says of the skill. */
function toFiles({ uri, frontmatter, resources }: Skill): readonly Resource[] {
  const { name } = frontmatter;
  const manifest = { uri, name, description: JSON.stringify(frontmatter), mimeType: "text/markdown" };
  const others = resources === "dynamic" ? [] : resources.filter((file) => file.uri !== uri);
  return [
    manifest,
    ...others.map((file) => ({ uri: file.uri, name: file.uri.slice(file.uri.lastIndexOf("/") + 1) })),
  ];
}

/** The same result for the same object, so that filters which remember lists know it again. */
function rememberBy<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = make(key)));
    return value;
  };
}
