import { isAtLeast, type Revision } from "../revision.ts";
import type { Content } from "../types.ts";

/**
 * The nearest a revision has to a content block: audio came with 2025-03-26, resource links with 2025-06-18. Clients
 * tolerate unknown fields but not unknown block types, so those become text that says what was there.
 */
export function projectContent(block: Content, revision: Revision): Content {
  if (block.type === "resource_link" && !isAtLeast(revision, "2025-06-18")) {
    const title = block.title ?? block.name;
    const note = block.description === undefined ? "" : `: ${block.description}`;
    return { type: "text", text: `[${title}](${block.uri})${note}` };
  }
  if (block.type === "audio" && !isAtLeast(revision, "2025-03-26")) {
    return { type: "text", text: `[audio, ${block.mimeType}, ${block.data.length} base64 characters]` };
  }
  return block;
}

/** Whether a revision has every block type there is. */
export function hasAllContent(revision: Revision): boolean {
  return isAtLeast(revision, "2025-06-18");
}
