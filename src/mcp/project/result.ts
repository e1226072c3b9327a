import { RawJson } from "../../json/raw.ts";
import { editMembers } from "../../json/splice.ts";
import type { LegacyRevision } from "../revision.ts";
import type { PromptMessage, ToolResult } from "../types.ts";
import { hasAllContent, projectContent } from "./content.ts";

/** A result without the members only modern results have. */
export function withoutModernMembers(result: RawJson): RawJson {
  if (!modernMembers.some((key) => result.has(key))) return result;
  return editMembers(result, Object.fromEntries(modernMembers.map((key) => [key, undefined])));
}

const modernMembers = ["resultType", "ttlMs", "cacheScope"] as const;

/**
 * A tool's result as a legacy revision knows it. `isWrapped` says that the tool's output schema was listed wrapped (see
 * `projectTool`), so its structured content must be too.
 */
export function projectToolResult(result: RawJson, revision: LegacyRevision, isWrapped: boolean): RawJson {
  const plain = withoutModernMembers(result);
  const structured = plain.has("structuredContent") ? plain.at("structuredContent") : undefined;
  const needsWrap = structured !== undefined && (isWrapped || structured.kind !== "object");
  if (hasAllContent(revision)) {
    if (!needsWrap) return plain;
    return editMembers(plain, {
      structuredContent: editMembers(RawJson.fromText("{}"), { result: structured }),
    });
  }
  const { structuredContent: _, content = [], ...rest } = plain.value as Partial<ToolResult>;
  return RawJson.fromValue({
    ...rest,
    content: content.map((block) => projectContent(block, revision)),
  });
}

/** A prompt's messages as a legacy revision knows them. */
export function projectPromptResult(result: RawJson, revision: LegacyRevision): RawJson {
  const plain = withoutModernMembers(result);
  if (hasAllContent(revision)) return plain;
  const { messages = [], ...rest } = plain.value as { messages?: readonly PromptMessage[] };
  const projected = messages.map((message) => ({
    ...message,
    content: projectContent(message.content, revision),
  }));
  return RawJson.fromValue({ ...rest, messages: projected });
}
