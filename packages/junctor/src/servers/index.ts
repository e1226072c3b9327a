export { isTelling, lastWordsOf, toReason, withLastWords } from "../upstream/index.ts";
export { type ListedDefinitions, readDefinitions } from "./definitions.ts";
export {
  alwaysUp,
  type GatewayServer,
  instructionsOf,
  joinInstructions,
  offeredExtensions,
  toMember,
} from "./gateway-server.ts";
export { openListMemory } from "./list-memory.ts";
export { LocalServers } from "./local-servers.ts";
export { SharedUpstreams } from "./shared-upstreams.ts";
export {
  describeDisabled,
  describeStatus,
  type ListedCounts,
  logDisabled,
  type ServerStatus,
} from "./status.ts";
export { UpstreamFactory, type UpstreamFactoryOptions } from "./upstream-factory.ts";
