import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { keyOf, withMembers } from "@junctor/core/mcp";
import {
  type CallEvent,
  type ListedItem,
  thingOf,
  type CallEnd,
  type Middleware,
} from "@junctor/core/provider";
import { ExhaustedError } from "@junctor/core/schema";
import { createScrubber, type ScrubberOptions, type Scrub } from "./scrub.ts";

export type RedactOptions = ScrubberOptions;

/**
 * Replaces by `[redacted]` what matches in the strings and keys of a result (wherever they are: text, structured content,
 * resources, prompts, completions, failures), in questions to the user, in progress and log messages, and in lists: titles, descriptions,
 * defaults and examples. A tool or prompt whose name matches is left out and cannot be used; a resource whose URI matches is left out.
 * Numbers are left alone, and a result in which nothing matches leaves as the bytes it came as.
 *
 * Your own patterns may search one result for `maxSearchMs` (100): what takes longer is withheld and the call fails, for
 * a pattern that backtracks could hold up all callers. Each string is searched by itself, so a secret that a tool streams
 * in pieces, or divides between two blocks, is not found.
 *
 * @throws TypeError for a kind of secret there is not
 * @example
 * withMiddleware(provider, [redact({ patterns: ["email", "github-token", /ACME-[0-9]{8}/] })]);
 */
export function redact(options: RedactOptions): Middleware {
  const scrub = createScrubber(options);
  const mapEvent = (event: CallEvent): CallEvent | undefined => {
    try {
      return scrubEvent(event, scrub);
    } catch (error) {
      // What could not be searched is not sent.
      if (error instanceof ExhaustedError) return undefined;
      throw error;
    }
  };
  const shown = new WeakMap<object, ListedItem | undefined>();
  const tries = new WeakMap<object, number>();
  /** A listed thing as it is shown; undefined for one that is not. */
  const show = (item: ListedItem): ListedItem | undefined => {
    if (shown.has(item)) return shown.get(item);
    try {
      const found = showItem(item, scrub);
      shown.set(item, found);
      return found;
    } catch (error) {
      if (!(error instanceof ExhaustedError)) throw error;
      // What could not be searched is not shown. A busy machine may be the reason, so it is tried again, but not for ever.
      const count = (tries.get(item) ?? 0) + 1;
      tries.set(item, count);
      if (count >= maxTries) shown.set(item, undefined);
      return undefined;
    }
  };
  const lists = new WeakMap<readonly ListedItem[], readonly ListedItem[]>();
  /** Names in which there is nothing to hide. */
  const harmless = new Set<string>();
  const isHarmless = (name: string): boolean => {
    try {
      return scrubValue(name, scrub) === name;
    } catch (cause) {
      if (!(cause instanceof ExhaustedError)) throw cause;
      throw new ToolError(`The call was refused: searching its name for secrets ${cause.message}.`, {
        cause,
      });
    }
  };
  return {
    isFilter: false,
    filterTools: (items) => {
      const known = lists.get(items);
      if (known !== undefined) return known;
      const left = Object.freeze(items.flatMap((item) => show(item) ?? []));
      // A list that can change, or was not searched to its end, is looked at anew each time.
      if (Object.isFrozen(items) && items.every((item) => shown.has(item))) lists.set(items, left);
      return left;
    },
    beforeCall: (call) => {
      const { name, part } = call;
      const isName = part === undefined || part === "tools" || part === "prompts";
      if (isName && !harmless.has(name)) {
        if (!isHarmless(name)) throw new NotFoundError(thingOf(call), name);
        if (harmless.size >= maxHarmless) harmless.clear();
        harmless.add(name);
      }
      return { mapEvent };
    },
    afterCall: ({ name }, end) => {
      try {
        return scrubEnd(end, scrub);
      } catch (cause) {
        if (!(cause instanceof ExhaustedError)) throw cause;
        const message = `The answer of ${name} was withheld: searching it for secrets ${cause.message}.`;
        return { kind: "failed", error: new ToolError(message, { cause }) };
      }
    },
  };
}

