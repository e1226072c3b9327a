export { serveStdio, serveStream, listenTcp } from "./tcp.ts";
