export { toOwnerName } from "./account.ts";
export { createConnections, isProvable } from "./connect-pages.ts";
export { Links, type LinksOptions, signInAt } from "./links.ts";
export { PerCallerServers } from "./per-caller-servers.ts";
export { wasAskedToConnect } from "./require-account.ts";
