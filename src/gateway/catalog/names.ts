import { createGlobs } from "../../middleware/glob.ts";
import type { Naming } from "../../tools/namespace.ts";
import type { ServerConfig, ToolRule } from "../config/config.ts";
import { toPublicName } from "./public-name.ts";

/** What callers know a tool by, and its rule in the config. */
export interface NamedTool {
  readonly key: string;
  readonly rule: ToolRule | undefined;
}

/** Finds the name callers know a server's tool by, and its rule in the config; undefined for one the config takes away. */
export function createToolNames(
  config: ServerConfig,
  naming: Naming,
): (ownName: string) => NamedTool | undefined {
  const { onlyTools, withoutTools } = config;
  const fits = createGlobs(config.allow.length === 0 ? undefined : config.allow, config.deny);
  const isAllowed = (name: string): boolean =>
    fits(name) && onlyTools?.includes(name) !== false && !withoutTools.includes(name);
  return (ownName) => {
    const named = nameTool(config, ownName, naming);
    return named.rule?.hide === true || !isAllowed(ownName) ? undefined : named;
  };
}

/** The name callers know a server's tool by, or would know it by if no rule took it away. */
export function nameTool(config: ServerConfig, ownName: string, naming: Naming): NamedTool {
  const rule = Object.hasOwn(config.tools, ownName) ? config.tools[ownName] : undefined;
  return { key: rule?.name ?? toPublicName(config, ownName, naming), rule };
}
