export { createListenLimits, type ListenLimits } from "./subscriptions.ts";
export { createServer, type ServerInfo, type ServerOptions } from "./server.ts";
