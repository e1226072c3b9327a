import { joinJson } from "../../json/join.ts";
import { RawJson } from "../../json/raw.ts";
import { withoutMembers } from "../../json/remove.ts";
import { scanElements } from "../../json/scan.ts";
import { editMembers } from "../../json/splice.ts";
import type { LegacyRevision } from "../revision.ts";
import type { Content, PromptMessage } from "../types.ts";
import { hasAllContent, projectContent } from "./content.ts";

/** A result without the members only modern results have. */
export function withoutModernMembers(result: RawJson): RawJson {
  return withoutMembers(result, modernMembers);
}

const modernMembers = ["resultType", "ttlMs", "cacheScope"] as const;

/**
 * A tool's result as a legacy revision knows it. `isWrapped` says that the tool's output schema was listed wrapped (see
 * `projectTool`), so its structured content must be too.
 */
export function projectToolResult(result: RawJson, revision: LegacyRevision, isWrapped: boolean): RawJson {
  // Looked up where the scan left its notes: what was edited has none.
  const structured = result.has("structuredContent") ? result.at("structuredContent") : undefined;
  const plain = withoutModernMembers(result);
  const needsWrap = structured !== undefined && (isWrapped || structured.kind !== "object");
  if (hasAllContent(revision)) {
    if (!needsWrap) return plain;
    return editMembers(plain, {
      structuredContent: editMembers(RawJson.fromText("{}"), { result: structured }),
    });
  }
  const content = projectArray(plain.at("content"), (block: Content) => projectContent(block, revision));
  const edits = {
    ...(structured === undefined ? {} : { structuredContent: undefined }),
    ...(content && { content }),
  };
  return Object.keys(edits).length === 0 ? plain : editMembers(plain, edits);
}

/** An array with some of its elements changed, and the others as they were spelled; undefined when none is. */
function projectArray<T>(array: RawJson | undefined, project: (element: T) => T): RawJson | undefined {
  if (array?.kind !== "array") return undefined;
  let isChanged = false;
  const { bytes } = array;
  const elements = scanElements(bytes).map(({ start, end }) => {
    const raw = RawJson.fromChecked(bytes.subarray(start, end));
    const element = raw.value as T;
    const projected = project(element);
    if (projected === element) return raw;
    isChanged = true;
    return RawJson.fromValue(projected);
  });
  if (!isChanged) return undefined;
  return joinJson(["[", ...elements.flatMap((raw, index) => (index === 0 ? [raw] : [",", raw])), "]"]);
}

/** A prompt's messages as a legacy revision knows them. */
export function projectPromptResult(result: RawJson, revision: LegacyRevision): RawJson {
  const plain = withoutModernMembers(result);
  if (hasAllContent(revision)) return plain;
  const messages = projectArray(plain.at("messages"), (message: PromptMessage) => {
    const content = projectContent(message.content, revision);
    return content === message.content ? message : { ...message, content };
  });
  return messages === undefined ? plain : editMembers(plain, { messages });
}
