import type { Group, Part } from "./config-value.ts";

/** Which tools of a server another client's file leaves, by their exact names. */
export interface EntryTools {
  /** Undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  readonly withoutTools: readonly string[];
}

export const allTools: EntryTools = { onlyTools: undefined, withoutTools: [] };

/** The names of an allow list, as clients spell it: Gemini CLI, Copilot, Codex and others. */
const allowKeys: readonly string[] = [
  "includeTools",
  "enabledTools",
  "enabled_tools",
  "allowedTools",
  "tools",
];

/** The names of a deny list: Windsurf, Roo Code, Kiro, Gemini CLI, Codex and others. */
const denyKeys: readonly string[] = ["disabledTools", "excludeTools", "disabled_tools", "excludedTools"];

/** Filters that are not understood here. Their owner believes that something is hidden, so they are told. */
const otherFilters: readonly string[] = ["toolFilter", "toolNames", "disabledPrompts", "disabledResources"];

/** The keys that are read here. */
export const entryToolKeys: readonly string[] = [...allowKeys, ...denyKeys, ...otherFilters];

/** Reads the filters of tools in an entry. What cannot be applied is a warning: the file is another program's. */
export function readEntryTools(entry: Group): EntryTools {
  for (const key of otherFilters)
    if (entry.has(key)) entry.reading.warn(entry.get(key).path, `is not applied here: ${instead}`);
  const lists = (keys: readonly string[]): readonly (readonly string[])[] =>
    keys.flatMap((key) => {
      const names = entry.has(key) ? readNames(entry.get(key)) : undefined;
      return names === undefined ? [] : [names];
    });
  const allowed = lists(allowKeys).filter((names) => !names.includes("*"));
  const denied = lists(denyKeys).flat();
  // Of several allow lists, a tool must be in each.
  const [first, ...others] = denied.includes("*") ? [[]] : allowed;
  return {
    onlyTools: first?.filter((name) => others.every((names) => names.includes(name))),
    withoutTools: denied.filter((name) => name !== "*"),
  };
}

const instead = 'write "junctor": { "servers": { "NAME": { "allow": […], "deny": […] } } }';

/** Names of tools. `*` alone means all; a name is never a pattern otherwise. */
function readNames({ value, path, reading }: Part): readonly string[] | undefined {
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
    reading.warn(path, `is not a list of names and is not applied here: ${instead}`);
    return undefined;
  }
  const pattern = value.find((name) => name !== "*" && /[*?]/.test(name));
  if (pattern !== undefined)
    reading.warn(path, `has ${JSON.stringify(pattern)}, which is taken as an exact name: ${instead}`);
  return value;
}
