import type { ListFault } from "../../tools/fit/list-fault.ts";
import type { Source } from "./catalog.ts";
import { tellFaults } from "./faults.ts";
import type { Claim } from "./merge.ts";

/** The member of a list's `_meta` that says what is missing from it, or was changed in it, and of which server. */
export const serversKey = "junctor/servers";

/**
 * What a list has to say about servers that are not up: how each is, and whether its last list is part of this one; and
 * about those of which something was mended or left out.
 */
export function missingServers(
  sources: readonly Source[],
  faults: readonly Claim<ListFault>[] = [],
): { readonly [serversKey]: { readonly [server: string]: object } } | undefined {
  const missing = sources.flatMap((source): readonly (readonly [string, object])[] => {
    const { config, health } = source;
    const told = tellFaults(faults.filter(({ server }) => server === config.name).map(({ item }) => item));
    const listed = source.listedFor("");
    if (health.kind === "up" && listed.problems.length === 0)
      return Object.keys(told).length === 0 ? [] : [[config.name, { status: "up", ...told }]];
    const reason = health.kind === "down" ? health.reason : listed.problems.join("; ");
    const { tools, prompts, resources, templates } = listed;
    const isListed = [tools, prompts, resources, templates].some(({ length }) => length > 0);
    const status = health.kind === "up" ? "incomplete" : health.kind;
    return [[config.name, { status, ...(reason === "" ? {} : { reason }), isListed, ...told }]];
  });
  return missing.length === 0 ? undefined : { [serversKey]: Object.fromEntries(missing) };
}
