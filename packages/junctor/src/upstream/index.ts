export {
  type ConnectionStatus,
  type DescribeFailure,
  describeHealth,
  type Health,
  statusOf,
  toSeconds,
} from "./connection.ts";
export { hideText, isTelling, lastWordsOf, toReason, withLastWords } from "./failure.ts";
export { type Listed, listParts, nothingListed } from "./list-cache.ts";
export { createOpenServer, logCredential } from "./open-server.ts";
export type { UpstreamEvent } from "./pool.ts";
export { StartSlots } from "./starts.ts";
export { offersAll, Upstream } from "./upstream.ts";
