import { type ConfigValue, joinPath, refuse, warn } from "./config-value.ts";
import type { GatewayConfig, ProfileConfig } from "./config.ts";
import {
  readAllowed,
  readObject,
  readObjectOrEmpty,
  readText,
  readTexts,
  refuseUnknownKeys,
} from "./value-readers.ts";

const example = '{ "allow": ["github__*"] }';

/** It is part of a URL, and of a command line. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

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
  refuseUnknownKeys(object, ["allow", "deny", "instructions"]);
  return {
    allow: readAllowed(object.get("allow"), '"allow": ["github__*"]'),
    deny: readTexts(object.get("deny"), '"deny": ["github__delete_*"]'),
    instructions: readInstructions(object.get("instructions")),
  };
}

function readInstructions(given: ConfigValue): string | undefined {
  const text = readText(given, '"Use the tools of github for everything about code."');
  if (text !== undefined && text.length > usualInstructions)
    warn(
      given,
      `has ${text.length} characters: some clients show the model the first ${usualInstructions} only`,
    );
  return text;
}

/** What is wrong with profiles beside the rest of a config. */
export function checkProfiles(
  given: ConfigValue,
  { profiles, keys }: Pick<GatewayConfig, "profiles" | "keys">,
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
  for (const key of keys)
    for (const name of key.profiles ?? [])
      if (!names.has(name))
        findings.issue(
          `${joinPath("junctor.keys", key.name)}.profiles`,
          `names no profile: there is no ${JSON.stringify(name)} in "profiles"`,
        );
}
