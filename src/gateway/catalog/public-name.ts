import { type Naming, prefixOf, qualify, unqualified } from "../../tools/namespace.ts";
import type { ServerConfig } from "../config/config.ts";

/** What callers know a tool or prompt by that no rule of the config renames. */
export function toPublicName({ prefix }: ServerConfig, ownName: string, naming: Naming): string {
  return prefix === false ? unqualified(ownName, naming) : qualify(prefix, ownName, naming);
}

/** What the config says of a server's names. */
export type NamesConfig = Pick<ServerConfig, "prefix" | "tools">;

/** Whether a server may have a tool that callers know by this name, as far as the config alone says. */
export function mayOwn(config: NamesConfig, name: string, naming: Naming): boolean {
  return config.prefix === false || isNamedFor(config, name, naming);
}

/** Whether a name itself says that it is a server's: by the prefix, or because a rule of the config gives it to a tool. */
export function isNamedFor({ prefix, tools }: NamesConfig, name: string, naming: Naming): boolean {
  if (prefix !== false && name.startsWith(prefixOf(prefix, naming))) return true;
  return Object.values(tools).some((rule) => rule.name === name);
}
