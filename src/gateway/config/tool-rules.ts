import type { Part } from "./config-value.ts";
import type { ToolRule } from "./config.ts";
import { given } from "./defined-fields.ts";
import { refuseUnknownKeys } from "./unknown-keys.ts";
import { readAnyText, readFlag, readGroup, readGroupOrEmpty, readText } from "./value-readers.ts";

const example = '{ "name": "find" }, { "hide": true } or { "description": "…" }';

/** What is done to the tools of one server, by their own names. */
export function readToolRules(part: Part): { readonly [ownName: string]: ToolRule } {
  const group = readGroup(part, '"tools": { "search": { "name": "find" } }');
  const renamed = new Map<string, string>();
  const rules = (group?.entries() ?? []).map(([ownName, at]) => {
    const rule = readRule(at);
    const other = rule.name === undefined ? undefined : renamed.get(rule.name);
    if (other !== undefined)
      at.reading.issue(`${at.path}.name`, `is the new name of ${other} too: write another`);
    if (rule.name !== undefined) renamed.set(rule.name, ownName);
    return [ownName, rule] as const;
  });
  return Object.fromEntries(rules);
}

function readRule(part: Part): ToolRule {
  const group = readGroupOrEmpty(part, example);
  refuseUnknownKeys(group, ["name", "description", "hide"]);
  return given({
    name: readName(group.get("name")),
    description: readAnyText(group.get("description"), '"what the tool does"'),
    hide: readFlag(group.get("hide")),
  });
}

/** Every model API takes such a name. */
function readName(part: Part): string | undefined {
  const name = readText(part, '"find"');
  if (name === undefined || /^[A-Za-z0-9_-]{1,64}$/.test(name)) return name;
  part.reading.issue(
    part.path,
    "cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -",
  );
  return undefined;
}
