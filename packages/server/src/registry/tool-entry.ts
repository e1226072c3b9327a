import { type Awaitable, recover, andThen } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { assertDefinition } from "@junctor/core/fit";
import { type Content, type Tool, type ToolResult, isAskMethod } from "@junctor/core/mcp";
import { failure, describeBlockFault, isContent, structured, text } from "@junctor/core/provider";
import { describeIssues, describeValue } from "@junctor/core/schema";
import type { AppView } from "./app-view.ts";
import type { HandlerResult, ToolHandler } from "./event.ts";
import { type Schema, type SchemaSource, toObjectRoot, toSchema } from "./schema.ts";
import type { AnyJob, TaskMode } from "./task-tools.ts";
import { assertToolSpec, type TaskSpec, type ToolSpec } from "./tool-spec.ts";

/** Takes errors that are not meant for the model. */
export type OnToolError = (error: unknown, tool: string) => void;

/** A registered tool. */
export interface ToolEntry {
  readonly tool: Tool;
  readonly input: Schema;
  readonly output: Schema | undefined;
  /** Turns what the handler returned into a result that fits `output`. Output that does not fit is reported to `onError` too. */
  readonly toResult: (
    value: HandlerResult,
    streamed: readonly Content[],
    onError: OnToolError,
  ) => Awaitable<ToolResult>;
  readonly handler: ToolHandler<never>;
  readonly view: AppView | undefined;
  /** Missing for a tool that is never a task. */
  readonly mode: TaskMode | undefined;
}

/** The arguments of a tool that takes none. */
export type NoInput = { readonly type: "object"; readonly additionalProperties: false };
const noInput: NoInput = { type: "object", additionalProperties: false };

/** The entry of a tool. Throws a `TypeError` for a spec that cannot be used. */
export function toEntry(
  name: string,
  spec: ToolSpec<SchemaSource> & Partial<TaskSpec<never>>,
  handler: ToolHandler<never>,
): ToolEntry {
  assertToolSpec(name, spec, handler);
  const { input: inputSource = noInput, output: outputSource, task, askFirst, ...others } = spec;
  const { view, visibility, _meta, ...shown } = others;
  const what = `Tool ${JSON.stringify(name)}`;
  const inputSchema = toSchema(inputSource, { what: `${what}: input` });
  const input = toObjectRoot(inputSchema, `${what}: input`);
  const output =
    outputSource === undefined
      ? undefined
      : toSchema(outputSource, { side: "output", what: `${what}: output` });
  const tool: Tool = {
    name,
    ...shown,
    ...toMeta({ view, visibility, _meta }),
    inputSchema: input.json,
    ...(output === undefined ? {} : { outputSchema: output.json }),
  };
  assertDefinition("tools", what, tool);
  const mode = task === undefined ? undefined : { task, ...(askFirst === undefined ? {} : { askFirst }) };
  const toResult: ToolEntry["toResult"] = (value, streamed, onError) =>
    checkOutput(toToolResult(value, streamed, output !== undefined), output, (fault) =>
      onError(new TypeError(fault), name),
    );
  return { tool: Object.freeze(tool), input, output, toResult, handler, view, mode };
}

/** `_meta` with the view in both forms, because hosts know one or the other. */
function toMeta({
  view,
  visibility,
  _meta,
}: { readonly [Key in "view" | "visibility" | "_meta"]: ToolSpec<SchemaSource>[Key] | undefined }): Pick<
  Tool,
  "_meta"
> {
  if (view === undefined && visibility === undefined) return _meta === undefined ? {} : { _meta };
  const resourceUri = view?.resource.uri;
  const ui = {
    ...(resourceUri === undefined ? {} : { resourceUri }),
    ...(visibility === undefined ? {} : { visibility }),
  };
  return { _meta: { ..._meta, ui, ...(resourceUri === undefined ? {} : { "ui/resourceUri": resourceUri }) } };
}

/** The same for a tool that starts a job. */
export function toJobEntry(
  name: string,
  spec: ToolSpec<SchemaSource>,
  job: AnyJob,
  onError: OnToolError,
): ToolEntry {
  const what = `Job ${JSON.stringify(name)}`;
  if (
    typeof job !== "object" ||
    job === null ||
    typeof job.start !== "function" ||
    typeof job.status !== "function"
  )
    throw new TypeError(`${what}: write registerJob(name, spec, { start, status }); both are functions`);
  const entry = toEntry(name, spec, job.start as ToolHandler<never>);
  const toResult = (value: unknown): Awaitable<ToolResult> =>
    recover(
      () => entry.toResult(value as HandlerResult, [], onError),
      (error) => {
        onError(error, name);
        return failure(toFailureText(error, name));
      },
    );
  return { ...entry, mode: { task: "required", job: { job, toResult } } };
}

/**
 * The result that a handler meant: a string is text, content is content, a result is itself, and any other value is
 * structured content. If the tool has an output schema, a string is structured content too. Streamed content comes
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

/** Whether a value is a whole result. Other values may have a `content` too, but not one of blocks only. */
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
 * Throws a `TypeError` for a value that was meant as a result, content or a question but is malformed: it would silently be sent as
 * structured content. If the tool has an output schema, that schema decides instead.
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
 * the structured content breaks it. The model cannot fix that, so `onFault` gets the text too.
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
  const { structuredContent: value } = result;
  if (value === undefined)
    return fail("The tool promised structured output and gave none; this is a fault of the tool.");
  return andThen(output.check(value), (checked) => {
    if (!checked.ok) {
      const fault = "The tool's output does not fit its own schema; this is a fault of the tool";
      return fail(describeIssues(checked.issues, fault));
    }
    return checked.value === value ? result : withStructured(result, checked.value);
  });
}

/** Replaces the structured content, and the text that was written from it. */
function withStructured(result: ToolResult, value: unknown): ToolResult {
  const [block] = result.content;
  const isWritten =
    result.content.length === 1 &&
    block?.type === "text" &&
    block.text === JSON.stringify(result.structuredContent);
  return { ...result, ...(isWritten ? structured(value) : { structuredContent: value }) };
}

/** The text that the model gets when a handler fails. Only a `ToolError` is shown in detail. */
export function toFailureText(error: unknown, tool: string): string {
  return error instanceof ToolError ? error.message : `The tool ${tool} failed because of an internal error.`;
}
