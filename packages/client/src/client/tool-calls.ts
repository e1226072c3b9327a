import type { Clock, Deadline, Deadlines } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { RawJson, toJsonValue } from "@junctor/core/json";
import { metaKeys, type LogLevel, type ToolResult } from "@junctor/core/mcp";
import {
  type CallEvent,
  createOperation,
  type Outcome,
  type TaskOutcome,
  toTrace,
} from "@junctor/core/provider";
import { type Recorded, type Tally, newTally } from "./call-record.ts";
import type { RequestSpec } from "./conversation.ts";
import { type QuestionHandlers, answerAll, fulfil } from "./handlers.ts";
import type { Operations } from "./operations.ts";
import { toToolResult } from "./parse-result.ts";
import type { StartedCall, Tasks } from "./tasks.ts";
import type { ToolCheck } from "./tool-check.ts";

/** How one call is made. */
export interface CallOptions {
  /** Aborting stops the call, here and on the server. */
  readonly signal?: AbortSignal;
  /** How long nothing may come; progress starts it anew. */
  readonly timeoutMs?: number;
  /** How long the whole may take, progress or not. */
  readonly maxTotalMs?: number;
  /** Takes progress and logs as they come. */
  readonly onEvent?: (event: CallEvent) => void;
  /** Asks for the server's log of this call, from this level up. */
  readonly logLevel?: LogLevel;
  /** Whether arguments are checked before and structured output after; true. */
  readonly validate?: boolean;
  /** Whether a result with `isError` is thrown as a `ToolError`; false. */
  readonly throwOnToolError?: boolean;
  /** More members of the call's `_meta`, such as trace context: `{ traceparent: "00-…" }`. What the client puts there itself wins. */
  readonly meta?: { readonly [key: string]: unknown };
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

/** Calling tools, for people. */
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

  /** Makes a call. `isFollowed` says whether the result of a task that it becomes is waited for. */
  const make = (name: string, args: object, given: CallOptions, isFollowed: boolean): Promise<Outcome> => {
    const shouldCheck = given.validate ?? options.validate;
    const raw = RawJson.fromValue(args);
    const operation = createOperation("tools/call", name, { arguments: raw });
    const { logLevel, caller } = given;
    const meta = toMetaMembers(given.meta, logLevel);
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
  /** The result of a call; of one that became a task, when that has ended. */
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

/** Members of `_meta` that this client writes itself: what it is, what it can do, and the tokens it knows progress by. */
const ours: ReadonlySet<string> = new Set([
  metaKeys.protocolVersion,
  metaKeys.clientInfo,
  metaKeys.clientCapabilities,
  "progressToken",
]);

/**
 * What the user of a client wants in `_meta`, as members without braces; undefined for nothing. Members that the client
 * writes itself are left out, among them the log level where `logLevel` says one.
 *
 * @throws TypeError for a value that is no object
 */
function toMetaMembers(meta: unknown, logLevel?: LogLevel): string | undefined {
  if (meta === undefined) return undefined;
  if (typeof meta !== "object" || meta === null || Array.isArray(meta))
    throw new TypeError(`_meta must be an object, not ${JSON.stringify(meta)}: write { "traceparent": "…" }`);
  const isTheirs = ([key]: readonly [string, unknown]): boolean =>
    !ours.has(key) && (logLevel === undefined || key !== metaKeys.logLevel);
  const members = JSON.stringify(Object.fromEntries(Object.entries(meta).filter(isTheirs))).slice(1, -1);
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