/** How often a listed thing is searched that took too long. */
const maxTries = 3;

/** How many names are remembered. */
const maxHarmless = 1000;

/** What people and models read of a definition, wherever it stands. Other members have a meaning that must stay. */
const readable = new Set(["title", "description", "default", "examples", "$comment"]);

function showItem(item: ListedItem, scrub: Scrub): ListedItem | undefined {
  const key = keyOf(item);
  if (scrubValue(key, scrub) !== key) return undefined;
  // The name of a resource is read by people; that of a tool or prompt is the key.
  const name = scrubValue(item.name, scrub);
  const members = scrubReadable(item, scrub);
  return members === item && name === item.name ? item : withMembers(item, { ...members, name });
}

function scrubReadable<T extends object>(node: T, scrub: Scrub): T {
  const entries = Object.entries(node).map(([key, value]: [string, unknown]) => {
    if (readable.has(key) && !isSchema(value)) return [key, scrubValue(value, scrub)] as const;
    return [key, typeof value === "object" && value !== null ? scrubReadable(value, scrub) : value] as const;
  });
  if (entries.every(([key, value]) => value === (node as { readonly [key: string]: unknown })[key]))
    return node;
  return (Array.isArray(node) ? entries.map(([, value]) => value) : Object.fromEntries(entries)) as T;
}

/** An argument may be called `description`; what stands there is its schema. */
function isSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An end without secrets, also in what a server says of a task beside the members that we know. */
function scrubEnd(end: CallEnd, scrub: Scrub): CallEnd {
  const scrubbed = scrubOutcome(end, scrub);
  const { task } = end;
  if (task?.more === undefined) return scrubbed;
  const more = scrub(task.more.text);
  return more === task.more.text
    ? scrubbed
    : ({ ...scrubbed, task: { ...task, more: RawJson.fromText(more) } } as CallEnd);
}

function scrubOutcome(end: CallEnd, scrub: Scrub): CallEnd {
  switch (end.kind) {
    case "complete": {
      const { text, isForeign } = end.result;
      const scrubbed = scrub(text);
      return scrubbed === text ? end : { ...end, result: RawJson.fromText(scrubbed, isForeign) };
    }
    case "input_required":
      // The state comes back to us alone, and sealed.
      return { ...end, asks: scrubValue(end.asks, scrub) };
    case "working":
    case "cancelled":
      return end;
    case "failed":
      return { ...end, error: scrubError(end.error, scrub) as RpcError };
  }
}

function scrubEvent(event: CallEvent, scrub: Scrub): CallEvent {
  switch (event.kind) {
    case "progress":
      return event.message === undefined ? event : { ...event, message: scrubValue(event.message, scrub) };
    case "log":
      return { ...event, data: scrubValue(event.data, scrub) };
  }
}

/** Of other errors the caller learns nothing. */
function scrubError(error: unknown, scrub: Scrub): unknown {
  if (error instanceof ToolError) {
    const message = scrubValue(error.message, scrub);
    return message === error.message
      ? error
      : new ToolError(message, { cause: error.cause, code: error.code });
  }
  if (error instanceof RpcError) {
    const { code, rpcCode, cause } = error;
    const message = scrubValue(error.message, scrub);
    const data = scrubValue(error.data, scrub);
    const isSame = message === error.message && data === error.data;
    return isSame ? error : new RpcError(code, message, { rpcCode, data, cause });
  }
  return error;
}

/** A value as it will be on the wire, scrubbed; the very same if there is nothing to hide in it. */
function scrubValue<T>(value: T, scrub: Scrub): T {
  const text = JSON.stringify([value]);
  const scrubbed = scrub(text);
  return scrubbed === text ? value : (JSON.parse(scrubbed) as [T])[0];
}
