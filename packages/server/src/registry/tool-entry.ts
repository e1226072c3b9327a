import { type Awaitable, recover } from "@junctor/core/async";
import { assertDefinition } from "@junctor/core/fit";
import type { Content, Tool, ToolResult } from "@junctor/core/mcp";
import { failure } from "@junctor/core/provider";
import type { AppView } from "./app-view.ts";
import type { HandlerResult, ToolHandler } from "./event.ts";
import type { AnyJob } from "./jobs.ts";
import { checkOutput, toFailureText, toToolResult } from "./result.ts";
import { type Schema, type SchemaSource, toObjectRoot, toSchema } from "./schema.ts";
import type { TaskMode } from "./task-tools.ts";
import { assertToolSpec, type TaskSpec, type ToolSpec } from "./tool-spec.ts";

/** Hears of errors that are not meant for the model. */
export type OnToolError = (error: unknown, tool: string) => void;

/** A registered tool. */
export interface ToolEntry {
  readonly tool: Tool;
  readonly input: Schema;
  readonly output: Schema | undefined;
  /** The result that the tool promised, from what its handler returned. Output that does not fit is told to `onError` too. */
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

/** Makes a tool ready to be called. Throws a `TypeError` for a spec that cannot be used. */
export function toEntry(
  name: string,
  spec: ToolSpec<SchemaSource> & Partial<TaskSpec<never>>,
  handler: ToolHandler<never>,
): ToolEntry {
  assertToolSpec(name, spec, handler);
  const { input: inputSource = noInput, output: outputSource, task, askFirst, ...others } = spec;
  const { view, visibility, _meta, ...shown } = others;
  const what = `Tool ${JSON.stringify(name)}`;
  const given = toSchema(inputSource, { what: `${what}: input` });
  const input = toObjectRoot(given, `${what}: input`);
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

/** The view in both forms: hosts know one or the other. */
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
