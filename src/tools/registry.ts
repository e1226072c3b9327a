import { andThen, type Awaitable, recover, settled } from "../async/awaitable.ts";
import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import { parseText } from "../json/value.ts";
import type { CacheHints, Content, LogLevel, Tool, ToolResult } from "../mcp/types.ts";
import { assertKnownKeys, keys, type KeysOf } from "../options/known-keys.ts";
import { describeIssues } from "../schema/issue.ts";
import {
  type InferredOutput,
  type Schema,
  type SchemaSource,
  toObjectRoot,
  toSchema,
} from "../schema/schema.ts";
import { isInputRequired, noAnswers, readAnswers } from "./ask.ts";
import { type NamedEntries, createNamedEntries } from "./catalog.ts";
import { failure } from "./content.ts";
import { type CallContext, withContext } from "./context.ts";
import {
  type EventStream,
  type HandlerResult,
  type ToolContext,
  type ToolHandler,
  drainEvents,
} from "./event.ts";
import type { PromptRegistry } from "./prompts.ts";
import type { Change, CompletionProvider, Provider, ToolCall, ToolOutcome } from "./provider.ts";
import type { ResourceRegistry } from "./resources.ts";
import { checkOutput, toToolResult } from "./result.ts";
import {
  assertToolSpec,
  type CheckedLater,
  type Handled,
  type ObjectSource,
  type ResultFor,
  type SoundOutput,
  type SoundSchemas,
  type ToolSpec,
} from "./tool-spec.ts";

export interface RegistryOptions {
  readonly resources?: ResourceRegistry;
  readonly prompts?: PromptRegistry;
  readonly completion?: CompletionProvider;
  readonly cacheHints?: CacheHints;
  /** Told of every error that was not a `ToolError`; the default writes it to the standard error stream. */
  readonly onError?: (error: unknown, tool: string) => void;
}

const registryOptionKeys: KeysOf<RegistryOptions> = keys("resources prompts completion cacheHints onError");

interface ToolEntry {
  readonly tool: Tool;
  readonly input: Schema;
  readonly output: Schema | undefined;
  readonly handler: ToolHandler<never>;
}

/** Tools living in this process. Made by {@link createRegistry}. */
export interface Registry extends Provider {
  /**
   * Adds a tool. What the handler returns, and what a generator returns at its end, must fit `output`. Throws at once for a
   * bad or taken name, an unknown key of the spec, a missing handler and a schema that cannot be used.
   *
   * @example
   * registry.register("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
   */
  register<const Input extends ObjectSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & { readonly output?: SoundOutput<Output> },
    handler: NoInfer<ToolHandler<InferredOutput<Input>, ResultFor<Output>>>,
  ): void;
  /** Adds a tool whose result is checked against `output` only when it is there: one that another tool gave. */
  register<
    const Input extends ObjectSource = NoInput,
    const Output extends SchemaSource = never,
    Returned extends Handled<Output> = never,
  >(
    name: string,
    spec: ToolSpec<Input, Output> & { readonly output: SoundOutput<Output> } & CheckedLater<Returned, Output>,
    handler: (args: NoInfer<InferredOutput<Input>>, context: ToolContext) => Returned,
  ): void;
  /** Adds a tool whose schemas are known when the program runs. The compiler shows the error of this one. */
  register<const Input extends SchemaSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & SoundSchemas<Input, Output>,
    handler: NoInfer<ToolHandler<InferredOutput<Input>, ResultFor<Output>>>,
  ): void;
  /** Removes a tool; calls that run are not touched. False when there was none. */
  unregister(name: string): boolean;
}

/** A schema in our own source needs no guard against patterns that never end; the guard costs 60 µs a call. */
const trusted = { maxCheckMs: Infinity };

type NoInput = { readonly type: "object"; readonly additionalProperties: false };
const noInput: NoInput = { type: "object", additionalProperties: false };

/**
 * An empty registry. Give it sibling registries to offer resources, prompts and completion as well: a facet that is
 * not given is not declared to clients.
 *
 * @example
 * const registry = createRegistry();
 * registry.register("hello", { description: "Greets" }, () => "Hello!");
 */
