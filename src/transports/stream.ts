import type { Readable, Writable } from "node:stream";
import type { Server } from "../mcp/server.ts";
import { serveChannel, type ServeOptions } from "./serve-channel.ts";
import { createStreamChannel, type LineLimits } from "./stream-channel.ts";

export interface ServeStreamOptions extends ServeOptions, LineLimits {}

/**
 * Serves MCP on any pair of byte streams, one message a line. Resolves when the input has ended, what ran has ended or
 * been aborted, and both streams are closed.
 *
 * @example
 * await serveStream(server, socket, socket);
 */
export function serveStream(
  server: Server,
  readable: Readable,
  writable: Writable,
  options: ServeStreamOptions = {},
): Promise<void> {
  return serveChannel(server, createStreamChannel(readable, writable, options), options);
}
