import { Buffer } from "node:buffer";
import type { RawJson } from "../json/index.ts";
import {
  type AudioContent,
  type Content,
  type EmbeddedResource,
  type ImageContent,
  type Resource,
  type ResourceContents,
  type ResourceLink,
  type TextContent,
  type ToolResult,
  type Questions,
  type Elicited,
  isAskMethod,
  type Root,
  type Sampled,
  type Question,
} from "../mcp/index.ts";
import { nearest } from "../options/index.ts";
import { describeValue } from "../schema/index.ts";
import type { InputRequired, Round } from "./provider.ts";

/** A result whose structured content is known to the compiler. */
export interface StructuredResult<Value> extends ToolResult {
  readonly structuredContent: Value;
}

/** A result that tells of a failure; it needs no structured content. */
export interface FailedResult extends Omit<ToolResult, "structuredContent"> {
  readonly isError: true;
}

/** A text block. Throws a `TypeError` for a value that is not a string, as all of these functions do for a wrong argument. */
export function text(value: string): TextContent {
  return assertBlock("text(string)", { type: "text", text: value });
}

/** An image block, from bytes or base64. */
export function image(data: Uint8Array | string, mimeType: string): ImageContent {
  return assertBlock("image(bytes, mimeType)", { type: "image", data: toBase64(data), mimeType });
}

/** An audio block, from bytes or base64. */
export function audio(data: Uint8Array | string, mimeType: string): AudioContent {
  return assertBlock("audio(bytes, mimeType)", { type: "audio", data: toBase64(data), mimeType });
}

/** A pointer to a resource the client may read. */
export function resourceLink(resource: Resource): ResourceLink {
  return assertBlock("resourceLink({ uri, name })", { type: "resource_link", ...resource });
}

/** A resource inside the result. Contents given as bytes are sent as base64. */
export function embedResource(
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string,
): EmbeddedResource {
  const resource = toResourceContents(uri, contents, mimeType);
  return assertBlock("embedResource(uri, contents)", { type: "resource", resource });
}

function assertBlock<Block extends Content>(usage: string, block: Block): Block {
  if (isContent(block)) return block;
  throw new TypeError(`Write ${usage}: the block ${describeBlockFault(block)}`);
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
 * A result for programs and for models: the value itself, and its JSON as text for clients that know only
 * content. Throws a `TypeError` for a value that has no JSON, such as a function.
 *
 * @example
 * return structured({ celsius: 21.5 });
 */
export function structured<Value>(value: Value, content?: readonly Content[]): StructuredResult<Value> {
  const wrong = content?.findIndex((block) => !isContent(block)) ?? -1;
  if (wrong >= 0)
    throw new TypeError(
      `Write structured(value, blocks): blocks[${wrong}] ${describeBlockFault(content?.[wrong])}`,
    );
  return { content: content ?? [text(toJson(value))], structuredContent: value };
}

function toJson(value: unknown): string {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new TypeError(`${value} has no JSON, so it cannot be structured output`);
  if (typeof value === "object" && value !== null) {
    if (ArrayBuffer.isView(value))
      throw noJson(value, `write image(bytes, mimeType) or embedResource(uri, bytes)`);
    assertHasJson(value);
    // Members of members are left to `JSON.stringify`: checking each of them would take
    // longer than writing them.
    for (const member of Object.values(value)) assertHasJson(member);
  }
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined)
    throw new TypeError(`A ${typeof value} has no JSON, so it cannot be structured output`);
  return json;
}

/** Throws for an object that would silently become `{}`, or an object of numbers: a Map, a promise, an error, bytes. */
function assertHasJson(value: unknown): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null || "toJSON" in value) return;
  if (value instanceof Error) throw noJson(value, "throw it, or a ToolError that the model should read");
  if (typeof (value as { then?: unknown }).then === "function") throw noJson(value, "await it");
  if (Symbol.iterator in value) throw noJson(value, "return an array or a plain object");
  if (Object.keys(value).length === 0 && value.constructor?.name !== "Object")
    throw noJson(value, "return a plain object");
}

function noJson(value: object, advice: string): TypeError {
  const { name } = value.constructor;
  return new TypeError(`${/^[AEIO]/.test(name) ? "An" : "A"} ${name} has no JSON; ${advice}`);
}

/** A result that tells the model of a failure. Throwing a `ToolError` does the same. */
export function failure(message: string): FailedResult {
  return { content: [text(message)], isError: true };
}

const isString = (value: unknown): boolean => typeof value === "string";

/** Whether a value is a content block: a known type with the members that the type requires. */
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
      return isResourceContents(block["resource"]);
    default:
      return false;
  }
}

