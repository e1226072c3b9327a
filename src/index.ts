/** The public names of Junctor, by hand: what is not here is not promised. */

export { AbortedError } from "./errors/aborted-error.ts";
export { AuditError } from "./errors/audit-error.ts";
export { BindError } from "./errors/bind-error.ts";
export { ClosedError } from "./errors/closed-error.ts";
export { ConfigError, type ConfigIssue } from "./errors/config-error.ts";
export { ConnectError } from "./errors/connect-error.ts";
export type { Delivery } from "./errors/delivery.ts";
export { HttpError } from "./errors/http-error.ts";
export { JsonError, type JsonErrorCode } from "./errors/json-error.ts";
export { NotFoundError } from "./errors/not-found-error.ts";
export { RpcError, type RpcErrorCode } from "./errors/rpc-error.ts";
export { SchemaError } from "./errors/schema-error.ts";
export { SessionExpiredError } from "./errors/session-expired-error.ts";
export { TimeoutError } from "./errors/timeout-error.ts";
export { ToolError, type ToolErrorCode, type ToolErrorOptions } from "./errors/tool-error.ts";
export { UpstreamError, type UpstreamReason } from "./errors/upstream-error.ts";
export { ValidationError } from "./errors/validation-error.ts";

export { RawJson } from "./json/raw.ts";
export type { Channel } from "./jsonrpc/channel.ts";
export type { Message, Notification, Request, Response } from "./jsonrpc/message.ts";
export { Peer, type PeerOptions } from "./jsonrpc/peer.ts";

export type { Revision } from "./mcp/revision.ts";
export { createSeal, type Seal } from "./mcp/seal.ts";
export type { Server, WireContext } from "./mcp/server.ts";
export type {
  Ask,
  CacheHints,
  ClientCapabilities,
  CompletionRef,
  CompletionResult,
  Content,
  Implementation,
  LogLevel,
  Prompt,
  PromptMessage,
  PromptResult,
  Resource,
  ResourceContents,
  ResourceResult,
  ResourceTemplate,
  Tool,
  ToolAnnotations,
  ToolResult,
} from "./mcp/types.ts";

export {
  elicit,
  type Elicited,
  elicitUrl,
  inputRequired,
  listRoots,
  type Root,
  sample,
  type Sampled,
} from "./tools/ask.ts";
export { type CompletionRegistry, createCompletionRegistry } from "./tools/completion.ts";
export { type Composite, compose, type ComposeOptions } from "./tools/composite.ts";
export { audio, embedResource, failure, image, resourceLink, structured, text } from "./tools/content.ts";
export { type CallContext, type CallEvent, createCallContext, deriveContext } from "./tools/context.ts";
export type { HandlerResult, ToolEvent } from "./tools/event.ts";
export type { ToolContext, ToolHandler } from "./tools/handler.ts";
export { type CallEnd, type Middleware, type MiddlewareOptions, withMiddleware } from "./tools/middleware.ts";
export { createPromptRegistry, type PromptRegistry } from "./tools/prompts.ts";
export type {
  Change,
  CompletionProvider,
  InputRequired,
  Outcome,
  PromptProvider,
  Provider,
  ResourceProvider,
  ToolCall,
  ToolOutcome,
} from "./tools/provider.ts";
export { createRegistry, type Registry, type RegistryOptions, type ToolSpec } from "./tools/registry.ts";
export { createResourceRegistry, type ResourceRegistry } from "./tools/resources.ts";
export type { JsonSchema, SchemaSource } from "./tools/schema.ts";
export { withJsonSchema } from "./tools/standard-schema.ts";

export { allowTools, type AllowToolsOptions } from "./middleware/allow-list.ts";
export { auditLog, type AuditLogOptions } from "./middleware/audit-log.ts";
export { limitRate, type LimitRateOptions, type Rate } from "./middleware/rate-limit.ts";
export { redact, type RedactOptions } from "./middleware/redact.ts";
export type { SecretKind } from "./middleware/secret-kinds.ts";
export { limitTime, type LimitTimeOptions } from "./middleware/time-limit.ts";

export { missingCapability } from "./server/interaction.ts";
export { createServer, type ServerInfo, type ServerOptions } from "./server/server.ts";

export type { Agreement } from "./client/agreement.ts";
export type { AuditOptions, AuditRecord, AuditSink } from "./audit/audit.ts";
export { type AuditFile, type AuditFileOptions, openAuditFile } from "./audit/audit-file.ts";
export type { CallOptions } from "./client/call-options.ts";
export type { Client } from "./client/client.ts";
export type { ClientOptions } from "./client/client-options.ts";
export { connect, type ConnectOptions, type Target } from "./client/connect.ts";
export { createEraCache, type EraCache } from "./client/era-cache.ts";
export type { AskHandlers } from "./client/handlers.ts";
export type { ReadOptions, Reads } from "./client/reads.ts";
export type { CallPart, StreamedCall } from "./client/stream-call.ts";

export type { Collision } from "./gateway/catalog/merge.ts";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway/gateway.ts";
export type { GatewayLog } from "./gateway/log.ts";
export type { ServerStatus } from "./gateway/status.ts";

export { createGuardian, type Guardian, type GuardianOptions } from "./transports/guardian.ts";
export {
  createMemoryEventStore,
  type EventStore,
  type MemoryEventStoreOptions,
  type StoredEvent,
} from "./transports/http/event-store.ts";
export { type FetchHandler, type FetchOptions, toFetchHandler } from "./transports/http/fetch.ts";
export { anybody, type Authenticate, type HttpOptions } from "./transports/http/handler.ts";
export { type HttpListener, listenHttp, type ListenHttpOptions } from "./transports/http/node.ts";
export { connectInMemory, createMemoryPair } from "./transports/memory.ts";
export { serveChannel, type ServeOptions } from "./transports/serve-channel.ts";
export { serveStdio } from "./transports/stdio.ts";
export { serveStream, type ServeStreamOptions } from "./transports/stream.ts";
export { createStreamChannel } from "./transports/stream-channel.ts";
export { type Listener, listenTcp, type ListenTcpOptions } from "./transports/tcp.ts";
