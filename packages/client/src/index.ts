/** For authors of hosts and agents: connect to any MCP server, list and call its tools. */

export { type ChildCommand, createGuardian, type Guardian } from "./child/index.ts";
export {
  type Agreement,
  type Apps,
  type QuestionHandlers,
  type CallOptions,
  type CallPart,
  type Client,
  type ClientOptions,
  type ClientSkills,
  type ClientTask,
  connect,
  type ConnectOptions,
  createEraCache,
  type EraCache,
  type LoadedSkill,
  modelTools,
  type ReadOptions,
  type Reads,
  type StartedCall,
  type Target,
  type TaskReport,
  type TaskWait,
  textOf,
} from "./client/index.ts";
export { type HeaderSource } from "./http/index.ts";
export {
  type AuthorizationOptions,
  type Authorizer,
  type CredentialStore,
  type OpenPage,
} from "./sign-in/index.ts";
export {
  AbortedError,
  AuthorizationError,
  ClosedError,
  ConnectError,
  type Delivery,
  HttpError,
  NotFoundError,
  RpcError,
  SessionExpiredError,
  SkillError,
  TimeoutError,
  ToolError,
  ValidationError,
} from "@junctor/core/errors";
export {
  type Content,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
export { type AuditRecord } from "@junctor/core/provider";
