export {
  type DescribeFailure,
  describeHealth,
  type Health,
  type ConnectionStatus,
  toSeconds,
} from "./health.ts";
export { type Listed, listParts, nothingListed } from "./known-lists.ts";
export { createOpenServer, logCredential } from "./open-server.ts";
export type { PooledConnection } from "./pooled-connection.ts";
export { StartSlots } from "./start-slots.ts";
export { isTelling, lastWordsOf, toReason, withLastWords } from "./to-reason.ts";
export { hideText } from "./to-upstream-error.ts";
export { offersAll, Upstream, type UpstreamChange } from "./upstream.ts";
