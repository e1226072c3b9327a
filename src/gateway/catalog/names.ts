import { createGlobs } from "../../middleware/glob.ts";
import { type Naming, qualify, unqualified } from "../../tools/namespace.ts";
import type { ServerConfig, ToolRule } from "../config/config.ts";

/** The name callers know a tool or prompt by. */
export function toCatalogName({ prefix }: ServerConfig, ownName: string, naming: Naming): string {
  return prefix === false ? unqualified(ownName, naming) : qualify(prefix, ownName, naming);
}

/** Finds the name callers know a server's tool by, and its rule in the config; undefined for one the config takes away. */
export function createToolNames(
  config: ServerConfig,
  naming: Naming,
): (ownName: string) => { readonly key: string; readonly rule: ToolRule | undefined } | undefined {
  const isAllowed = createGlobs(config.allow.length === 0 ? undefined : config.allow, config.deny);
  return (ownName) => {
    const rule = Object.hasOwn(config.tools, ownName) ? config.tools[ownName] : undefined;
    if (rule?.hide === true || !isAllowed(ownName)) return undefined;
    return { key: rule?.name ?? toCatalogName(config, ownName, naming), rule };
  };
}
