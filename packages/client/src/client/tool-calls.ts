import { randomUUID } from "node:crypto";
import {
  type Clock,
  type Deadline,
  type Deadlines,
  type Awaitable,
  dateOf,
  BoundedQueue,
} from "@junctor/core/async";
import { ToolError, SchemaError, ValidationError } from "@junctor/core/errors";
import { RawJson, toJsonValue } from "@junctor/core/json";
import { metaKeys, type LogLevel, type ToolResult, type Tool, type Content } from "@junctor/core/mcp";
import {
  type CallEvent,
  createOperation,
  type Outcome,
  type TaskOutcome,
  toTrace,
  type Audit,
  bounded,
  describeEnd,
  type CallEnd,
} from "@junctor/core/provider";
import { fromJsonSchema, describeIssues, defaultSchemaLimits, type Schema } from "@junctor/core/schema";
import type { RequestSpec, Agreement } from "./conversation.ts";
import { type QuestionHandlers, answerAll, fulfil } from "./handlers.ts";
import { type Operations, toToolResult } from "./operations.ts";
import type { StartedCall, Tasks } from "./tasks.ts";

/** How one call is made. */
export interface CallOptions {
  /** Aborting stops the call, here and on the server. */
  readonly signal?: AbortSignal;
  /** How long the call may go without a message; progress restarts it. */
  readonly timeoutMs?: number;
  /** How long the whole call may take, with or without progress. */
  readonly maxTotalMs?: number;
  /** Takes progress and logs as they come. */
  readonly onEvent?: (event: CallEvent) => void;
  /** Asks for the server's log of this call, from this level up. */
  readonly logLevel?: LogLevel;
  /** Whether to check arguments before the call, and structured output after it; true. */
  readonly validate?: boolean;
  /** Whether a result with `isError` is thrown as a `ToolError`; false. */
  readonly throwOnToolError?: boolean;
  /** More members of the call's `_meta`, such as trace context: `{ traceparent: "00-…" }`. The client's own members win. */
  readonly meta?: { readonly [key: string]: unknown };
  /**
   * Makes the call safe to repeat: a server that knows idempotency keys runs calls with the same key once, and gives all of them its result.
   * Up to 255 visible ASCII characters, such as a UUID.
   */
  readonly idempotencyKey?: string;
  /** Who makes the call, for the audit. */
  readonly caller?: string;
}

interface ToolCallsOptions {
  readonly operations: Operations;
  readonly check: ToolCheck;
  readonly handlers: QuestionHandlers;
  /** Undefined without an audit. */
  readonly recorded: Recorded | undefined;
  readonly deadlines: Deadlines;
  readonly clock: Clock;
  readonly maxRounds: number;
  readonly validate: boolean;
  readonly tasks: Tasks;
}

/** How programs call tools. */
export interface ToolCalls {
  call(name: string, args: object, options: CallOptions): Promise<ToolResult>;
  /** The same, but a call that becomes a task is not waited for. */
  start(name: string, args: object, options: CallOptions): Promise<StartedCall>;
}

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { operations, check, handlers, clock, deadlines, recorded, maxRounds, tasks } = options;

  const toSpec = (
    underway: Deadline,
    args: RawJson,
    tally: Tally,
    onEvent: ((event: CallEvent) => void) | undefined,
  ): RequestSpec => {
    const { stop } = underway;
    const onSent = (): void => {
      underway.isSent = true;
      tally.bytesSent = args.byteLength;
    };
    if (onEvent === undefined) return { stop, onSent };
    const observe = (event: CallEvent): void => {
      underway.touch();
      onEvent(event);
    };
    return { stop, onSent, onEvent: observe };
  };

  /** Makes a call. `isFollowed`: if the call becomes a task, wait for its result. */
  const make = (name: string, args: object, given: CallOptions, isFollowed: boolean): Promise<Outcome> => {
    const shouldCheck = given.validate ?? options.validate;
    const raw = RawJson.fromValue(args);
    const operation = createOperation("tools/call", name, { arguments: raw });
    const { logLevel, caller } = given;
    const meta = toMetaMembers(withKey(given), logLevel);
    const trace = (): string | undefined => toTrace(given.meta?.["traceparent"]);
    const subject = { tool: name, args: raw, caller, trace };
    const work = (tally: Tally): Promise<Outcome> =>
      deadlines.run(given, async (underway) => {
        const tool = shouldCheck ? await operations.findTool(name, underway.stop) : undefined;
        if (tool !== undefined) await check.checkArguments(tool, raw.value);
        const spec = { ...toSpec(underway, raw, tally, given.onEvent), logLevel, meta };
        const ended = await fulfil(
          (round) => operations.send(round === undefined ? operation : { ...operation, round }, spec),
          (asks) => answerAll(asks, handlers, underway.stop.signal, clock).finally(underway.hold()),
          maxRounds,
        );
        if (ended.task !== undefined && !isFollowed) return ended;
        const result = await finish(ended, underway, given);
        tally.bytesReceived = result.byteLength;
        if (tool !== undefined && result.at("isError")?.value !== true)
          await check.checkOutput(tool, result.at("structuredContent")?.value);
        return { kind: "complete", result };
      });
    return recorded === undefined ? work(newTally()) : recorded(subject, work);
  };
  /** The result of a call. If the call became a task, waits for its end. */
  const finish = async (ended: Outcome, underway: Deadline, { onEvent }: CallOptions): Promise<RawJson> => {
    if (ended.task !== undefined)
      return tasks.follow(ended as TaskOutcome, underway, (message) =>
        onEvent?.({ kind: "progress", message }),
      );
    return ended.kind === "complete" ? ended.result : RawJson.fromText("{}");
  };
  const toResult = (outcome: Outcome, { throwOnToolError }: CallOptions): ToolResult => {
    const result = toToolResult(outcome.kind === "complete" ? outcome.result : RawJson.fromValue({}));
    if (throwOnToolError === true && result.isError === true) throw new ToolError(describeFailure(result));
    return result;
  };

  return {
    call: async (name, args, given) => toResult(await make(name, args, given, true), given),
    start: async (name, args, given) => {
      const outcome = await make(name, args, given, false);
      if (outcome.task !== undefined) return { kind: "task", task: tasks.task(outcome.task.ref) };
      return { kind: "complete", result: toResult(outcome, given) };
    },
  };
}

