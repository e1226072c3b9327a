import { type Content, type LogLevel, type ToolResult, isLogLevel, logLevels } from "@junctor/core/mcp";
import { nearest } from "@junctor/core/options";
import {
  type AnswerReader,
  type FailedResult,
  type StructuredResult,
  text,
  type CallContext,
  type CallEvent,
  type InputRequired,
  isContent,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { AppView } from "./app-view.ts";

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
 * The type of a value that is sent as `structuredContent`. Excludes functions, and all with an iterator, such as generators,
 * maps and bytes: JSON has no such values.
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

/** What a handler may return when its tool declares no `output`. */
export type HandlerResult =
  | string
  | Content
  | readonly Content[]
  | ToolResult
  | InputRequired
  | StructuredValue
  | void;

/** What a handler may return when its tool declares an `output` of this type. */
export type OutputResult<Value> = Value | StructuredResult<Value> | FailedResult | InputRequired;

/** A handler that yields events as they happen, while it runs. */
export type EventStream<Result = HandlerResult> =
  | AsyncGenerator<ToolEvent, Result>
  | Generator<ToolEvent, Result>;

/** How a streaming tool ended, when it did not return a result of its own. */
export type StreamEnd =
  | { readonly kind: "returned"; readonly value: HandlerResult; readonly streamed: readonly Content[] }
  | { readonly kind: "failed"; readonly message: string };

/** After this many events the event loop gets a turn, in which the call can be cancelled. Emitting does not always wait. */
const eventsPerTurn = 64;

/**
 * Runs a generator to its end: emits every event as it comes, waits until it was taken, and collects the content. When the
 * signal aborts, calls `return` of the generator, so that its `finally` blocks run.
 */
export async function drainEvents(
  events: EventStream,
  emit: (event: CallEvent) => Promise<void>,
  signal: AbortSignal,
): Promise<StreamEnd> {
  const streamed: Content[] = [];
  const emitOrAbort = (event: CallEvent): Promise<void> => untilAborted(() => emit(event), signal);
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
          await emitOrAbort({ kind: "progress", message: describe(block) });
          break;
        }
        case "toolUse":
          await emitOrAbort({ kind: "progress", message: `Using tool: ${event.name}` });
          break;
        case "progress": {
          const { type: _, ...progress } = event;
          await emitOrAbort({ kind: "progress", ...progress });
          break;
        }
        case "log": {
          const { type: _, ...entry } = event;
          await emitOrAbort({ kind: "log", ...entry });
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

/** Waits for `work`, but not past an abort: a stuck transport must not hold up `finally`. */
function untilAborted(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const settle = (): void => signal.removeEventListener("abort", onAbort);
    work().then(resolve, reject).finally(settle);
  });
}

/** Joins pieces of streamed text, which are one text in the result. */
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
  /** Whether the caller shows views. If not, a tool with a view should say in text what the view would show. */
  canShow(view?: AppView): boolean;
  /** Reports progress to the caller. */
  progress(progress: number, total?: number, message?: string): Promise<void>;
  /** Sends a log message to the caller, if it asked for them. */
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

/** What one member of an event must be. */
interface EventMember {
  readonly is: (value: unknown) => boolean;
  /** The end of the sentence "it must be …". */
  readonly expected: string;
  readonly isOptional?: boolean;
}

type EventMembers = { readonly [name: string]: EventMember };

const isString = (value: unknown): boolean => typeof value === "string";
const aString: EventMember = { is: isString, expected: "a string" };
const aNumber: EventMember = { is: Number.isFinite, expected: "a number" };
const optional = (member: EventMember): EventMember => ({ ...member, isOptional: true });

/** The members of each type of event, besides `type`. */
const eventMembers: { readonly [type: string]: EventMembers } = {
  content: {
    content: {
      is: (value) => isString(value) || isContent(value),
      expected: 'a string or a content block such as { type: "text", text: "…" }',
    },
  },
  toolUse: { name: aString },
  progress: { progress: aNumber, total: optional(aNumber), message: optional(aString) },
  log: {
    level: { is: isLogLevel, expected: `one of ${logLevels.join(", ")}` },
    data: { is: () => true, expected: "a value that has JSON" },
    logger: optional(aString),
  },
  error: { message: aString },
  complete: {},
};

const eventTypes = Object.keys(eventMembers);

/** Throws a `TypeError` for a yielded value that is not an event, with what to yield instead. */
function assertEvent(event: unknown): void {
  const type = typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
  const known = typeof type === "string" && Object.hasOwn(eventMembers, type);
  const members = known ? eventMembers[type] : undefined;
  if (members === undefined) throw new TypeError(describeNoEvent(event, type));
  const mistake = findMistake(event as { readonly [name: string]: unknown }, members);
  if (mistake !== undefined)
    throw new TypeError(`A streaming tool yielded an event of type "${String(type)}" ${mistake}`);
}

/** Throws a `TypeError` for wrong arguments of `context.progress` or `context.log`. */
export function assertArguments(
  usage: string,
  { type, ...members }: { readonly type: "progress" | "log"; readonly [name: string]: unknown },
): void {
  const mistake = findMistake(members, eventMembers[type] ?? {});
  if (mistake !== undefined)
    throw new TypeError(`Write context.${usage}: it was called with arguments ${mistake}`);
}

function findMistake(event: { readonly [name: string]: unknown }, members: EventMembers): string | undefined {
  for (const name of Object.keys(event)) {
    if (name === "type" || Object.hasOwn(members, name)) continue;
    const names = Object.keys(members);
    const likely = nearest(name, names);
    const hint =
      likely === undefined ? `its members are ${["type", ...names].join(", ")}` : `did you mean "${likely}"?`;
    return `with the member ${JSON.stringify(name)}, which it does not have; ${hint}`;
  }
  for (const [name, { is, expected, isOptional = false }] of Object.entries(members)) {
    const value = event[name];
    if (value === undefined ? isOptional : is(value)) continue;
    const found = value === undefined ? "is missing" : `is ${describeValue(value)}`;
    return `whose "${name}" ${found}; it must be ${expected}`;
  }
  return undefined;
}

function describeNoEvent(event: unknown, type: unknown): string {
  if (isContent(event)) return describeAs("a content block", 'write { type: "content", content: block }');
  const likely = typeof type === "string" ? nearest(type, eventTypes) : undefined;
  const found =
    type === undefined
      ? `${describeValue(event)} without a type`
      : `an event of type ${JSON.stringify(type)}`;
  const hint = likely === undefined ? `the types are ${eventTypes.join(", ")}` : `did you mean "${likely}"?`;
  return describeAs(found, hint);
}

function describeAs(found: string, hint: string): string {
  return `A streaming tool yielded ${found}, which is not an event; ${hint}`;
}
