import { toFetchHandler } from "../http/index.ts";

// Replaces app/transports.ts: these runtimes have no standard input, no port to listen on, and no node:http.

const absent = (what: string) => (): never => {
  throw new TypeError(
    `${what} needs Node, Bun or Deno. Here, export the app as the default: its fetch answers requests`,
  );
};

export const serveStdio: () => never = absent("app.stdio()");
export const listenHttp: () => never = absent("app.listen()");
export const loadNode: () => never = absent("app.node");
export const loadFetch = (): Promise<typeof toFetchHandler> => Promise.resolve(toFetchHandler);
