export { type DaemonStatus, type OfferedServers, type RestartedServer, runDaemon } from "./daemon.ts";
export { isOfProject, isRelativePath, parseForFront, DaemonGateways, variablesOf } from "./gateways.ts";