/** Whether a value is the contents of one resource: an address, and text or a base64 blob. */
export function isResourceContents(value: unknown): value is ResourceContents {
  if (typeof value !== "object" || value === null) return false;
  const { uri, text: words, blob } = value as { readonly [key: string]: unknown };
  return isString(uri) && (isString(words) || isString(blob));
}

/** What each type of block must have. */
const blockMembers: { readonly [type: string]: string } = {
  text: 'a "text", a string',
  image: '"data", base64 in a string, and a "mimeType"; image(bytes, mimeType) makes one',
  audio: '"data", base64 in a string, and a "mimeType"; audio(bytes, mimeType) makes one',
  resource_link: 'a "uri" and a "name"; resourceLink({ uri, name }) makes one',
  resource: 'a "resource" with a "uri" and a "text" or "blob"; embedResource(uri, contents) makes one',
};

/** Why a value is not a content block, and what to write: "is of type …; did you mean …?". */
export function describeBlockFault(value: unknown): string {
  const example = 'write { type: "text", text: "…" }';
  if (typeof value !== "object" || value === null) return `is ${describeValue(value)}; ${example}`;
  const { type } = value as { readonly type?: unknown };
  if (typeof type !== "string") return `has no type; ${example}`;
  const members = Object.hasOwn(blockMembers, type) ? blockMembers[type] : undefined;
  if (members !== undefined) return `is of type "${type}" and must have ${members}`;
  const types = Object.keys(blockMembers);
  const likely = type === "img" || type === "picture" ? "image" : nearest(type, types);
  const hint = likely === undefined ? `the types are ${types.join(", ")}` : `did you mean "${likely}"?`;
  return `is of the unknown type ${JSON.stringify(type)}; ${hint}`;
}

function toBase64(data: Uint8Array | string): string {
  return data instanceof Uint8Array
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64")
    : data;
}

/**
 * Ends a round: the caller is asked, and the handler runs again from its start with the answers. Everything the next
 * round must know goes into `state`, which the caller can neither read nor alter.
 *
 * @throws TypeError for questions that are not made by `elicit`, `elicitUrl`, `sample` or `listRoots`
 */
export function inputRequired(asks: Questions, state?: unknown): InputRequired {
  const usage = 'write inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }) })';
  if (!isRecord(asks) || isAskMethod(asks["method"]))
    throw new TypeError(`inputRequired: questions are an object of them by name; ${usage}`);
  for (const [key, ask] of Object.entries(asks))
    if (!isAskMethod((ask as Partial<Question> | undefined)?.method))
      throw new TypeError(`inputRequired: ${JSON.stringify(key)} is not a question; ${usage}`);
  return state === undefined ? { kind: "input_required", asks } : { kind: "input_required", asks, state };
}

export function isInputRequired(value: unknown): value is InputRequired {
  return (
    typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "input_required"
  );
}

/**
 * The answers a handler got so far, of all rounds. Each getter returns undefined until
 * its question is answered.
 */
export interface AnswerReader {
  /** A form's outcome. */
  elicited(key: string): Elicited | undefined;
  sampled(key: string): Sampled | undefined;
  roots(key: string): readonly Root[] | undefined;
}

/** The answers of a call that asked nothing yet. */
export const noAnswers: AnswerReader = {
  elicited: () => undefined,
  sampled: () => undefined,
  roots: () => undefined,
};

/**
 * Reads answers. An answer of the wrong shape counts as missing, so the handler asks
 * again and never trusts it.
 */
export function readAnswers({ answers }: Round): AnswerReader {
  const answer = (key: string): { readonly [field: string]: unknown } | undefined => {
    const raw: RawJson | undefined = Object.hasOwn(answers, key) ? answers[key] : undefined;
    return raw?.kind === "object" ? (raw.value as { readonly [field: string]: unknown }) : undefined;
  };
  return {
    elicited: (key) => {
      const { action, content } = answer(key) ?? {};
      if (action === "decline" || action === "cancel") return { action };
      if (action !== "accept") return undefined;
      return { action, content: isRecord(content) ? content : {} };
    },
    sampled: (key) => {
      const value = answer(key);
      const isSampled = typeof value?.["model"] === "string" && isBlocks(value["content"]);
      return isSampled ? (value as unknown as Sampled) : undefined;
    },
    roots: (key) => {
      const roots = answer(key)?.["roots"];
      return Array.isArray(roots) && roots.every(isRoot) ? roots : undefined;
    },
  };
}

/** One block or several. Their types are not checked: a model with tools writes blocks of its own. */
function isBlocks(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isRecord) : isRecord(value);
}

function isRoot(value: unknown): value is Root {
  return isRecord(value) && typeof value["uri"] === "string";
}

function isRecord(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
