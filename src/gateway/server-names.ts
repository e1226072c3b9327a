import { createGlobs } from "../middleware/glob.ts";
import type { MemberNames } from "../tools/compose/member.ts";
import { type Naming, prefixOf, qualify, unqualified } from "../tools/compose/namespace.ts";
import type { ServerConfig, ToolRule } from "./config/config.ts";

/** The part of a server's config that says how its things are named. */
type NamesConfig = Pick<ServerConfig, "prefix" | "tools">;

/** The name callers know a tool or prompt by that no rule of the config renames. */
export function toPublicName(
  { prefix }: Pick<NamesConfig, "prefix">,
  ownName: string,
  naming: Naming,
): string {
  return prefix === false ? unqualified(ownName, naming) : qualify(prefix, ownName, naming);
}

/** The name callers know a server's tool by, or would know it by if no rule took it away. */
export function toToolName(config: NamesConfig, ownName: string, naming: Naming): string {
  return ruleOf(config, ownName)?.name ?? toPublicName(config, ownName, naming);
}

/** Whether a name itself says that it is a server's: by the prefix, or because a rule of the config gives it to a tool. */
export function isNamedFor({ prefix, tools }: NamesConfig, name: string, naming: Naming): boolean {
  if (prefix !== false && name.startsWith(prefixOf(prefix, naming))) return true;
  return Object.values(tools).some((rule) => rule.name === name);
}

/** The names of a server's things, as its config says. */
export function createServerNames(config: ServerConfig, naming: Naming): MemberNames {
  const { allow, deny, onlyTools, withoutTools } = config;
  const fits = createGlobs(allow.length === 0 ? undefined : allow, deny);
  const isAllowed = (name: string): boolean =>
    fits(name) && onlyTools?.includes(name) !== false && !withoutTools.includes(name);
  return {
    tool: (ownName) => {
      const rule = ruleOf(config, ownName);
      if (rule?.hide === true || !isAllowed(ownName)) return undefined;
      return { name: toToolName(config, ownName, naming), description: rule?.description };
    },
    prompt: (ownName) => toPublicName(config, ownName, naming),
    mayOwn: (name) => config.prefix === false || isNamedFor(config, name, naming),
  };
}

function ruleOf({ tools }: Pick<NamesConfig, "tools">, ownName: string): ToolRule | undefined {
  return Object.hasOwn(tools, ownName) ? tools[ownName] : undefined;
}
