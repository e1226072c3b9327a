import { ToolError } from "../errors/tool-error.ts";
import type { LogLevel } from "../mcp/types.ts";
import { type AnswerReader, readAnswers } from "./ask.ts";
import type { CallContext } from "./context.ts";
import type { EventStream, HandlerResult } from "./event.ts";
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
 * A tool's code. It returns a string, content, a result or any JSON value, or it is a generator, async or not, that
 * yields events as they happen. Throw a `ToolError` to tell the model what went wrong; any other error is reported
 * without detail.
 */
export type ToolHandler<Arguments, Result = HandlerResult> = (
  args: Arguments,
  context: ToolContext,
) => Result | Promise<Result> | EventStream<Result>;

/**
 * The context a handler sees for one call. Everything is made when it is asked for, because most tools ask for little;
 * what is a function stays one when it is taken out of the context.
 */
export class HandlerContext implements ToolContext {
  // Not #private: `deriveContext` makes objects that inherit from this one.
  private readonly call: ToolCall;
  private readonly context: CallContext;

  constructor(call: ToolCall, context: CallContext) {
    this.call = call;
    this.context = context;
  }

  get signal(): AbortSignal {
    return this.context.signal;
  }
  get cancellation(): CallContext["cancellation"] {
    return this.context.cancellation;
  }
  get caller(): string | undefined {
    return this.context.caller;
  }
  get revision(): CallContext["revision"] {
    return this.context.revision;
  }
  get capabilities(): CallContext["capabilities"] {
    return this.context.capabilities;
  }
  get clientInfo(): CallContext["clientInfo"] {
    return this.context.clientInfo;
  }
  get meta(): CallContext["meta"] {
    return this.context.meta;
  }
  get headers(): CallContext["headers"] {
    return this.context.headers;
  }
  get wantsProgress(): boolean {
    return this.context.wantsProgress;
  }
  get logLevel(): CallContext["logLevel"] {
    return this.context.logLevel;
  }
  get session(): object | undefined {
    return this.context.session;
  }
  get ask(): CallContext["ask"] {
    return this.context.ask;
  }
  get visited(): CallContext["visited"] {
    return this.context.visited;
  }
  get answers(): AnswerReader {
    return readAnswers(this.call.resumption);
  }
  get state(): unknown {
    return this.call.resumption?.state;
  }
  get emit(): CallContext["emit"] {
    return (event) => this.context.emit(event);
  }
  get release(): CallContext["release"] {
    return () => this.context.release();
  }
  get progress(): ToolContext["progress"] {
    return (progress, total, message) =>
      this.context.emit({
        kind: "progress",
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      });
  }
  get log(): ToolContext["log"] {
    return (level, data, logger) =>
      this.context.emit({ kind: "log", level, data, ...(logger === undefined ? {} : { logger }) });
  }
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
