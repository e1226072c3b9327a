export { type AppView, type AppViewSpec, defineView } from "./app-view.ts";
export { type Completer, type CompletionRegistry, createCompletionRegistry } from "./completion.ts";
export type { ToolContext, ToolEvent, ToolHandler } from "./event.ts";
export type { Job } from "./jobs.ts";
export { resourceOffers } from "./members.ts";
export { createMemoryTasks, type MemoryTasks, type TaskRun } from "./memory-tasks.ts";
export {
  createPromptRegistry,
  type PromptContext,
  type PromptHandler,
  type PromptRegistry,
} from "./prompts.ts";
export { createRegistry, type Registry, type RegistryOptions } from "./registry.ts";
export {
  createResourceRegistry,
  type ReadContext,
  type ResourceReader,
  type ResourceRegistry,
} from "./resources.ts";
export {
  type InferredInput,
  type InferredOutput,
  type JsonSchema,
  type SchemaSource,
  toSchema,
} from "./schema.ts";
export { withJsonSchema } from "./standard-schema.ts";
export type { TaskContext, TaskHandler } from "./task-tools.ts";
export type { ToolSpec } from "./tool-spec.ts";
