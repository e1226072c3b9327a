import { BoundedQueue } from "@junctor/core/async";
import type { ToolResult } from "@junctor/core/mcp";
import type { CallEvent } from "@junctor/core/provider";
import type { CallOptions } from "./tool-calls.ts";

/** What a streamed call gives: events, and at the end the result. */
export type CallPart = CallEvent | { readonly kind: "result"; readonly result: ToolResult };

/** Most events that wait for a slow reader; more are dropped. */
const maxWaiting = 1000;

/** Runs a call and yields its events in order, the result last. Rejects as the call does; leaving the loop early gives the call up. */
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