export function createRegistry(options: RegistryOptions = {}): Registry {
  assertKnownKeys("createRegistry", options, registryOptionKeys);
  const { resources, prompts, completion, cacheHints, onError = writeError } = options;
  const catalog: NamedEntries<ToolEntry, Tool> = createNamedEntries(
    "The tool",
    { kind: "tools" },
    (entry) => entry.tool,
  );

  const run = (entry: ToolEntry, call: ToolCall, context: CallContext): Awaitable<ToolOutcome> =>
    andThen(entry.input.check(freshArguments(call)), (checked) => {
      if (!checked.ok)
        return { ...complete(failure(describeIssues(checked.issues))), refusal: "tool.invalid_arguments" };
      const returned = entry.handler(checked.value as never, toToolContext(call, context));
      if (isEventStream(returned)) return runStream(entry, returned, context);
      return andThen(settled(returned), (value) => toOutcome(entry, value, []));
    });

  return {
    register: (name: string, spec: ToolSpec<SchemaSource>, handler: unknown) =>
      catalog.add(name, toEntry(name, spec, handler as ToolHandler<never>)),
    unregister: (name) => catalog.remove(name),
    listTools: () => catalog.list(),
    toolNamed: (name) => catalog.entries.get(name)?.tool,
    callTool: (call, context) => {
      const entry = catalog.entries.get(call.name);
      if (entry === undefined) return Promise.reject(new NotFoundError("tool", call.name));
      const rescue = (error: unknown): ToolOutcome => {
        if (error instanceof RpcError || context.signal.aborted) throw error;
        if (!(error instanceof ToolError)) onError(error, call.name);
        return complete(failure(toFailureText(error, call.name)));
      };
      return recover(() => run(entry, call, context), rescue);
    },
    onChange: (listener: (change: Change) => void) => {
      const stops = [catalog, resources, prompts].map((source) => source?.onChange(listener));
      return () => stops.forEach((stop) => stop?.());
    },
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
    ...(completion === undefined ? {} : { completion }),
    ...(cacheHints === undefined ? {} : { cacheHints }),
  };
}

function toEntry(name: string, spec: ToolSpec<SchemaSource>, handler: ToolHandler<never>): ToolEntry {
  assertToolSpec(name, spec, handler);
  const { input: inputSource = noInput, output: outputSource, ...shown } = spec;
  const what = `Tool ${JSON.stringify(name)}`;
  const given = toSchema(inputSource, { limits: trusted, what: `${what}: input` });
  const input = toObjectRoot(given, `${what}: input`);
  const output =
    outputSource === undefined
      ? undefined
      : toSchema(outputSource, { side: "output", limits: trusted, what: `${what}: output` });
  const tool: Tool = {
    name,
    ...shown,
    inputSchema: input.json,
    ...(output === undefined ? {} : { outputSchema: output.json }),
  };
  return { tool: Object.freeze(tool), input, output, handler };
}

/** The context a handler gets: the call's own, with the answers of earlier rounds and two ways to emit. */
export function toToolContext({ resumption }: ToolCall, context: CallContext): ToolContext {
  return withContext(context, {
    answers: resumption === undefined ? noAnswers : readAnswers(resumption),
    state: resumption?.state,
    progress: (progress: number, total?: number, message?: string) =>
      context.emit({
        kind: "progress",
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }),
    log: (level: LogLevel, data: unknown, logger?: string) =>
      context.emit({ kind: "log", level, data, ...(logger === undefined ? {} : { logger }) }),
  });
}

/** Whether a handler's return value is a stream of events: what `function*` and `async function*` give. */
export function isEventStream(value: unknown): value is EventStream {
  if (typeof value !== "object" || value === null || !("next" in value)) return false;
  return (Symbol.asyncIterator in value || Symbol.iterator in value) && "return" in value;
}

/** What the model is told when a handler fails. Detail of errors that were not meant for it stays here. */
export function toFailureText(error: unknown, tool: string): string {
  return error instanceof ToolError ? error.message : `The tool ${tool} failed because of an internal error.`;
}

async function runStream(entry: ToolEntry, events: EventStream, context: CallContext): Promise<ToolOutcome> {
  const end = await drainEvents(events, (event) => context.emit(event), context.signal);
  return end.kind === "failed" ? complete(failure(end.message)) : toOutcome(entry, end.value, end.streamed);
}

function toOutcome(
  entry: ToolEntry,
  value: HandlerResult,
  streamed: readonly Content[],
): Awaitable<ToolOutcome> {
  if (typeof value === "string" && streamed.length === 0 && entry.output === undefined) {
    return { kind: "complete", result: toTextResult(value) };
  }
  if (isInputRequired(value)) return value;
  return andThen(
    checkOutput(toToolResult(value, streamed, entry.output !== undefined), entry.output),
    complete,
  );
}

/** Parsed anew for every attempt: a handler may change its arguments, and the next must not see that. */
function freshArguments({ arguments: args }: ToolCall): unknown {
  return parseText(args.text);
}

/** Most tools answer with one string, which is quickly written by hand. */
function toTextResult(value: string): RawJson {
  const json = `{"content":[{"type":"text","text":${JSON.stringify(value)}}]}`;
  return RawJson.fromValue({ content: [{ type: "text", text: value }] }, json);
}

function complete(result: ToolResult): Extract<ToolOutcome, { readonly kind: "complete" }> {
  return { kind: "complete", result: RawJson.fromValue(result) };
}

function writeError(error: unknown, tool: string): void {
  console.error(`The tool ${tool} failed:`, error);
}
