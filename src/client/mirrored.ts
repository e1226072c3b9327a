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
    const text = value.kind === "string" ? (value.value as string) : value.text;
    headers[`mcp-param-${header.toLowerCase()}`] = encodeHeaderValue(text);
  }
  return headers;
}
