import { type Naming, prefixOf } from "@junctor/core/compose";
import type { Caller } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import { createGlob, createGlobs } from "@junctor/server/internal";
import { createServerNames, isNamedFor } from "../catalog/index.ts";
import { isOpen, type GatewayConfig, type KeyConfig, type ServerConfig } from "../config/index.ts";
import { toNaming } from "./caller-policy.ts";
import type { CallerRules, CompiledRule } from "./rules.ts";

/** Why a caller may or may not use something. */
interface Explanation {
  readonly decision: "allow" | "deny" | "step_up";
  /** The setting that decides, such as `junctor.rules[2]`; undefined when the config says nothing about it. */
  readonly setting: string | undefined;
  /** In words, after the names of caller and thing. */
  readonly reason: string;
  /** For `step_up`: all scopes that are needed. */
  readonly scopes: readonly string[];
}

/** Finds the setting of a config that decides whether a caller may use a name, in the order in which the gateway looks. */
export function explainAccess(
  config: GatewayConfig,
  rules: CallerRules | undefined,
  caller: Caller,
  name: string,
): Explanation {
  const key = config.keys.find((each) => each.name === caller.name);
  if (!isOpen(config) && key === undefined && !isSignedIn(config, caller))
    return denied(
      undefined,
      `no key, issuer or certificate of the config makes a caller of this name${hintAt(config, caller.name)}`,
    );
  const naming = toNaming(config);
  const server = config.servers.find((each) => isNamedFor(each, name, naming));
  const ownName = server === undefined ? undefined : toOwnName(server, name, naming);
  if (server !== undefined && createServerNames(server, naming).tool(ownName ?? name) === undefined)
    return denied(`junctor.servers.${server.name}`, "the settings of its server leave it out");
  const lists: readonly (readonly [path: string, lists: Pick<KeyConfig, "allow" | "deny">])[] = [
    ["junctor", config],
    ...(key === undefined ? [] : [[`junctor.keys.${key.name}`, key] as const]),
  ];
  for (const [path, { allow, deny }] of lists) {
    const glob = deny.find((each) => !createGlobs(undefined, [each])(name, ownName));
    if (glob !== undefined) return denied(`${path}.deny`, `${JSON.stringify(glob)} denies it`);
    if (allow.length > 0 && !allow.some((each) => createGlob(each)(name)))
      return denied(`${path}.allow`, "it allows other names only");
  }
  if (key?.profiles === undefined) return explainByRules(config, rules, caller, name, ownName);
  return explainAtProfiles(config, rules, { caller, profiles: key.profiles, name, ownName });
}

/** What the rules for one place say. */
function explainByRules(
  config: GatewayConfig,
  rules: CallerRules | undefined,
  caller: Caller,
  name: string,
  ownName: string | undefined,
): Explanation {
  const decided = rules?.decide(caller, name, ownName);
  const setting = decided?.rule === undefined ? undefined : `junctor.${decided.rule}`;
  const scopes = decided?.scopes ?? [];
  switch (decided?.kind) {
    case "deny":
      return setting === undefined
        ? denied("junctor.rules", "no rule that applies to this caller allows it")
        : denied(setting, "the rule denies it");
    case "step_up":
      return { decision: "step_up", setting, reason: `its token needs ${scopes.join(" ")}`, scopes };
    default: {
      const asking = rules?.askFor(caller, name, ownName);
      const allowed = setting === undefined ? reasonOf(config) : "the rule allows it";
      return {
        decision: "allow",
        setting: asking === undefined ? setting : `junctor.${asking.path}`,
        reason: asking === undefined ? allowed : `${allowed}, once ${whoAgrees(asking)} to the call`,
        scopes,
      };
    }
  }
}

function whoAgrees({ approval }: Pick<CompiledRule, "approval">): string {
  if (approval?.of === "operator") return "the person who runs the gateway agrees";
  return approval?.of === "both"
    ? "the user of its client and the person who runs the gateway agree"
    : "the user of its client agrees";
}

interface LimitedCaller {
  readonly caller: Caller;
  /** The profiles that its key is limited to. */
  readonly profiles: readonly string[];
  readonly name: string;
  readonly ownName: string | undefined;
}

/** What holds for a key that is limited to some profiles: where it may use the thing, if anywhere. */
function explainAtProfiles(
  config: GatewayConfig,
  rules: CallerRules | undefined,
  { caller, profiles, name, ownName }: LimitedCaller,
): Explanation {
  const setting = `junctor.keys.${caller.name}.profiles`;
  const having = config.profiles.filter(
    (profile) =>
      profiles.includes(profile.name) &&
      createGlobs(profile.allow.length === 0 ? undefined : profile.allow, profile.deny)(name, ownName),
  );
  const [first, ...others] = having.map((profile) => ({
    path: `/mcp/${profile.name}`,
    explained: explainByRules(config, rules?.at(profile.name), caller, name, ownName),
  }));
  if (first === undefined) {
    const paths = profiles.map((profile) => `/mcp/${profile}`).join(" and ");
    return denied(setting, `the key is limited to ${paths}, where this is not`);
  }
  const usable = [first, ...others].filter(({ explained }) => explained.decision !== "deny");
  const { explained } = usable[0] ?? first;
  if (usable.length === 0) return explained;
  const paths = usable.map(({ path }) => path).join(" and ");
  return {
    ...explained,
    setting: explained.setting ?? setting,
    reason: `${explained.reason}, but only at ${paths}`,
  };
}

/** The keys of the config, for a person who misspelt one. */
function hintAt({ keys }: GatewayConfig, caller: string): string {
  const names = keys.map(({ name }) => name);
  if (names.length === 0) return "";
  const some = names.slice(0, 8).join(", ") + (names.length > 8 ? ", …" : "");
  return `; ${suggest(caller, names, `it has keys for ${some}`)}`;
}

/** Why something that no setting mentions is allowed. */
function reasonOf(config: GatewayConfig): string {
  const anybody = isOpen(config) ? ", and without keys and issuers it lets everybody in, under any name" : "";
  return `nothing in the config is against it${anybody}`;
}

/** What a server calls a tool, as far as the config says. */
function toOwnName({ prefix, tools }: ServerConfig, name: string, naming: Naming): string {
  const renamed = Object.entries(tools).find(([, rule]) => rule.name === name);
  if (renamed !== undefined) return renamed[0];
  return prefix === false ? name : name.slice(prefixOf(prefix, naming).length);
}

function isSignedIn({ issuers, http }: GatewayConfig, { name }: Caller): boolean {
  const isOfIssuer = issuers.some((issuer) => name.startsWith(`${issuer.name}:`));
  return isOfIssuer || (http.tls?.clientCa !== undefined && name.startsWith("cert:"));
}

function denied(setting: string | undefined, reason: string): Explanation {
  return { decision: "deny", setting, reason, scopes: [] };
}
