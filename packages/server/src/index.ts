/** For authors of tools: register them, and serve them over stdio, TCP, HTTP or a fetch handler. */

export { type App, type AppContext, type AppOptions, bearer, createApp } from "./app/index.ts";
export {
  anybody,
  type Authenticate,
  type Authenticated,
  type AuthRequest,
  createMemoryEventStore,
  type EventStore,
  type HttpListener,
  type HttpOptions,
  listenHttp,
  type ListenHttpOptions,
  type TlsOptions,
} from "./http/index.ts";
export { listenTcp, serveStdio, serveStream } from "./listen/index.ts";
export { allowTools, auditLog, limitRate, limitTime, redact } from "./middleware/index.ts";
export {
  type AppView,
  type CompletionRegistry,
  createCompletionRegistry,
  createMemoryTasks,
  createPromptRegistry,
  createRegistry,
  createResourceRegistry,
  defineView,
  type InferredInput,
  type InferredOutput,
  type Job,
  type JsonSchema,
  type PromptRegistry,
  type Registry,
  type RegistryOptions,
  type ResourceRegistry,
  type SchemaSource,
  type ToolContext,
  type ToolEvent,
  type ToolHandler,
  type ToolSpec,
  withJsonSchema,
} from "./registry/index.ts";
export { loadSkills } from "./skills/index.ts";
export { createServer, type ServerInfo, type ServerOptions } from "./wire/index.ts";
export { type Clock } from "@junctor/core/async";
export { createMemoryPair, createStreamChannel, serveChannel } from "@junctor/core/channel";
export { compose } from "@junctor/core/compose";
export {
  AbortedError,
  BindError,
  ClosedError,
  JsonError,
  NotFoundError,
  RpcError,
  SchemaError,
  ScopeError,
  SealError,
  SkillError,
  TimeoutError,
  TlsError,
  ToolError,
  UriTemplateError,
} from "@junctor/core/errors";
export { RawJson } from "@junctor/core/json";
export {
  type Question,
  type Caller,
  type ClientCapabilities,
  type Content,
  createSeal,
  elicit,
  elicitUrl,
  listRoots,
  type LogLevel,
  missingCapability,
  type Prompt,
  type PromptMessage,
  type Resource,
  type ResourceContents,
  type ResourceTemplate,
  type Revision,
  sample,
  type Server,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
export {
  type Answers,
  audio,
  type AuditRecord,
  type CallContext,
  type CallEnd,
  type CallEvent,
  type Change,
  createCallContext,
  createOperation,
  embedResource,
  failure,
  image,
  inputRequired,
  Listing,
  type Middleware,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  resourceLink,
  structured,
  text,
  withContext,
  withGroups,
  withMiddleware,
} from "@junctor/core/provider";
export { type Channel, type Message } from "@junctor/core/rpc";
export { type Issue } from "@junctor/core/schema";
