export { type AppView, type AppViewSpec, defineView } from "./app-view.ts";
export { type Completer, type CompletionRegistry, createCompletionRegistry } from "./completion.ts";
export type {
  EventStream,
  HandlerResult,
  OutputResult,
  ToolContext,
  ToolEvent,
  ToolHandler,
} from "./event.ts";
export type { Job, TaskContext, TaskHandler } from "./task-tools.ts";
export { resourceOffers } from "./members.ts";
export { createMemoryTasks, type MemoryTasks, type TaskRun } from "./memory-tasks.ts";
export {
  createPromptRegistry,
  type PromptContext,
  type PromptHandler,
  type PromptOutput,
  type PromptRegistry,
} from "./prompts.ts";
export { createRegistry, isEventStream, type Registry, type RegistryOptions } from "./registry.ts";
export {
  createResourceRegistry,
  type ReadContext,
  type ReadResult,
  type ResourceReader,
  type ResourceRegistry,
} from "./resources.ts";
export {
  type InferredInput,
  type InferredOutput,
  type JsonSchema,
  type SchemaSource,
  toSchema,
  withJsonSchema,
} from "./schema.ts";
export type { NoInput } from "./tool-entry.ts";
export { assertSpec, type SoundSchemas, type ToolSpec, type ValueOf } from "./tool-spec.ts";
