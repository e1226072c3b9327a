import type { RawJson } from "../json/raw.ts";
import { encodeHeaderValue } from "../mcp/header-value.ts";
import { mirroredParams } from "../mcp/mirrored-params.ts";
import type { Tool } from "../mcp/types.ts";

/** The headers that repeat arguments of a modern call over HTTP. Values that are missing or null have none. */
export function toMirroredHeaders(
  tool: Tool | undefined,
  args: RawJson,
): { readonly [header: string]: string } {
  const headers: { [header: string]: string } = {};
  if (tool === undefined) return headers;
  for (const { header, path } of mirroredParams(tool.inputSchema)) {
    const value = path.reduce<RawJson | undefined>((node, key) => node?.at(key), args);
    if (value === undefined || value.kind === "null") continue;
    headers[`mcp-param-${header.toLowerCase()}`] = encodeHeaderValue(toText(value));
  }
  return headers;
}

/** Integers in decimal, however they were written; what is too large for that stays as it is. */
function toText(json: RawJson): string {
  const { value } = json;
  if (typeof value === "string") return value;
  return Number.isSafeInteger(value) ? String(value) : json.text;
}
