import { defined } from "@junctor/core/options";
import { type ConfigObject, type ConfigValue, joinPath, refuse } from "./config-value.ts";
import type { AccessRule } from "./config.ts";
import { readScopes } from "./issuer-settings.ts";
import { readBound } from "./key-settings.ts";
import { readAllowed, readObject, readText, readTexts, refuseUnknownKeys } from "./value-readers.ts";

const example = `{ "allow": ["github__*"], "when": "'eng' in caller.groups" }`;
const kinds = ["allow", "deny", "scope"] as const;
const maxRules = 200;

/** The rules of `junctor.rules`. Their conditions are compiled later. */
export function readRules(given: ConfigValue): readonly AccessRule[] {
  const { value, path, findings } = given;
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    refuse(given, `must be an array of rules: write "rules": [${example}]`);
    return [];
  }
  if (value.length > maxRules) refuse(given, `has more than ${maxRules} rules: use globs to join some`);
  return value.flatMap(
    (each: unknown, index) => readRule({ value: each, path: joinPath(path, index), findings }) ?? [],
  );
}

function readRule(given: ConfigValue): AccessRule | undefined {
  if (given.value === null || given.value === undefined)
    return refuse(given, `must be a rule: write ${example}`);
  const object = readObject(given, example);
  if (object === undefined) return undefined;
  const isAllKnown = refuseUnknownKeys(object, [...kinds, "tools", "when", "unless", "profiles"]);
  const said = kinds.filter((kind) => object.has(kind));
  const [kind] = said;
  if (kind === undefined || said.length > 1) {
    if (isAllKnown) refuse(given, `must have one of allow, deny and scope: write ${example}`);
    return undefined;
  }
  const conditions = defined({
    when: readText(object.get("when"), `"'eng' in caller.groups"`),
    unless: readText(object.get("unless"), `"'admin' in caller.groups"`),
    profiles: readBound(object.get("profiles")),
  });
  if (kind === "scope") return readScopeRule(object, conditions);
  if (object.has("tools"))
    refuse(object.get("tools"), `does not belong here: write the globs into "${kind}"`);
  const globs = object.get(kind);
  const names =
    kind === "allow"
      ? readAllowed(globs, '"allow": ["github__*"]')
      : readTexts(globs, '"deny": ["*__delete_*"]');
  return { kind, names, scopes: [], ...conditions };
}

function readScopeRule(
  object: ConfigObject,
  conditions: Pick<AccessRule, "when" | "unless" | "profiles">,
): AccessRule | undefined {
  const written = '"scope": "mcp:write"';
  const scope = object.get("scope");
  const list = typeof scope.value === "string" ? { ...scope, value: [scope.value] } : scope;
  const scopes = readScopes(list, written);
  const names = readTexts(object.get("tools"), '"tools": ["*__create_*"]');
  if (names.length === 0)
    return refuse(object, 'says not what the scope is for: write "tools": ["*__create_*"], or ["*"] for all');
  return { kind: "scope", names, scopes, ...conditions };
}
