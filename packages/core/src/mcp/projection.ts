import { joinJson, RawJson, scanElements, editMembers, withoutMembers } from "../json/index.ts";
import { isAtLeast, type LegacyRevision, type Revision } from "./revision.ts";
import type { Content, Implementation, Prompt, PromptMessage, Tool } from "./types.ts";

type Item = { readonly [field: string]: unknown };

/** Which revision brought a field of listed things (tools, resources, templates, prompts, prompt arguments). */
const since: { readonly [field: string]: Revision } = {
  title: "2025-06-18",
  _meta: "2025-06-18",
  icons: "2025-11-25",
};

const toolSince: { readonly [field: string]: Revision } = {
  ...since,
  annotations: "2025-03-26",
  outputSchema: "2025-06-18",
};

const implementationSince: { readonly [field: string]: Revision } = {
  title: "2025-06-18",
  icons: "2025-11-25",
  description: "2025-11-25",
  websiteUrl: "2025-11-25",
};

/** A server's description of itself, with the fields a revision knows. */
export function projectImplementation(info: Implementation, revision: Revision): Implementation {
  return withoutNewer(info as unknown as Item, implementationSince, revision) as unknown as Implementation;
}

/** A resource, template or prompt with the fields its reader's revision knows; the same object if that is all of them. */
export function projectListed<T extends object>(item: T, revision: Revision): T {
  return withoutNewer(item as Item, since, revision) as T;
}

/** A prompt with the fields its reader's revision knows, those of its arguments included. */
export function projectPrompt(prompt: Prompt, revision: Revision): Prompt {
  const known = projectListed(prompt, revision);
  const { arguments: args } = known;
  const projected = args?.map((argument) => projectListed(argument, revision));
  const isSame = projected === undefined || projected.every((argument, index) => argument === args?.[index]);
  return isSame ? known : { ...known, arguments: projected };
}

/** A tool as a revision knows it. Before 2026-07-28 the root of an output schema is an object, so others are wrapped. */
export function projectTool(tool: Tool, revision: Revision): Tool {
  const known = withoutNewer(tool as unknown as Item, toolSince, revision) as unknown as Tool;
  const { outputSchema } = known;
  if (outputSchema === undefined || isAtLeast(revision, "2026-07-28") || hasObjectRoot(outputSchema))
    return known;
  return { ...known, outputSchema: wrapSchema(outputSchema) };
}

/** Whether a schema's root says `type: "object"`, the only root older revisions allow for structured output. */
export function hasObjectRoot(schema: { readonly [keyword: string]: unknown }): boolean {
  return schema["type"] === "object";
}

function withoutNewer(item: Item, table: { readonly [field: string]: Revision }, revision: Revision): Item {
  const newer = Object.keys(table).filter(
    (field) => field in item && !isAtLeast(revision, table[field] as Revision),
  );
  if (newer.length === 0) return item;
  return Object.fromEntries(Object.entries(item).filter(([field]) => !newer.includes(field)));
}

/** `{ result: <schema> }`, with references into the same document moved along and `$schema` kept at the root. */
function wrapSchema(schema: { readonly [keyword: string]: unknown }): {
  readonly [keyword: string]: unknown;
} {
  const { $schema, ...rest } = schema;
  const result = "$id" in rest ? rest : moveRefs(rest);
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: "object",
    properties: { result },
    required: ["result"],
  };
}

function moveRefs(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(moveRefs);
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) =>
      key === "$ref" && typeof value === "string" && (value === "#" || value.startsWith("#/"))
        ? [key, `#/properties/result${value.slice(1)}`]
        : [key, moveRefs(value)],
    ),
  );
}

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
  // Looked up by the index of the scan, which edited JSON does not have.
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

/**
 * The nearest a revision has to a content block: audio came with 2025-03-26, resource links with 2025-06-18. Clients
 * tolerate unknown fields but not unknown block types, so those become text that names the block.
 */
function projectContent(block: Content, revision: Revision): Content {
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
function hasAllContent(revision: Revision): boolean {
  return isAtLeast(revision, "2025-06-18");
}
