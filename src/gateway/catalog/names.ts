import { createGlobs } from "../../middleware/glob.ts";
import type { Naming } from "../../tools/namespace.ts";
import type { ServerConfig, ToolRule } from "../config/config.ts";
import { toPublicName } from "./public-name.ts";

/** Finds the name callers know a server's tool by, and its rule in the config; undefined for one the config takes away. */
export function createToolNames(
  config: ServerConfig,
  naming: Naming,
): (ownName: string) => { readonly key: string; readonly rule: ToolRule | undefined } | undefined {
  const { onlyTools, withoutTools } = config;
  const fits = createGlobs(config.allow.length === 0 ? undefined : config.allow, config.deny);
  const isAllowed = (name: string): boolean =>
    fits(name) && onlyTools?.includes(name) !== false && !withoutTools.includes(name);
  return (ownName) => {
    const rule = Object.hasOwn(config.tools, ownName) ? config.tools[ownName] : undefined;
    if (rule?.hide === true || !isAllowed(ownName)) return undefined;
    return { key: rule?.name ?? toPublicName(config, ownName, naming), rule };
  };
}
