import type { Readable, Writable } from "node:stream";
import type { Server } from "../mcp/server.ts";
import { serveChannel, type ServeOptions } from "./serve-channel.ts";
import { createStreamChannel, type StreamChannelOptions } from "./stream-channel.ts";

export interface ServeStreamOptions extends ServeOptions, StreamChannelOptions {}

/**
 * Serves MCP on any pair of byte streams, one message a line. Resolves when the input has ended or nobody reads the
 * output any more, what ran has ended or been aborted, and both streams are closed.
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
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  const { signal } = options;
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  // The input may stay open after the reader of the output is gone; there is no one left to work for then.
  writable.once("close", stop);
  writable.once("error", stop);
  try {
    const channel = createStreamChannel(readable, writable, options);
    await serveChannel(server, channel, { ...options, signal: stopping.signal });
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
