/** The tools of a server for the AI SDK, 6 and newer. */

export { type AiSdkTool, toAiSdkTools, type ModelClient, type ModelToolOptions } from "./models/index.ts";
