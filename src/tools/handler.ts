import { ToolError } from "../errors/tool-error.ts";
import type { LogLevel } from "../mcp/types.ts";
import { type AnswerReader, readAnswers } from "./ask.ts";
import type { CallContext } from "./context.ts";
import type { HandlerResult, ToolEvent } from "./event.ts";
import type { ToolCall } from "./provider.ts";

/** What a tool's handler gets besides its arguments. */
export interface ToolContext extends CallContext {
  /** Answers to what this call asked for in earlier rounds. */
  readonly answers: AnswerReader;
  /** What the last round put into `inputRequired(asks, state)`. */
  readonly state: unknown;
  /** Tells the caller how far the work is. */
  progress(progress: number, total?: number, message?: string): Promise<void>;
  /** Writes to the caller's log, if they asked for one. */
  log(level: LogLevel, data: unknown, logger?: string): Promise<void>;
}

/**
 * A tool's code. It returns a string, content, a result or any JSON value, or it is an async generator that yields
 * events as they happen. Throw a `ToolError` to tell the model what went wrong; any other error is reported without
 * detail.
 */
export type ToolHandler<Arguments> = (
  args: Arguments,
  context: ToolContext,
) => HandlerResult | Promise<HandlerResult> | AsyncGenerator<ToolEvent, HandlerResult>;

/** The context a handler sees for one call. */
export function toToolContext(call: ToolCall, context: CallContext): ToolContext {
  return {
    ...context,
    emit: (event) => context.emit(event),
    answers: readAnswers(call.resumption),
    state: call.resumption?.state,
    progress: (progress, total, message) =>
      context.emit({
        kind: "progress",
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }),
    log: (level, data, logger) =>
      context.emit({ kind: "log", level, data, ...(logger === undefined ? {} : { logger }) }),
  };
}

/** Whether a handler's return value is a stream of events. */
export function isEventStream(value: unknown): value is AsyncGenerator<ToolEvent, HandlerResult> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;
}

/** What the model is told when a handler fails. Detail of errors that were not meant for it stays here. */
export function toFailureText(error: unknown, tool: string): string {
  return error instanceof ToolError ? error.message : `The tool ${tool} failed because of an internal error.`;
}
