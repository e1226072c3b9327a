import { createHash } from "node:crypto";
import { defined } from "@junctor/core/options";
import { type ConfigObject, type ConfigValue, refuse } from "./config-value.ts";
import type { KeyConfig } from "./config.ts";
import { readScopes } from "./issuer-settings.ts";
import {
  type KeyHints,
  readAllowed,
  readFitting,
  readObject,
  readTexts,
  refuseUnknownKeys,
} from "./value-readers.ts";

export const keyExample = '{ "env": "NAME_OF_A_VARIABLE" }';
const minLength = 16;
const advice = `a key has at least ${minLength} characters, such as "openssl rand -hex 32" prints`;

// A file is copied, shown and committed; a key in it would not stay one.
const inFile = `a key is not written into a file: write ${keyExample}, or its "sha256"`;
const hints: KeyHints = { key: inFile, value: inFile, token: inFile, secret: inFile, apiKey: inFile };

/** The keys that clients may present, from `junctor.keys`. Keys themselves are not kept. `issuers` are what names of other callers begin with. */
export function readKeys(given: ConfigValue, issuers: readonly string[]): readonly KeyConfig[] {
  const object = readObject(given, `"keys": { "alice": ${keyExample} }`);
  const owners = new Map<string, string>();
  return (object?.entries() ?? []).flatMap(([name, at]) => {
    const key = readKey(name, at);
    if (key === undefined) return [];
    const issuer = issuers.find((each) => name.startsWith(`${each}:`));
    if (issuer !== undefined)
      refuse(at, `could be the name of a caller with a token or a certificate (${issuer}:): choose another`);
    const owner = owners.get(key.sha256);
    if (owner !== undefined) refuse(at, `is the same key as ${owner}: give each its own`);
    owners.set(key.sha256, name);
    return [key];
  });
}

function readKey(name: string, given: ConfigValue): KeyConfig | undefined {
  const object = readObject(given, keyExample);
  if (object === undefined) return undefined;
  const isAllKnown = refuseUnknownKeys(
    object,
    ["env", "sha256", "allow", "deny", "groups", "scopes", "profiles"],
    hints,
  );
  // A key that is missing because it is misspelt has been reported.
  if (!isAllKnown && !object.has("env") && !object.has("sha256")) return undefined;
  const sha256 = readHash(object);
  const allow = readAllowed(object.get("allow"), '"allow": ["github__*"]');
  const deny = readTexts(object.get("deny"), '"deny": ["github__delete_*"]');
  const more = defined({
    profiles: readBound(object.get("profiles")),
    groups: object.has("groups") ? readTexts(object.get("groups"), '"groups": ["eng"]') : undefined,
    scopes: object.has("scopes") ? readScopes(object.get("scopes"), '"scopes": ["mcp:write"]') : undefined,
  });
  return sha256 === undefined ? undefined : { name, sha256, allow, deny, ...more };
}

/** The profiles a key or a rule is bound to. Written empty, it is read by some as none and by others as all. */
export function readBound(given: ConfigValue): readonly string[] | undefined {
  const { value } = given;
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.length === 0)
    return refuse(given, "is empty: leave it out for all profiles, or name some");
  return readTexts(given, '"profiles": ["review"]');
}

/** The hash of a key that is named by a variable, or written as its hash. */
export function readHash(object: ConfigObject): string | undefined {
  const hasHash = object.has("sha256");
  if (object.has("env"))
    return hasHash
      ? refuse(object, "has both env and sha256: keep one of them")
      : hashVariable(object.get("env"));
  if (!hasHash) return refuse(object, `has neither env nor sha256: write ${keyExample}`);
  const problem = 'is not 64 hex digits: write what "printf %s KEY | sha256sum" prints';
  const hash = readFitting(object.get("sha256"), '"sha256": "64 hex digits"', /^[0-9a-f]{64}$/i, problem);
  return hash?.toLowerCase();
}

/** Hashes the key that a variable holds. */
function hashVariable(given: ConfigValue): string | undefined {
  const { value: name, findings } = given;
  if (typeof name !== "string" || !/^[A-Za-z_]\w*$/.test(name))
    return refuse(given, `is not the name of a variable: write ${keyExample}, with nothing around the name`);
  const { env } = findings.source;
  const key = Object.hasOwn(env, name) ? env[name] : undefined;
  if (key === undefined || key === "") return refuse(given, `${name} is not set: set it; ${advice}`);
  findings.hide(key);
  // What a header cannot carry, no client could present.
  const why =
    key.length < minLength
      ? "is too short"
      : /^[!-~]+$/.test(key)
        ? undefined
        : "has spaces or other characters than ASCII in it";
  if (why === undefined) return createHash("sha256").update(key).digest("hex");
  return refuse(given, `the value of ${name} ${why}: ${advice}`);
}
