import type { Readable, Writable } from "node:stream";
import { systemClock, waitFor } from "../async/clock.ts";
import type { Channel } from "../jsonrpc/channel.ts";
import type { Server } from "../mcp/server.ts";
import { serveChannel, type ServeOptions } from "./serve-channel.ts";
import { createStreamChannel, type StreamChannelOptions } from "./stream-channel.ts";

export interface ServeStreamOptions extends ServeOptions, StreamChannelOptions {}

/** For requests without a time limit of their own: a handler that never ends must not keep a process for good. */
const defaultLingerMs = 10 * 60_000;

/**
 * Serves MCP on any pair of byte streams, one message a line. When the input ends, every request that was read is still
 * answered, for `lingerMs` at most, as long as the output is read; questions to the client and streams of change
 * notifications end at once, because the client can no longer answer or cancel them. Resolves when the input has ended or
 * nobody reads the output any more, what ran has ended or been aborted, and both streams are closed.
 *
 * @example
 * await serveStream(server, socket, socket);
 */
export async function serveStream(
  server: Server,
  readable: Readable,
  writable: Writable,
  options: ServeStreamOptions = {},
): Promise<void> {
  const { signal, lingerMs = defaultLingerMs, clock = systemClock } = options;
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  // The input may stay open after the reader of the output is gone; there is no one left to work for then.
  writable.once("close", stop);
  writable.once("error", stop);
  try {
    const stream = createStreamChannel(readable, writable, options);
    const channel: Channel = {
      send: stream.send,
      [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: async () => {
        // The last answers leave at the pace of their reader, unless we are told to stop.
        const limits = { signal: stopping.signal, ms: lingerMs, clock };
        await waitFor(stream.endOutput(), limits).catch(() => {});
        await stream[Symbol.asyncDispose]();
      },
    };
    await serveChannel(server, channel, { ...options, lingerMs, signal: stopping.signal });
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
