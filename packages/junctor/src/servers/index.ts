export { statusOf, isTelling, lastWordsOf, toReason, withLastWords } from "../upstream/index.ts";
export {
  type GatewayServer,
  instructionsOf,
  joinInstructions,
  type ListedDefinitions,
  offeredExtensions,
  readDefinitions,
  toMember,
} from "./gateway-server.ts";
export { ListMemory } from "./list-memory.ts";
export { alwaysUp, LocalServers } from "./local-servers.ts";
export {
  describeDisabled,
  describeStatus,
  type ListedCounts,
  logDisabled,
  type ServerStatus,
} from "./status.ts";
export { SharedUpstreams, UpstreamFactory, type UpstreamFactoryOptions } from "./upstream-factory.ts";
