import { createGlob } from "@junctor/server/internal";
import type { ConfigIssue, GatewayConfig } from "../config/index.ts";
import type { CallerRules } from "./rules.ts";

/** Rules that can never apply, whichever caller comes: most are mistakes, and a `deny` that never applies denies nothing. */
export function findDeadRules(config: GatewayConfig, rules: CallerRules | undefined): readonly ConfigIssue[] {
  const always = (rules?.all ?? []).filter(
    ({ kind, when, unless, profiles }) =>
      kind === "deny" && when === undefined && unless === undefined && profiles === undefined,
  );
  const denied = always.flatMap(({ names }) => names);
  return (rules?.all ?? []).flatMap(({ kind, names, scopes, path, when, unless }) => {
    const tell = (message: string): readonly ConfigIssue[] => [{ path: `junctor.${path}`, message }];
    if (when?.isAboutCaller === false && when.holds(undefined) !== true)
      return tell("never applies: its condition `when` is false for every caller");
    if (unless?.isAboutCaller === false && unless.holds(undefined) === true)
      return tell("never applies: its condition `unless` is true for every caller");
    const unknown = (when?.members ?? []).find((member) => !canHave(config, member));
    if (unknown !== undefined)
      return tell(
        `never applies: no caller of this config has ${unknown}; they come from tokens, or from "keys"`,
      );
    if (kind === "scope" && !canHave(config, "scopes"))
      return tell(`can never be met: no caller of this config has the scope ${scopes.join(" ")}`);
    if (kind !== "allow" || !names.every((name) => denied.some((glob) => covers(glob, name)))) return [];
    return tell("never applies: other rules deny everything that it allows");
  });
}

/** Whether some caller may have groups or scopes. */
function canHave({ keys, issuers, http }: GatewayConfig, member: string): boolean {
  if (member !== "groups" && member !== "scopes") return true;
  if (issuers.length > 0 || (member === "groups" && http.tls?.clientCa !== undefined)) return true;
  return keys.some((key) => (key[member]?.length ?? 0) > 0);
}

/** A glob without `?` fits the text of each narrower glob. */
function covers(glob: string, narrower: string): boolean {
  return glob === narrower || (!glob.includes("?") && createGlob(glob)(narrower));
}
