/** The public names of Junctor, by hand. A name that is not in this file is not public. */

export type { Clock } from "./async/clock.ts";
export type { CallerLimits } from "./async/shares.ts";

export { AbortedError } from "./errors/aborted-error.ts";
export { AuditError } from "./errors/audit-error.ts";
export {
  AuthorizationError,
  type AuthorizationReason,
  type BearerChallenge,
} from "./errors/authorization-error.ts";
export { BindError } from "./errors/bind-error.ts";
export { ClosedError } from "./errors/closed-error.ts";
export { ConfigError, type ConfigIssue } from "./errors/config-error.ts";
export { ConnectError, type ConnectKind } from "./errors/connect-error.ts";
export type { Delivery } from "./errors/delivery.ts";
export type { FailureCode } from "./errors/failure-code.ts";
export { HttpError } from "./errors/http-error.ts";
export { JsonError, type JsonErrorCode } from "./errors/json-error.ts";
export { NotFoundError } from "./errors/not-found-error.ts";
export { RpcError, type RpcErrorCode } from "./errors/rpc-error.ts";
export { SchemaError, type SchemaErrorCode } from "./errors/schema-error.ts";
export { SealError } from "./errors/seal-error.ts";
export { ScopeError } from "./errors/scope-error.ts";
export { SessionExpiredError } from "./errors/session-expired-error.ts";
export { SkillError, type SkillErrorCode } from "./errors/skill-error.ts";
export { StoreError } from "./errors/store-error.ts";
export { TimeoutError, type TimeoutKind } from "./errors/timeout-error.ts";
export { TlsError } from "./errors/tls-error.ts";
export { ToolError, type ToolErrorCode, type ToolErrorOptions } from "./errors/tool-error.ts";
export { UpstreamError, type UpstreamReason } from "./errors/upstream-error.ts";
export { UriTemplateError } from "./errors/uri-template-error.ts";
export { ValidationError } from "./errors/validation-error.ts";

export { RawJson } from "./json/raw.ts";
export type { Channel } from "./jsonrpc/channel.ts";
export type { Message, Notification, Request, Response } from "./jsonrpc/message.ts";
export { Peer, type PeerOptions } from "./jsonrpc/peer.ts";

export {
  anybody,
  type Authenticate,
  type Authenticated,
  type AuthRefusal,
  type AuthRequest,
  type ClientCertificate,
} from "./auth/authenticate.ts";
export { acceptTokens, type AcceptTokensOptions } from "./auth/in/accept-tokens.ts";
export type { IntrospectionOptions, IssuerOptions } from "./auth/in/issuer.ts";
export type { RefusedToken } from "./auth/in/tokens.ts";

export type { Caller } from "./mcp/caller.ts";
export type { LegacyRevision, ModernRevision, Revision } from "./mcp/revision.ts";
export { createSeal, type Seal, type SealOptions } from "./mcp/seal.ts";
export type { ServerCard } from "./mcp/server-card.ts";
export type { FrontMatter, Skill, SkillFile } from "./mcp/skill.ts";
export type { Observation, SentObservation } from "./mcp/observation.ts";
export type { Observer, Server, WireContext } from "./mcp/server.ts";
export type {
  Annotations,
  Ask,
  AudioContent,
  CacheHints,
  ClientCapabilities,
  CompletionRef,
  CompletionResult,
  Content,
  EmbeddedResource,
  Icon,
  ImageContent,
  Implementation,
  LogLevel,
  Meta,
  Prompt,
  PromptArgument,
  PromptMessage,
  PromptResult,
  Resource,
  ResourceContents,
  ResourceLink,
  ResourceResult,
  ResourceTemplate,
  ServerCapabilities,
  TextContent,
  Tool,
  ToolAnnotations,
  ToolResult,
} from "./mcp/types.ts";

export type { ViewCsp, ViewPermissions, Visibility } from "./mcp/app.ts";
export { type AppView, type AppViewSpec, defineView } from "./tools/app-view.ts";
export { type AnswerReader, inputRequired } from "./tools/ask.ts";
export {
  elicit,
  type Elicited,
  elicitUrl,
  listRoots,
  type Root,
  sample,
  type Sampled,
} from "./mcp/question.ts";
export { type Completer, type CompletionRegistry, createCompletionRegistry } from "./tools/completion.ts";
export { type Composite, compose, type ComposeOptions } from "./tools/compose/compose.ts";
export {
  audio,
  embedResource,
  failure,
  type FailedResult,
  image,
  resourceLink,
  structured,
  type StructuredResult,
  text,
} from "./tools/content.ts";
export {
  type AskCaller,
  type CallContext,
  type CallEvent,
  createCallContext,
  withContext,
} from "./tools/context.ts";
export type { EventStream, HandlerResult, OutputResult, StructuredValue, ToolEvent } from "./tools/event.ts";
export type { ToolContext, ToolHandler } from "./tools/event.ts";
export type { ListedItem } from "./tools/filtered-lists.ts";
export { type CallEnd, type Middleware, type MiddlewareOptions, withMiddleware } from "./tools/middleware.ts";
export {
  createPromptRegistry,
  type PromptContext,
  type PromptHandler,
  type PromptOutput,
  type PromptRegistry,
} from "./tools/prompts.ts";
export type {
  Answers,
  CallKind,
  Change,
  CompletionProvider,
  CompletionRequest,
  Hearer,
  InputRequired,
  MethodProvider,
  Outcome,
  PromptProvider,
  PromptRequest,
  Provider,
  ResourceChange,
  ResourceProvider,
  ResourceRequest,
  Resumption,
  SkillProvider,
  TaskRequest,
  ToolCall,
  ToolOutcome,
} from "./tools/provider.ts";
export { createRegistry, type Registry, type RegistryOptions } from "./tools/registry.ts";
export {
  createResourceRegistry,
  type ReadContext,
  type ReadResult,
  type ResourceReader,
  type ResourceRegistry,
} from "./tools/resources.ts";
export { type LoadedSkills, loadSkills, type LoadSkillsOptions } from "./skills/load-skills.ts";
export type { SkillSource } from "./tools/skills.ts";
export type { Issue } from "./schema/issue.ts";
export type { InferredInput, InferredOutput, JsonSchema, SchemaSource } from "./schema/schema.ts";
export { withJsonSchema } from "./schema/standard-schema.ts";
export type { ClientTask, StartedCall, TaskReport, TaskWait } from "./client/tasks.ts";
export type { TaskOutcome, TaskProgress, TaskProvider, TaskState } from "./tools/task.ts";
export type { Job, JobStatus } from "./tools/tasks/jobs.ts";
export { createMemoryTasks, type MemoryTasks, type MemoryTasksOptions } from "./tools/tasks/memory-tasks.ts";
export type { TaskRun } from "./tools/tasks/memory-task.ts";
export type { TaskContext, TaskHandler } from "./tools/tasks/task-call.ts";
export type { TaskSpec, ToolSpec } from "./tools/tool-spec.ts";

