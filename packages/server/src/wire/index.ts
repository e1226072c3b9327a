export { createListenLimits, type ListenLimits } from "./listen-limits.ts";
export { createServer, type ServerInfo, type ServerOptions } from "./server.ts";
