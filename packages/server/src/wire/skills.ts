import { RawJson } from "@junctor/core/json";
import { projectListed, type Skill, type CacheHints, type Resource, definitionOf } from "@junctor/core/mcp";
import type { SkillProvider } from "@junctor/core/provider";
import type { ServeList } from "./pages.ts";
import { type Finish, type Methods, stringParam } from "./served.ts";

/** A skill may list 512 files, which is 80 KB: so many of them are a page. */
const maxPage = 100;

interface SkillMethodOptions {
  readonly finish: Finish;
  readonly list: ServeList;
  /** How long an entry may be kept. */
  readonly hints: () => CacheHints;
}

/** The methods of skills (SEP-2640), the same in both eras. */
export function skillMethods(skills: SkillProvider, { finish, list, hints }: SkillMethodOptions): Methods {
  const readDirectory = skills.readDirectory?.bind(skills);
  return {
    "skills/list": list(
      { member: "skills", keyOf: ({ uri }: Skill) => uri, project: (skill) => skill, maxPage },
      (context) => skills.listSkills(context),
    ),
    "skills/get": async ({ params, wire, context }) => {
      const skill = await skills.getSkill(stringParam(params, "uri"), context);
      return finish(RawJson.fromText(`{"skill":${definitionOf(skill).text}}`), wire.era, hints());
    },
    ...(readDirectory === undefined
      ? {}
      : {
          "resources/directory/read": list(
            { member: "resources", keyOf: ({ uri }: Resource) => uri, project: projectListed },
            (context, params) => readDirectory(stringParam(params, "uri"), context),
          ),
        }),
  };
}