function describeFailure({ content }: ToolResult): string {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.length === 0 ? "The tool failed without saying why." : texts.join("\n");
}

function withKey({ meta, idempotencyKey }: CallOptions): CallOptions["meta"] {
  return idempotencyKey === undefined ? meta : { ...meta, [metaKeys.idempotencyKey]: idempotencyKey };
}

/** Members of `_meta` that this client writes itself: what it is, what it can do, and its progress tokens. */
const ownMembers: ReadonlySet<string> = new Set([
  metaKeys.protocolVersion,
  metaKeys.clientInfo,
  metaKeys.clientCapabilities,
  "progressToken",
]);

/**
 * The `_meta` that the user of a client wants, as members without braces; undefined if there are none. Leaves out the members
 * that the client writes itself, and the log level if `logLevel` is given.
 *
 * @throws TypeError for a value that is not an object
 */
function toMetaMembers(meta: unknown, logLevel?: LogLevel): string | undefined {
  if (meta === undefined) return undefined;
  if (typeof meta !== "object" || meta === null || Array.isArray(meta))
    throw new TypeError(`_meta must be an object, not ${JSON.stringify(meta)}: write { "traceparent": "…" }`);
  const isFromUser = ([key]: readonly [string, unknown]): boolean =>
    !ownMembers.has(key) && (logLevel === undefined || key !== metaKeys.logLevel);
  const members = JSON.stringify(Object.fromEntries(Object.entries(meta).filter(isFromUser))).slice(1, -1);
  return members === "" ? undefined : members;
}

/** Takes `_meta` out of the params of a request, because the client writes one itself. */
export function splitMeta(given: object | undefined): {
  readonly params: RawJson | undefined;
  readonly meta: string | undefined;
} {
  if (given === undefined) return { params: undefined, meta: undefined };
  const params = toJsonValue(given) as { readonly [key: string]: unknown };
  if (!Object.hasOwn(params, "_meta")) return { params: RawJson.fromValue(params), meta: undefined };
  const { _meta, ...rest } = params;
  return { params: RawJson.fromValue(rest), meta: toMetaMembers(_meta) };
}

/** Checks arguments and results of tools against the schemas that they list. */
interface ToolCheck {
  /** Throws a `ValidationError` for arguments that do not fit. */
  checkArguments(tool: Tool, args: unknown): Promise<void>;
  /** Throws a `ValidationError` for structured output that does not fit, or is missing. */
  checkOutput(tool: Tool, structured: unknown): Promise<void>;
}

/**
 * Compiles schemas when they are first needed, and keeps them as long as their tool. A schema that cannot be used is reported
 * once and ignored, because many servers have one.
 */
