import { RpcError } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import { ExhaustedError } from "../schema/time-box.ts";
import type { CallEvent } from "../tools/context.ts";
import type { CallEnd, Middleware } from "../tools/middleware.ts";
import type { TaskState } from "../tools/task.ts";
import { createScrubber, type ScrubberOptions, type Scrub } from "./scrub.ts";

export type RedactOptions = ScrubberOptions;

/**
 * Replaces by `[redacted]` what matches in the strings of a result (wherever they are: text, structured content,
 * resources, failures), in questions to the user, and in progress and log messages. Keys and numbers are left alone,
 * and a result in which nothing matches leaves as the bytes it came as.
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
  return {
    beforeCall: (call) => ({ ...call, mapEvent }),
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

function scrubEnd(end: CallEnd, scrub: Scrub): CallEnd {
  switch (end.kind) {
    case "complete": {
      const { text, isForeign } = end.result;
      const scrubbed = scrub(text);
      return scrubbed === text ? end : { ...end, result: RawJson.fromText(scrubbed, isForeign) };
    }
    case "input_required":
      // The state comes back to us alone, and sealed.
      return { ...end, asks: scrubValue(end.asks, scrub) };
    case "task":
      return { ...end, task: scrubTask(end.task, scrub) };
    case "failed":
      return { ...end, error: scrubError(end.error, scrub) };
  }
}

function scrubTask(task: TaskState, scrub: Scrub): TaskState {
  const { message } = task;
  const said = message === undefined ? task : { ...task, message: scrubValue(message, scrub) };
  switch (said.status) {
    case "input_required":
      return { ...said, asks: scrubValue(said.asks, scrub) };
    case "completed":
      return { ...said, result: RawJson.fromText(scrub(said.result.text), said.result.isForeign) };
    case "failed":
      return { ...said, error: scrubError(said.error, scrub) as RpcError };
    case "working":
    case "cancelled":
      return said;
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
