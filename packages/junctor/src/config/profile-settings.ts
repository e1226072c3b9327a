import { readResultName, surfaceNames } from "../context/index.ts";
import { readCaps } from "./cap-settings.ts";
import { type ConfigValue, joinPath, refuse, warn } from "./config-value.ts";
import type { GatewayConfig } from "./config.ts";
import type { ProfileConfig } from "./profile-config.ts";
import {
  readAllowed,
  readChoice,
  readFitting,
  readNumber,
  readObject,
  readObjectOrEmpty,
  readText,
  readTexts,
  refuseUnknownKeys,
} from "./value-readers.ts";

const example = '{ "allow": ["github__*"] }';

/** It is part of a URL, and of a command line. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

const usualBudget = 10_000;

/** Claude Code shows a model no more than this of a server's instructions. */
const usualInstructions = 2048;

/** The profiles of a gateway, from `junctor.profiles`. */
export function readProfiles(given: ConfigValue): readonly ProfileConfig[] {
  const object = readObject(given, `"profiles": { "review": ${example} }`);
  return (object?.entries() ?? []).map(([name, at]) => {
    if (!namePattern.test(name))
      refuse(
        at,
        "cannot be the name of a profile: write 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first",
      );
    return { name, ...readProfile(at) };
  });
}

function readProfile(given: ConfigValue): Omit<ProfileConfig, "name"> {
  const object = readObjectOrEmpty(given, example);
  refuseUnknownKeys(object, [
    "allow",
    "deny",
    "instructions",
    "rename",
    "pin",
    "tools",
    "budget",
    "maxResultTokens",
  ]);
  return {
    allow: readAllowed(object.get("allow"), '"allow": ["github__*"]'),
    deny: readTexts(object.get("deny"), '"deny": ["github__delete_*"]'),
    instructions: readInstructions(object.get("instructions")),
    rename: readRename(object.get("rename")),
    pin: readTexts(object.get("pin"), '"pin": ["github__search_code"]'),
    tools: readChoice(object.get("tools"), ["all", "search", "auto"]) ?? "all",
    budget:
      readNumber(object.get("budget"), { min: 0, max: 10_000_000, example: usualBudget }) ?? usualBudget,
    maxResultTokens: readCaps(object.get("maxResultTokens")),
  };
}

/** New names of tools. Two tools cannot have one, and a search has names of its own. */
function readRename(given: ConfigValue): ProfileConfig["rename"] {
  const object = readObject(given, '"rename": { "github__create_issue": "new_issue" }');
  const owners = new Map<string, string>();
  const entries = (object?.entries() ?? []).flatMap(([old, at]) => {
    const problem = "cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -";
    const name = readFitting(at, '"new_issue"', /^[A-Za-z0-9_-]{1,64}$/, problem);
    if (name === undefined) return [];
    const owner = owners.get(name);
    if (owner !== undefined) refuse(at, `is the new name of ${owner} too: write another`);
    if (ownNames.includes(name)) refuse(at, "is the name of a tool of the gateway's own: write another");
    owners.set(name, old);
    return [[old, name] as const];
  });
  return Object.fromEntries(entries);
}

const ownNames: readonly string[] = [...Object.values(surfaceNames), readResultName];

function readInstructions(given: ConfigValue): string | undefined {
  const text = readText(given, '"Use the tools of github for everything about code."');
  if (text !== undefined && text.length > usualInstructions)
    warn(
      given,
      `has ${text.length} characters: some clients show the model the first ${usualInstructions} only`,
    );
  return text;
}

/** Reports profiles that contradict the rest of a config. */
export function checkProfiles(
  given: ConfigValue,
  { profiles, keys, rules }: Pick<GatewayConfig, "profiles" | "keys" | "rules">,
  servers: readonly string[],
): void {
  const { path, findings } = given;
  const names = new Set(profiles.map(({ name }) => name));
  for (const { name } of profiles)
    if (servers.includes(name))
      findings.issue(
        joinPath(path, name),
        "is the name of a server too: choose another, as both would be served at one path",
      );
  const bound = [
    ...keys.map((key) => [joinPath("junctor.keys", key.name), key] as const),
    ...rules.map((rule, index) => [`junctor.rules[${index}]`, rule] as const),
  ];
  for (const [at, { profiles: of = [] }] of bound)
    for (const name of of)
      if (!names.has(name))
        findings.issue(
          `${at}.profiles`,
          `names no profile: there is no ${JSON.stringify(name)} in "profiles"`,
        );
}
