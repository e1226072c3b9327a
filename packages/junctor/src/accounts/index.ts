export { wasAskedToConnect } from "./connect-ask.ts";
export { type Connections, createConnections, isProvable } from "./connections.ts";
export { Links, type LinksOptions, signInAt } from "./links.ts";
export { toOwnerName } from "./owner.ts";
export { PerCallerServers } from "./per-caller-servers.ts";
