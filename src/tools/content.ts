import { Buffer } from "node:buffer";
import type {
  AudioContent,
  Content,
  EmbeddedResource,
  ImageContent,
  Resource,
  ResourceContents,
  ResourceLink,
  TextContent,
  ToolResult,
} from "../mcp/types.ts";

/** A result whose structured content is known to the compiler. */
export interface StructuredResult<Value> extends ToolResult {
  readonly structuredContent: Value;
}

/** A result that tells of a failure; it needs no structured content. */
export interface FailedResult extends Omit<ToolResult, "structuredContent"> {
  readonly isError: true;
}

/** A text block. */
export function text(value: string): TextContent {
  return { type: "text", text: value };
}

/** An image block, from bytes or from base64 that is already there. */
export function image(data: Uint8Array | string, mimeType: string): ImageContent {
  return { type: "image", data: toBase64(data), mimeType };
}

/** An audio block, from bytes or from base64 that is already there. */
export function audio(data: Uint8Array | string, mimeType: string): AudioContent {
  return { type: "audio", data: toBase64(data), mimeType };
}

/** A pointer to a resource the client may read. */
export function resourceLink(resource: Resource): ResourceLink {
  return { type: "resource_link", ...resource };
}

/** A resource inside the result. Contents given as bytes are sent as base64. */
export function embedResource(
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string,
): EmbeddedResource {
  return { type: "resource", resource: toResourceContents(uri, contents, mimeType) };
}

/** The contents of one resource: text from a string, a base64 blob from bytes. */
export function toResourceContents(
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string,
): ResourceContents {
  const head = mimeType === undefined ? { uri } : { uri, mimeType };
  return typeof contents === "string" ? { ...head, text: contents } : { ...head, blob: toBase64(contents) };
}

/**
 * A result for programs and for models: the value itself, and its JSON as text for clients that know only content.
 * Throws a `TypeError` for what has no JSON, such as a function.
 *
 * @example
 * return structured({ celsius: 21.5 });
 */
export function structured<Value>(value: Value, content?: readonly Content[]): StructuredResult<Value> {
  return { content: content ?? [text(toJson(value))], structuredContent: value };
}

function toJson(value: unknown): string {
  // A Map, a Set or a generator that was not run would silently become {}.
  const isIterable = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (isIterable && !Array.isArray(value) && !("toJSON" in value)) {
    throw new TypeError(`A ${value.constructor.name} has no JSON; return an array or a plain object`);
  }
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined)
    throw new TypeError(`A ${typeof value} has no JSON, so it cannot be structured output`);
  return json;
}

/** A result that tells the model of a failure. Throwing a `ToolError` does the same. */
export function failure(message: string): FailedResult {
  return { content: [text(message)], isError: true };
}

const isString = (value: unknown): boolean => typeof value === "string";

/** Whether a value is a content block: a known type with the members that type cannot do without. */
export function isContent(value: unknown): value is Content {
  if (typeof value !== "object" || value === null) return false;
  const block = value as { readonly [key: string]: unknown };
  switch (block["type"]) {
    case "text":
      return isString(block["text"]);
    case "image":
    case "audio":
      return isString(block["data"]) && isString(block["mimeType"]);
    case "resource_link":
      return isString(block["uri"]) && isString(block["name"]);
    case "resource":
      return typeof block["resource"] === "object" && block["resource"] !== null;
    default:
      return false;
  }
}

function toBase64(data: Uint8Array | string): string {
  return typeof data === "string"
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}
