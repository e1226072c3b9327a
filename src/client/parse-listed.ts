import type { RawJson } from "../json/raw.ts";
import { mirroringFault } from "../mcp/mirrored-params.ts";
import type { Prompt, Resource, ResourceTemplate, Tool } from "../mcp/types.ts";
import { fromDefinition } from "../tools/definition.ts";

/** Reads one listed thing; a text says why it makes no sense. */
export type ParseListed<T> = (raw: RawJson) => T | string;

type Fields = { readonly [key: string]: unknown };

function requireStrings<T extends object>(raw: RawJson, ...keys: readonly string[]): T | string {
  if (raw.kind !== "object") return "it is no object";
  const item = fromDefinition<T>(raw);
  const missing = keys.find((key) => typeof (item as Fields)[key] !== "string");
  return missing === undefined ? item : `${missing} is no string`;
}

/** `isMirroring` says that the tool will be called over modern HTTP, where a wrong `x-mcp-header` makes it unusable. */
export function parseTool(isMirroring: boolean): ParseListed<Tool> {
  return (raw) => {
    const tool = requireStrings<Tool>(raw, "name");
    if (typeof tool === "string") return tool;
    const { inputSchema } = tool;
    if (typeof inputSchema !== "object" || inputSchema === null)
      return `${tool.name}: inputSchema is no object`;
    const fault = isMirroring ? mirroringFault(inputSchema) : undefined;
    return fault === undefined ? tool : `${tool.name}: ${fault}`;
  };
}

export const parseResource: ParseListed<Resource> = (raw) => requireStrings(raw, "uri", "name");
export const parseTemplate: ParseListed<ResourceTemplate> = (raw) =>
  requireStrings(raw, "uriTemplate", "name");
export const parsePrompt: ParseListed<Prompt> = (raw) => requireStrings(raw, "name");
