import { isAtLeast, type Revision } from "../revision.ts";
import type { Implementation, Prompt, Tool } from "../types.ts";

type Listed = { readonly [field: string]: unknown };

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

/** What a server says of itself, with the fields a revision knows. */
export function projectImplementation(info: Implementation, revision: Revision): Implementation {
  return withoutNewer(info as unknown as Listed, implementationSince, revision) as unknown as Implementation;
}

/** A resource, template or prompt with the fields its reader's revision knows; the same object if that is all of them. */
export function projectListed<T extends object>(item: T, revision: Revision): T {
  return withoutNewer(item as Listed, since, revision) as T;
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
  const known = withoutNewer(tool as unknown as Listed, toolSince, revision) as unknown as Tool;
  const { outputSchema } = known;
  if (outputSchema === undefined || isAtLeast(revision, "2026-07-28") || hasObjectRoot(outputSchema))
    return known;
  return { ...known, outputSchema: wrapSchema(outputSchema) };
}

/** Whether a schema's root says `type: "object"`, the only root older revisions allow for structured output. */
export function hasObjectRoot(schema: { readonly [keyword: string]: unknown }): boolean {
  return schema["type"] === "object";
}

function withoutNewer(
  item: Listed,
  table: { readonly [field: string]: Revision },
  revision: Revision,
): Listed {
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
