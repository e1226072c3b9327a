import type { RawJson } from "../json/raw.ts";
import { encodeHeaderValue, mirroredParams } from "../mcp/mirrored-headers.ts";
import type { Tool } from "../mcp/types.ts";

/**
 * The headers that repeat arguments of a modern call over HTTP; undefined for a tool that wants none, as most do. Values
 * that are missing or null have none.
 */
export function toMirroredHeaders(
  tool: Tool | undefined,
  args: RawJson,
): { readonly [header: string]: string } | undefined {
  const params = tool === undefined ? [] : mirroredParams(tool.inputSchema);
  if (params.length === 0) return undefined;
  const headers: { [header: string]: string } = {};
  for (const { header, path } of params) {
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