export function createToolCheck(onWarning: (text: string) => void): ToolCheck {
  const schemas = new WeakMap<object, Schema | "unusable">();

  const schemaOf = (tool: Tool, json: { readonly [keyword: string]: unknown }): Schema | undefined => {
    let schema = schemas.get(json);
    if (schema === undefined) {
      schema = usable(() => fromJsonSchema(json, defaultSchemaLimits), tool) ?? "unusable";
      schemas.set(json, schema);
    }
    return schema === "unusable" ? undefined : schema;
  };
  const usable = <T>(use: () => T, tool: Tool): T | undefined => {
    try {
      return use();
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      onWarning(`A schema of the tool ${tool.name} is not checked by: ${error.message}`);
      return undefined;
    }
  };
  const check = async (
    tool: Tool,
    json: { readonly [keyword: string]: unknown },
    value: unknown,
    subject: "arguments" | "output",
  ): Promise<void> => {
    const schema = schemaOf(tool, json);
    if (schema === undefined) return;
    try {
      const checked = await schema.check(value);
      if (checked.ok) return;
      const text = describeIssues(
        checked.issues,
        subject === "arguments" ? "Invalid arguments" : "Invalid output",
      );
      throw new ValidationError(tool.name, subject, checked.issues, text);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      schemas.set(json, "unusable");
      onWarning(`A schema of the tool ${tool.name} is not checked by: ${error.message}`);
    }
  };

  return {
    checkArguments: (tool, args) => check(tool, tool.inputSchema, args, "arguments"),
    checkOutput: async (tool, structured) => {
      if (tool.outputSchema === undefined) return;
      if (structured !== undefined) return check(tool, tool.outputSchema, structured, "output");
      const issues = [{ path: "", message: "structuredContent is missing" }];
      throw new ValidationError(tool.name, "output", issues, describeIssues(issues, "Invalid output"));
    },
  };
}

/** A call, as far as it is known before it is made. */
interface CallSubject {
  readonly tool: string;
  readonly args: RawJson;
  readonly caller: string | undefined;
  /** Looked up only when the call is recorded. */
  readonly trace?: () => string | undefined;
}

/** What is counted during a call, for its record. */
interface Tally {
  bytesSent: number;
  bytesReceived: number;
}

/** Runs a call and records it, however it ends. */
export type Recorded = (subject: CallSubject, work: (tally: Tally) => Promise<Outcome>) => Promise<Outcome>;

interface RecordedOptions {
  readonly audit: Audit;
  readonly target: string;
  readonly clock: Clock;
  /** The last agreement with the server. */
  readonly agreement: () => Agreement | undefined;
}

function newTally(): Tally {
  return { bytesSent: 0, bytesReceived: 0 };
}

export function createRecorded({ audit, target, clock, agreement }: RecordedOptions): Recorded {
  return async ({ tool, args, caller, trace }, work) => {
    const startedAt = clock.now();
    const tally = newTally();
    const finish = (end: CallEnd): Awaitable<boolean> => {
      const mode = agreement()?.mode;
      return audit.record({
        time: dateOf(startedAt, clock),
        call: randomUUID(),
        trace: trace?.(),
        caller: caller === undefined ? undefined : bounded(caller),
        server: bounded(target),
        tool: bounded(tool),
        era: mode?.kind,
        revision: mode?.revision,
        ...audit.describeArguments(args, tool),
        ...describeEnd(end),
        ...tally,
        durationMs: clock.now() - startedAt,
      });
    };
    const outcome = await work(tally).catch(async (error: unknown) => {
      await finish({ kind: "failed", error });
      throw error;
    });
    await finish(outcome);
    return outcome;
  };
}

/** What a streamed call yields: events, and at the end the result. */
export type CallPart = CallEvent | { readonly kind: "result"; readonly result: ToolResult };

/** The most events that wait for a slow reader; more are dropped. */
const maxWaiting = 1000;

/** Runs a call and yields its events in order, the result last. Rejects as the call does; leaving the loop early cancels the call. */
export async function* streamCall(
  call: (options: CallOptions) => Promise<ToolResult>,
  options: CallOptions = {},
): AsyncGenerator<CallPart, void> {
  const leaving = new AbortController();
  const signal =
    options.signal === undefined ? leaving.signal : AbortSignal.any([options.signal, leaving.signal]);
  const parts = new BoundedQueue<CallEvent>(maxWaiting);
  let waiting = 0;
  const onEvent = (event: CallEvent): void => {
    options.onEvent?.(event);
    if (waiting >= maxWaiting) return;
    waiting++;
    void parts.push(event);
  };
  const ended = call({ ...options, signal, onEvent }).finally(() => parts.close());
  ended.catch(() => {}); // Reported below, after what came before it.
  try {
    for await (const part of parts) {
      waiting--;
      yield part;
    }
    yield { kind: "result", result: await ended };
  } finally {
    leaving.abort();
  }
}

/**
 * The text of a result: its text blocks and the texts of embedded resources, a line each. Leaves out everything else, such as images.
 *
 * @example
 * console.log(textOf(await client.callTool("search", { query: "junctor" })));
 */
export function textOf({ content }: { readonly content: readonly Content[] }): string {
  return content
    .flatMap((block) => {
      if (block.type === "text") return [block.text];
      return block.type === "resource" && "text" in block.resource ? [block.resource.text] : [];
    })
    .join("\n");
}
