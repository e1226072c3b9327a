import type { DisabledServer } from "../config/config.ts";
import type { Source } from "./catalog.ts";

/** The member of a list's `_meta` that says which servers are missing from it. */
export const serversKey = "junctor/servers";

/**
 * What a list has to say about servers that are not up: how each is, whether its last list is part of this one, and whether
 * the server confirmed that list since it was started or the gateway only remembers it.
 * What a list has to say about servers that are not up: how each is, and whether its last list is part of this one. Callers
 * are not told which variables a disabled server needs: those are the affair of the person who runs the gateway.
 */
export function missingServers(
  sources: readonly Source[],
  disabled: readonly DisabledServer[] = [],
): { readonly [serversKey]: { readonly [server: string]: object } } | undefined {
  const missing = sources.flatMap((source) => {
    const { config, health } = source;
    const listed = source.listedFor("");
    if (health.kind === "up" && listed.problems.length === 0 && listed.isConfirmed) return [];
    const reason = health.kind === "down" ? health.reason : listed.problems.join("; ");
    const { tools, prompts, resources, templates } = listed;
    const isListed = [tools, prompts, resources, templates].some(({ length }) => length > 0);
    const status = health.kind !== "up" ? health.kind : listed.problems.length > 0 ? "incomplete" : "listing";
    const facts = { status, ...(reason === "" ? {} : { reason }), isListed };
    const isRemembered = isListed && !listed.isConfirmed;
    return [[config.name, isRemembered ? { ...facts, isConfirmed: false } : facts] as const];
  });
  const off = { status: "disabled", reason: "a variable it needs is not set", isListed: false };
  const all: readonly (readonly [string, object])[] = [
    ...missing,
    ...disabled.map(({ name }) => [name, off] as const),
  ];
  return all.length === 0 ? undefined : { [serversKey]: Object.fromEntries(all) };
}