export { allowTools, type AllowToolsOptions } from "./middleware/allow-list.ts";
export { auditLog, type AuditLogOptions } from "./middleware/audit-log.ts";
export { limitRate, type LimitRateOptions, type Rate } from "./middleware/rate-limit.ts";
export { redact, type RedactOptions } from "./middleware/redact.ts";
export type { SecretKind } from "./middleware/secret-kinds.ts";
export { limitTime, type LimitTimeOptions } from "./middleware/time-limit.ts";

export { missingCapability } from "./mcp/question.ts";
export { createServer, type ServerInfo, type ServerOptions } from "./server/server.ts";
export { createListenLimits, type ListenLimits } from "./server/listen-limits.ts";
export { KeptResults, type KeptResultsOptions } from "./surface/results/kept-results.ts";
export type { ResultsElsewhere } from "./surface/results/results-elsewhere.ts";
export { type BudgetOptions, withBudget } from "./surface/results/with-budget.ts";
export type { ServerOf } from "./surface/search/tool-index.ts";
export { type SearchOptions, withSearch } from "./surface/search/with-search.ts";
export { type ProfileOptions, withProfile } from "./surface/with-profile.ts";
export type { UnknownTool } from "./server/to-rpc-error.ts";

export type { Agreement } from "./client/conversation.ts";
export type { AuditOptions, AuditRecord, AuditSink } from "./audit/audit.ts";
export { type AuditFile, type AuditFileOptions, openAuditFile } from "./audit/audit-file.ts";
export type { CallOptions } from "./client/tool-calls.ts";
export type { Client } from "./client/client.ts";
export type { ClientOptions } from "./client/client-options.ts";
export type { AuthorizationOptions } from "./auth/out/authorization-options.ts";
export type { Authorizer, OpenPage } from "./auth/out/authorizer.ts";
export type { CredentialStore } from "./auth/out/credential.ts";
export type { EnterpriseOptions } from "./auth/out/machine-grants.ts";
export { connect, type ConnectOptions, type Target } from "./client/connect.ts";
export { createEraCache, type EraCache } from "./client/era-cache.ts";
export type { AskHandlers } from "./client/handlers.ts";
export type { ReadOptions, Reads } from "./client/facets.ts";
export { type Apps, modelTools, type ReadView } from "./client/apps.ts";
export type { ClientSkills, LoadedSkill } from "./client/skills.ts";
export type { CallPart, StreamedCall } from "./client/stream-call.ts";

export type { Collision } from "./tools/compose/claims.ts";
export { createGateway } from "./gateway/gateway.ts";
export type { Gateway } from "./gateway/running-gateway.ts";
export type { GatewayOptions } from "./gateway/gateway-options.ts";
export type { GatewayLog } from "./gateway/log.ts";
export type { Unapproved } from "./gateway/lock/pins.ts";
export type { ServerStatus } from "./gateway/status.ts";
export type { ListFault, ListPart } from "./tools/fit/list-fault.ts";

export type { ChildCommand } from "./transports/child-command.ts";
export { createGuardian, type Guardian, type GuardianOptions } from "./transports/guardian.ts";
export type { HeaderSource } from "./transports/http/client/http-way.ts";
export {
  createMemoryEventStore,
  type EventStore,
  type MemoryEventStoreOptions,
  type StoredEvent,
} from "./transports/http/legacy/event-store.ts";
export { type FetchHandler, type FetchOptions, toFetchHandler } from "./transports/http/server/fetch.ts";
export type { HttpOptions } from "./transports/http/server/http-options.ts";
export type { Mounts } from "./transports/http/server/mounts.ts";
export type { PageAnswer, PageRequest, Pages } from "./transports/http/server/pages.ts";
export type { ListenHttpOptions } from "./transports/http/server/listen-options.ts";
export { type HttpListener, listenHttp } from "./transports/http/server/node.ts";
export type { TlsOptions } from "./transports/http/server/tls.ts";
export { connectInMemory, createMemoryPair } from "./transports/memory.ts";
export { serveChannel, type ServeOptions } from "./transports/serve-channel.ts";
export { serveStdio, serveStream, type ServeStreamOptions } from "./transports/stream.ts";
export { createStreamChannel } from "./transports/stream-channel.ts";
export { type Listener, listenTcp, type ListenTcpOptions } from "./transports/tcp.ts";
