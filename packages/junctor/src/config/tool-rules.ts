import { defined } from "@junctor/core/options";
import type { ConfigValue } from "./config-value.ts";
import type { ToolRule } from "./config.ts";
import {
  readAnyText,
  readFitting,
  readFlag,
  readObject,
  readObjectOrEmpty,
  refuseUnknownKeys,
} from "./value-readers.ts";

const example = '{ "name": "find" }, { "hide": true } or { "description": "…" }';

/** The rules for the tools of one server, by their own names. */
export function readToolRules(given: ConfigValue): { readonly [ownName: string]: ToolRule } {
  const object = readObject(given, '"tools": { "search": { "name": "find" } }');
  const renamed = new Map<string, string>();
  const rules = (object?.entries() ?? []).map(([ownName, at]) => {
    const rule = readRule(at);
    const other = rule.name === undefined ? undefined : renamed.get(rule.name);
    if (other !== undefined)
      at.findings.issue(`${at.path}.name`, `is the new name of ${other} too: write another`);
    if (rule.name !== undefined) renamed.set(rule.name, ownName);
    return [ownName, rule] as const;
  });
  return Object.fromEntries(rules);
}

function readRule(given: ConfigValue): ToolRule {
  const object = readObjectOrEmpty(given, example);
  refuseUnknownKeys(object, ["name", "description", "hide"]);
  return defined({
    name: readName(object.get("name")),
    description: readAnyText(object.get("description"), '"what the tool does"'),
    hide: readFlag(object.get("hide")),
  });
}

/** Every model API takes such a name. */
function readName(given: ConfigValue): string | undefined {
  const problem = "cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -";
  return readFitting(given, '"find"', /^[A-Za-z0-9_-]{1,64}$/, problem);
}
