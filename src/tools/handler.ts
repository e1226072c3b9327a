import type { LogLevel } from "../mcp/types.ts";
import type { AnswerReader } from "./ask.ts";
import type { CallContext } from "./context.ts";
import type { EventStream, HandlerResult } from "./event.ts";

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
 * A tool's code. It returns a string, content, a result or any JSON value, or it is a generator, async or not, that
 * yields events as they happen. Throw a `ToolError` to tell the model what went wrong; any other error is reported
 * without detail.
 */
export type ToolHandler<Arguments, Result = HandlerResult> = (
  args: Arguments,
  context: ToolContext,
) => Result | Promise<Result> | EventStream<Result>;
