export { serveStdio, serveStream } from "./stream.ts";
export { listenTcp } from "./tcp.ts";
