export { type DaemonStatus, type OfferedServers, type RestartedServer, runDaemon } from "./daemon.ts";
export { isOfProject, isRelativePath, parseForFront, variablesOf } from "./projects.ts";
export { Scopes } from "./scopes.ts";
