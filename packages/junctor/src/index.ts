/** Everything in one import: the toolkit, the client, and the gateway made of both. */

export * from "@junctor/client";
export * from "@junctor/server";
export { type ApprovalOptions, type ApprovalRule, Approvals, withApproval } from "./approvals/index.ts";
export { type AuditFile, type AuditFileOptions, openAuditFile } from "./audit/index.ts";
export {
  type BudgetOptions,
  KeptResults,
  type KeptResultsOptions,
  type ProfileOptions,
  type ResultsElsewhere,
  type SearchOptions,
  type ServerOf,
  withBudget,
  withProfile,
  withSearch,
} from "./context/index.ts";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway/index.ts";
export { type Unapproved } from "./lock/index.ts";
export { type IdempotencyOptions, KeptCalls, type KeptCallsOptions, withIdempotency } from "./once/index.ts";
export { type GatewayLog } from "./log/index.ts";
export { type ServerStatus } from "./servers/index.ts";
export { fromOpenApi, type OpenApiOptions } from "./sources/index.ts";
export {
  acceptTokens,
  type AcceptTokensOptions,
  type IntrospectionOptions,
  type IssuerOptions,
  type RefusedToken,
} from "./tokens/index.ts";
export { connectInMemory } from "@junctor/core/channel";
export { type Collision } from "@junctor/core/compose";
export {
  AuditError,
  ConfigError,
  type ConfigIssue,
  type FailureCode,
  StoreError,
  UpstreamError,
} from "@junctor/core/errors";
export { type ListFault } from "@junctor/core/fit";
export { type Observer, type ServerCard, type WireContext } from "@junctor/core/mcp";
export { type AuditSink, type MiddlewareOptions } from "@junctor/core/provider";
export { Peer } from "@junctor/core/rpc";
export { type FetchHandler, type FetchOptions, toFetchHandler } from "@junctor/server/fetch";
