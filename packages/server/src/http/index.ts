export {
  anybody,
  type Authenticate,
  type Authenticated,
  type AuthRefusal,
  type AuthRequest,
  type ClientCertificate,
  toChallenge,
  toCaller,
} from "./authenticate.ts";
export { limitConnections, toTimeouts } from "./connections.ts";
export {
  addressOf,
  type Elsewhere,
  type LocalService,
  type LocalSessions,
  type PipedFrom,
} from "./session-table.ts";
export { createMemoryEventStore, type EventStore } from "./event-store.ts";
export { type FetchHandler, type FetchOptions, toFetchHandler } from "./fetch.ts";
export { type Admission, createGuard } from "./guard.ts";
export type { HttpOptions, ListenHttpOptions } from "./http-options.ts";
export { sessionNotFound } from "./legacy.ts";
export { constrainedBytes } from "./memory-watch.ts";
export { hungUp } from "./post.ts";
export type { Mounts, PageAnswer, PageRequest, Pages } from "./mounts.ts";
export { NodeRequest, readNodeBody } from "./node-reply.ts";
export { listenHttp } from "./listen-http.ts";
export type { HttpListener } from "./node.ts";
export type { NodeHandler } from "./node-handler.ts";
export {
  type FrameSink,
  type HttpHeaders,
  type HttpRequest,
  isJson,
  refuse,
  type Reply,
  type Routed,
  sendError,
  sseHeaders,
  toData,
  toErrorResponse,
  toFrame,
} from "./reply.ts";
export type { TlsOptions } from "./tls.ts";
