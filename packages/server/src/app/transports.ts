import type { Server } from "@junctor/core/mcp";
import type { FetchOptions, NodeHandler, toFetchHandler } from "../http/index.ts";

// The transports of an app, each loaded when it is first used. For runtimes without Node, edge/transports.ts replaces this file.

export { listenHttp } from "../http/index.ts";
export { serveStdio } from "../listen/index.ts";

export async function loadFetch(): Promise<typeof toFetchHandler> {
  const { toFetchHandler: loaded } = await import("../http/fetch.ts");
  return loaded;
}

export async function loadNode(): Promise<(server: Server, options: FetchOptions) => NodeHandler> {
  const { toNodeHandler: loaded } = await import("../http/node-handler.ts");
  return loaded;
}
