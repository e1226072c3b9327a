import type * as table from "./table.ts";

export { type Delivery, BrandedError } from "./branded-error.ts";
export {
  JsonError,
  type JsonErrorCode,
  SchemaError,
  SealError,
  SkillError,
  UriTemplateError,
  AuditError,
  BindError,
  ConfigError,
  type ConfigIssue,
  StoreError,
  TlsError,
} from "./setup-errors.ts";
export { type FailureCode, failureCodeOf, systemCodeOf } from "./failure-code.ts";
export {
  AbortedError,
  AuthorizationError,
  type BearerChallenge,
  ClosedError,
  ConnectError,
  type ConnectKind,
  HttpError,
  SessionExpiredError,
  TimeoutError,
  UpstreamError,
  type UpstreamReason,
  ValidationError,
} from "./request-errors.ts";
export {
  type Missing,
  NotFoundError,
  rpcCodes,
  RpcError,
  ScopeError,
  ToolError,
  type ToolErrorCode,
  type RpcErrorCode,
  crossingOf,
  loadErrorEntries,
  toStatus,
} from "./wire-errors.ts";
export type { ErrorEntry } from "./catalogue.ts";
export type ErrorTable = typeof table;
