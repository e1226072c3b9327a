/** The names of this package that do not need Node, for Workers and similar runtimes. */

export { anybody, createMemoryEventStore } from "../http/index.ts";
export { bearer, createApp } from "../app/index.ts";
export {
  createCompletionRegistry,
  createMemoryTasks,
  createPromptRegistry,
  createRegistry,
  createResourceRegistry,
  defineView,
  withJsonSchema,
} from "../registry/index.ts";
export { createServer } from "../wire/index.ts";
export {
  AbortedError,
  ClosedError,
  JsonError,
  NotFoundError,
  RpcError,
  SchemaError,
  ScopeError,
  SealError,
  TimeoutError,
  ToolError,
  UriTemplateError,
} from "@junctor/core/errors";
export { RawJson } from "@junctor/core/json";
export { createSeal, elicit, elicitUrl, listRoots, missingCapability, sample } from "@junctor/core/mcp";
export {
  audio,
  createCallContext,
  createOperation,
  embedResource,
  failure,
  image,
  inputRequired,
  Listing,
  resourceLink,
  structured,
  text,
  withContext,
} from "@junctor/core/provider";
