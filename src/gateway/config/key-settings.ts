import { createHash } from "node:crypto";
import type { Group, Part } from "./config-value.ts";
import type { KeyConfig } from "./config.ts";
import { type KeyHints, refuseUnknownKeys } from "./unknown-keys.ts";
import { readAllowed, readGroup, readText, readTexts } from "./value-readers.ts";

const example = '{ "env": "NAME_OF_A_VARIABLE" }';
const minLength = 16;
const advice = `a key has at least ${minLength} characters, such as "openssl rand -hex 32" prints`;

// A file is copied, shown and committed; a key in it would not stay one.
const inFile = `a key is not written into a file: write ${example}, or its "sha256"`;
const hints: KeyHints = { key: inFile, value: inFile, token: inFile, secret: inFile, apiKey: inFile };

/** The keys that clients may present, from `junctor.keys`. Keys themselves are not kept. */
export function readKeys(part: Part): readonly KeyConfig[] {
  const group = readGroup(part, `"keys": { "alice": ${example} }`);
  const owners = new Map<string, string>();
  return (group?.entries() ?? []).flatMap(([name, at]) => {
    const key = readKey(name, at);
    if (key === undefined) return [];
    const owner = owners.get(key.sha256);
    if (owner !== undefined) at.reading.issue(at.path, `is the same key as ${owner}: give each its own`);
    owners.set(key.sha256, name);
    return [key];
  });
}

function readKey(name: string, part: Part): KeyConfig | undefined {
  const group = readGroup(part, example);
  if (group === undefined) return undefined;
  const isAllKnown = refuseUnknownKeys(group, ["env", "sha256", "allow", "deny"], hints);
  // A key that is missing because it is misspelt has been reported.
  if (!isAllKnown && !group.has("env") && !group.has("sha256")) return undefined;
  const sha256 = readHash(group);
  const allow = readAllowed(group.get("allow"), '"allow": ["github__*"]');
  const deny = readTexts(group.get("deny"), '"deny": ["github__delete_*"]');
  return sha256 === undefined ? undefined : { name, sha256, allow, deny };
}

function readHash(group: Group): string | undefined {
  const { path, reading } = group;
  const hasEnv = group.has("env");
  if (hasEnv && group.has("sha256")) {
    reading.issue(path, "has both env and sha256: keep one of them");
    return undefined;
  }
  if (hasEnv) return hashVariable(group.get("env"));
  if (!group.has("sha256")) {
    reading.issue(path, `has neither env nor sha256: write ${example}`);
    return undefined;
  }
  const hash = readText(group.get("sha256"), '"sha256": "64 hex digits"');
  if (hash === undefined || /^[0-9a-f]{64}$/i.test(hash)) return hash?.toLowerCase();
  reading.issue(
    group.get("sha256").path,
    'is not 64 hex digits: write what "printf %s KEY | sha256sum" prints',
  );
  return undefined;
}

/** Hashes the key that a variable holds. */
function hashVariable({ value: name, path, reading }: Part): string | undefined {
  if (typeof name !== "string" || !/^[A-Za-z_]\w*$/.test(name)) {
    reading.issue(path, `is not the name of a variable: write ${example}, with nothing around the name`);
    return undefined;
  }
  const { env } = reading.source;
  const key = Object.hasOwn(env, name) ? env[name] : undefined;
  if (key === undefined || key === "") {
    reading.issue(path, `${name} is not set: set it; ${advice}`);
    return undefined;
  }
  reading.hide(key);
  // What a header cannot carry, no client could present.
  const why =
    key.length < minLength
      ? "is too short"
      : /^[!-~]+$/.test(key)
        ? undefined
        : "has spaces or other characters than ASCII in it";
  if (why === undefined) return createHash("sha256").update(key).digest("hex");
  reading.issue(path, `the value of ${name} ${why}: ${advice}`);
  return undefined;
}
