import type { Content, ToolResult } from "../mcp/types.ts";

/** A result as text for people: text as it is, everything else in a few words. */
export function describeResult({ content, structuredContent }: ToolResult): string {
  if (content.length === 0 && structuredContent !== undefined)
    return JSON.stringify(structuredContent, undefined, 2);
  return content.map(describeBlock).join("\n");
}

/** One block of a result. */
export function describeBlock(block: Content): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}: ${block.mimeType}, ${sizeOf(block.data)}]`;
    case "resource_link":
      return `[link: ${block.title ?? block.name}, ${block.uri}]`;
    case "resource": {
      const { resource } = block;
      const type = resource.mimeType === undefined ? "" : `, ${resource.mimeType}`;
      return "text" in resource
        ? `[resource: ${resource.uri}${type}]\n${resource.text}`
        : `[resource: ${resource.uri}${type}, ${sizeOf(resource.blob)}]`;
    }
    default:
      // A server may be newer than we are.
      return `[${String((block satisfies never as { type?: unknown }).type)}: cannot be shown here; see --json]`;
  }
}

/** How much a base64 text holds. */
function sizeOf(base64: string): string {
  const bytes = Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
  if (bytes < 1024) return `${bytes} bytes`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}
