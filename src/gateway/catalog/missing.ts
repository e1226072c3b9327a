import type { ListFault } from "../../tools/fit/list-fault.ts";
import type { DisabledServer } from "../config/config.ts";
import type { Source } from "./catalog.ts";
import { tellFaults } from "./faults.ts";
import type { Claim } from "./merge.ts";

/** The member of a list's `_meta` that says what is missing from it, or was changed in it, and of which server. */
export const serversKey = "junctor/servers";

/**
 * What a list has to say about servers that are not up: how each is, whether its last list is part of this one, and whether
 * the server confirmed that list since it was started or the gateway only remembers it; and about those of which something
 * was mended or left out. Callers are not told which variables a disabled server needs: those are the affair of the person
 * who runs the gateway.
 */
export function missingServers(
  sources: readonly Source[],
  disabled: readonly DisabledServer[] = [],
  faults: readonly Claim<ListFault>[] = [],
): { readonly [serversKey]: { readonly [server: string]: object } } | undefined {
  const missing = sources.flatMap((source): readonly (readonly [string, object])[] => {
    const { config, health } = source;
    const told = tellFaults(faults.filter(({ server }) => server === config.name).map(({ item }) => item));
    const listed = source.listedFor("");
    if (health.kind === "up" && listed.problems.length === 0 && listed.isConfirmed)
      return Object.keys(told).length === 0 ? [] : [[config.name, { status: "up", ...told }]];
    const reason = health.kind === "down" ? health.reason : listed.problems.join("; ");
    const { tools, prompts, resources, templates } = listed;
    const isListed = [tools, prompts, resources, templates].some(({ length }) => length > 0);
    const status = health.kind !== "up" ? health.kind : listed.problems.length > 0 ? "incomplete" : "listing";
    const facts = { status, ...(reason === "" ? {} : { reason }), isListed, ...told };
    const isRemembered = isListed && !listed.isConfirmed;
    return [[config.name, isRemembered ? { ...facts, isConfirmed: false } : facts]];
  });
  const off = { status: "disabled", reason: "a variable it needs is not set", isListed: false };
  const all: readonly (readonly [string, object])[] = [
    ...missing,
    ...disabled.map(({ name }) => [name, off] as const),
  ];
  return all.length === 0 ? undefined : { [serversKey]: Object.fromEntries(all) };
}
