import type { Content, LogLevel, ToolResult } from "@junctor/core/mcp";
import {
  type AnswerReader,
  type FailedResult,
  type StructuredResult,
  text,
  type CallContext,
  type CallEvent,
  type InputRequired,
} from "@junctor/core/provider";
import type { AppView } from "./app-view.ts";
import { assertEvent } from "./event-check.ts";

/** What a streaming tool yields. A plain string is short for a `content` event with that text. */
export type ToolEvent =
  | string
  /** Part of the result: it goes out at once and is in the final result too. */
  | { readonly type: "content"; readonly content: string | Content }
  /** The tool is using another tool; shown, not kept. */
  | { readonly type: "toolUse"; readonly name: string }
  | {
      readonly type: "progress";
      readonly progress: number;
      readonly total?: number;
      readonly message?: string;
    }
  | { readonly type: "log"; readonly level: LogLevel; readonly data: unknown; readonly logger?: string }
  /** Ends the call with `isError: true`. */
  | { readonly type: "error"; readonly message: string }
  /** Ends the call, with what was streamed so far. */
  | { readonly type: "complete" };

/**
 * A value that goes out as `structuredContent`, to the compiler. A generator, a Map or bytes are none: they have an
 * iterator, and JSON has no such thing. A function is none either.
 */
export type StructuredValue =
  | (object & JsonObject)
  | (JsonObject & { readonly [key: string]: unknown })
  | readonly unknown[]
  | number
  | boolean
  | null;

interface JsonObject {
  readonly [Symbol.hasInstance]?: never;
  readonly [Symbol.iterator]?: never;
  readonly [Symbol.asyncIterator]?: never;
}

/** What a handler may give back when its tool declares no `output`. */
export type HandlerResult =
  | string
  | Content
  | readonly Content[]
  | ToolResult
  | InputRequired
  | StructuredValue
  | void;

/** What a handler may give back when its tool declares an `output` of this type. */
export type OutputResult<Value> = Value | StructuredResult<Value> | FailedResult | InputRequired;

/** A handler that yields events as they happen, while it runs. */
export type EventStream<Result = HandlerResult> =
  | AsyncGenerator<ToolEvent, Result>
  | Generator<ToolEvent, Result>;

/** How a streaming tool ended, when it did not return a result of its own. */
export type StreamEnd =
  | { readonly kind: "returned"; readonly value: HandlerResult; readonly streamed: readonly Content[] }
  | { readonly kind: "failed"; readonly message: string };

/** After so many events the event loop has a turn, in which a call can be cancelled. A reader that is gone takes events at once. */
const eventsPerTurn = 64;

/**
 * Runs a generator to its end: emits every event as it comes, waits until each was taken, and collects the content.
 * When the signal aborts, `return` of the generator is called, so its `finally` blocks run.
 */
export async function drainEvents(
  events: EventStream,
  emit: (event: CallEvent) => Promise<void>,
  signal: AbortSignal,
): Promise<StreamEnd> {
  const streamed: Content[] = [];
  const tell = (event: CallEvent): Promise<void> => untilAborted(() => emit(event), signal);
  try {
    for (let count = 1; ; count++) {
      if (count % eventsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      const step = await events.next();
      if (step.done === true) return { kind: "returned", value: step.value, streamed: joinText(streamed) };
      const event =
        typeof step.value === "string" ? ({ type: "content", content: step.value } as const) : step.value;
      // A plain string, of which most streams are made, needs no check.
      if (event === step.value) assertEvent(event);
      switch (event.type) {
        case "content": {
          const block = typeof event.content === "string" ? text(event.content) : event.content;
          streamed.push(block);
          await tell({ kind: "progress", message: describe(block) });
          break;
        }
        case "toolUse":
          await tell({ kind: "progress", message: `Using tool: ${event.name}` });
          break;
        case "progress": {
          const { type: _, ...progress } = event;
          await tell({ kind: "progress", ...progress });
          break;
        }
        case "log": {
          const { type: _, ...entry } = event;
          await tell({ kind: "log", ...entry });
          break;
        }
        case "error":
          return { kind: "failed", message: event.message };
        case "complete":
          return { kind: "returned", value: undefined, streamed: joinText(streamed) };
      }
    }
  } finally {
    await events.return(undefined);
  }
}

/** Does something and waits for it, but not past an abort: a transport that is stuck must not hold up `finally`. */
function untilAborted(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const settle = (): void => signal.removeEventListener("abort", onAbort);
    work().then(resolve, reject).finally(settle);
  });
}

/** Pieces of streamed text are one text in the result: "Hello" and " world" were never two paragraphs. */
function joinText(blocks: readonly Content[]): readonly Content[] {
  const joined: Content[] = [];
  for (const block of blocks) {
    const last = joined.at(-1);
    const canJoin = last?.type === "text" && block.type === "text" && !last.annotations && !block.annotations;
    if (canJoin && last._meta === undefined && block._meta === undefined)
      joined[joined.length - 1] = text(last.text + block.text);
    else joined.push(block);
  }
  return joined;
}

function describe(block: Content): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}, ${block.mimeType}]`;
    case "resource_link":
      return `[${block.title ?? block.name}](${block.uri})`;
    case "resource":
      return `[resource ${block.resource.uri}]`;
  }
}

/** What a tool's handler gets besides its arguments. */
export interface ToolContext extends CallContext {
  /** Answers to what this call asked for in earlier rounds. */
  readonly answers: AnswerReader;
  /** What the last round put into `inputRequired(asks, state)`. */
  readonly state: unknown;
  /** Whether the caller shows views. A tool with a view that is not shown should say in text what the view would show. */
  canShow(view?: AppView): boolean;
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
