export { type Apps, modelTools, type ReadOptions, type Reads } from "./reads.ts";
export { QuestionHabits } from "./question-router.ts";
export type { ClientOptions, Client } from "./client.ts";
export { connect, type ConnectOptions, type Target } from "./connect.ts";
export type { Agreement } from "./conversation.ts";
export { createEraCache, type EraCache } from "./negotiate.ts";
export {
  followTask,
  newAsks,
  type ClientTask,
  type StartedCall,
  type TaskReport,
  type TaskWait,
} from "./tasks.ts";
export type { QuestionHandlers } from "./handlers.ts";
export type { ClientSkills, LoadedSkill } from "./skills.ts";
export { type CallPart, type CallOptions, textOf } from "./tool-calls.ts";
