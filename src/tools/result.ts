import { andThen, type Awaitable } from "../async/awaitable.ts";
import type { Content, ToolResult } from "../mcp/types.ts";
import { describeIssues } from "../schema/issue.ts";
import type { Schema } from "../schema/schema.ts";
import { failure, isContent, structured, text } from "./content.ts";
import type { HandlerResult } from "./event.ts";

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
