export { type Cluster, openCluster } from "./cluster.ts";
export { createIpcStore, type IpcChannel, openIpcChannel, serveStore } from "./ipc-store.ts";
export { ttlMs } from "./membership.ts";
export {
  createConnectionServer,
  fromRemoteRound,
  fromRemoteTaskId,
  isRemote,
  toRemoteRound,
  toRemoteTaskId,
} from "./placement.ts";
export { createMemoryClusterStore } from "./memory-store.ts";
export { connectRedisStore, parseStoreUrl } from "./redis-store.ts";
export { SharedRevocations } from "./revocations.ts";
export { createSharedRateLimit, type SharedRate, type TokenSource } from "./shared-rate-limit.ts";
export type { ClusterStore } from "./store.ts";
export type { TrunkConfig, TrunkListen } from "./trunk.ts";
