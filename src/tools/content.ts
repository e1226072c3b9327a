import { Buffer } from "node:buffer";
import { type Awaitable, andThen } from "../async/awaitable.ts";
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
import { describeIssues } from "../schema/issue.ts";
import type { Schema } from "../schema/schema.ts";
import type { HandlerResult } from "./event.ts";

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

/**
 * The result a handler meant: a string is text, content is content, a result is itself, and any other value is
 * structured content. Where the tool has an output schema, a string is structured content too. Streamed content comes
 * first, unless a whole result was returned.
 */
export function toToolResult(
  value: HandlerResult,
  streamed: readonly Content[] = [],
  hasOutput = false,
): ToolResult {
  if (value === undefined) return { content: streamed };
  if (isToolResult(value)) return value;
  const result = toOwnResult(value, hasOutput);
  return streamed.length === 0 ? result : { ...result, content: [...streamed, ...result.content] };
}

function toOwnResult(value: Exclude<HandlerResult, void>, hasOutput: boolean): ToolResult {
  if (typeof value === "string") return hasOutput ? structured(value) : { content: [text(value)] };
  if (isContent(value)) return { content: [value] };
  if (Array.isArray(value) && value.length > 0 && value.every(isContent)) return { content: value };
  return structured(value);
}

/** A value of the tool's own may have a `content` too; it is a result only if that holds nothing but blocks. */
function isToolResult(value: unknown): value is ToolResult {
  if (typeof value !== "object" || value === null) return false;
  const { content } = value as { readonly content?: unknown };
  return Array.isArray(content) && content.every(isContent);
}

/**
 * The result as the tool's output schema makes it (a schema may strip, default and convert), or a failure that says how
 * the structured content breaks it.
 */
export function checkOutput(result: ToolResult, output: Schema | undefined): Awaitable<ToolResult> {
  if (output === undefined || result.isError === true) return result;
  const { structuredContent: given } = result;
  if (given === undefined) {
    return failure("The tool promised structured output and gave none; this is a fault of the tool.");
  }
  return andThen(output.check(given), (checked) => {
    if (!checked.ok) {
      const fault = "The tool's output does not fit its own schema; this is a fault of the tool";
      return failure(describeIssues(checked.issues, fault));
    }
    return checked.value === given ? result : withStructured(result, checked.value);
  });
}

/** Text that was written from the structured content is written anew, so that both say the same. */
function withStructured(result: ToolResult, value: unknown): ToolResult {
  const [block] = result.content;
  const isWritten =
    result.content.length === 1 &&
    block?.type === "text" &&
    block.text === JSON.stringify(result.structuredContent);
  return { ...result, ...(isWritten ? structured(value) : { structuredContent: value }) };
}
