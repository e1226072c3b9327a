import type { Server } from "@junctor/core/mcp";
import type { ListenHttpOptions } from "./http-options.ts";
import type { HttpListener } from "./node.ts";

/**
 * Serves MCP over HTTP, every revision on one URL.
 *
 * @example
 * await using listener = await listenHttp(server, { port: 7780 });
 * console.error(`listening on ${listener.url}`);
 */
export async function listenHttp(server: Server, options?: ListenHttpOptions): Promise<HttpListener> {
  const { startListener } = await import("./node.ts");
  return startListener(server, options);
}
