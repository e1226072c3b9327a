import { createGlob } from "@junctor/server/internal";

/** About how many tokens a result may be: of all tools, by glob on their names (the first that fits), or of each by its name. */
export type ResultCaps =
  | number
  | { readonly [glob: string]: number }
  | ((tool: string) => number | undefined);

/** The cap of a tool by its name; undefined for a tool whose results may be of any length. */
export type CapOf = (tool: string) => number | undefined;

export function toCapOf(caps: ResultCaps): CapOf {
  if (typeof caps === "function") return caps;
  if (typeof caps === "number") return () => caps;
  const globs = Object.entries(caps).map(([glob, cap]) => [createGlob(glob), cap] as const);
  return (tool) => globs.find(([fits]) => fits(tool))?.[1];
}
