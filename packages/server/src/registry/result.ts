import { andThen, type Awaitable } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { isAskMethod, type Content, type ToolResult } from "@junctor/core/mcp";
import { describeBlockFault, failure, isContent, structured, text } from "@junctor/core/provider";
import { describeIssues, describeValue } from "@junctor/core/schema";
import type { HandlerResult } from "./event.ts";
import type { Schema } from "./schema.ts";

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
  if (isToolResult(value)) {
    assertResultMembers(value);
    return value;
  }
  const result = toOwnResult(value, hasOutput);
  return streamed.length === 0 ? result : { ...result, content: [...streamed, ...result.content] };
}

function toOwnResult(value: Exclude<HandlerResult, void>, hasOutput: boolean): ToolResult {
  if (typeof value === "string") return hasOutput ? structured(value) : { content: [text(value)] };
  if (isContent(value)) return { content: [value] };
  if (Array.isArray(value) && value.length > 0 && value.every(isContent)) return { content: value };
  if (typeof value === "object" && value !== null) assertNotMeant(value, hasOutput);
  return structured(value);
}

/** A value of the tool's own may have a `content` too; it is a result only if that holds nothing but blocks. */
function isToolResult(value: unknown): value is ToolResult {
  if (typeof value !== "object" || value === null) return false;
  const { content } = value as { readonly content?: unknown };
  return Array.isArray(content) && content.every(isContent);
}

function assertResultMembers({
  isError,
  _meta,
}: {
  readonly isError?: unknown;
  readonly _meta?: unknown;
}): void {
  if (isError !== undefined && typeof isError !== "boolean")
    throw new TypeError(
      `The tool returned a result whose isError is ${describeValue(isError)}; write true or false`,
    );
  if (_meta !== undefined && (typeof _meta !== "object" || _meta === null || Array.isArray(_meta)))
    throw new TypeError(
      `The tool returned a result whose _meta is ${describeValue(_meta)}; it must be an object`,
    );
}

const resultKeys = new Set(["content", "structuredContent", "isError", "_meta"]);
const blockKeys = new Set(["type", "text", "data", "mimeType", "resource", "annotations", "_meta"]);
const blockTypes = new Set<unknown>(["text", "image", "audio", "resource"]);

/**
 * Throws a `TypeError` for a value that was meant as a result, as content or as a question, and is not one: it would silently be sent as
 * structured content. Where the tool has an output schema, that tells.
 */
function assertNotMeant(value: object, hasOutput: boolean): void {
  const asIs = ". To send the value as it is, write structured(value)";
  const { method, content, type } = value as { readonly [key: string]: unknown };
  const fits = (known: ReadonlySet<string>): boolean => Object.keys(value).every((key) => known.has(key));
  if (isAskMethod(method))
    throw new TypeError("The tool returned a question; write inputRequired({ name: question })");
  if (fits(resultKeys) && ("isError" in value || "structuredContent" in value) && !Array.isArray(content))
    throw new TypeError(
      `The tool returned a result whose content ${content === undefined ? "is missing" : `is ${describeValue(content)}`}; ` +
        `write { content: [{ type: "text", text: "…" }] }, throw a ToolError, or return structured(value)`,
    );
  if (hasOutput) return;
  if (fits(resultKeys) && Array.isArray(content) && content.some(hasType)) {
    const wrong = content.findIndex((block) => !isContent(block));
    throw new TypeError(
      `The tool returned a result whose content[${wrong}] ${describeBlockFault(content[wrong])}${asIs}`,
    );
  }
  if (Array.isArray(value) && value.some(isContent)) {
    const wrong = value.findIndex((block) => !isContent(block));
    throw new TypeError(
      `The tool returned content whose [${wrong}] ${describeBlockFault(value[wrong])}${asIs}`,
    );
  }
  const isBlock = blockTypes.has(type) || (hasType(value) && "data" in value && "mimeType" in value);
  if (isBlock && fits(blockKeys))
    throw new TypeError(`The tool returned a content block that ${describeBlockFault(value)}${asIs}`);
}

function hasType(block: unknown): boolean {
  return (
    typeof block === "object" && block !== null && typeof (block as { type?: unknown }).type === "string"
  );
}

/**
 * The result as the tool's output schema makes it (a schema may strip, default and convert), or a failure that says how
 * the structured content breaks it. The model cannot mend that, so `onFault` gets the text too.
 */
export function checkOutput(
  result: ToolResult,
  output: Schema | undefined,
  onFault: (text: string) => void,
): Awaitable<ToolResult> {
  if (output === undefined || result.isError === true) return result;
  const fail = (text: string): ToolResult => {
    onFault(text);
    return failure(text);
  };
  const { structuredContent: given } = result;
  if (given === undefined)
    return fail("The tool promised structured output and gave none; this is a fault of the tool.");
  return andThen(output.check(given), (checked) => {
    if (!checked.ok) {
      const fault = "The tool's output does not fit its own schema; this is a fault of the tool";
      return fail(describeIssues(checked.issues, fault));
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

/** The text that the model gets when a handler fails. Detail of errors that were not meant for it stays here. */
export function toFailureText(error: unknown, tool: string): string {
  return error instanceof ToolError ? error.message : `The tool ${tool} failed because of an internal error.`;
}
