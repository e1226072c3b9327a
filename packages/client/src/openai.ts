/** The tools of a server for the SDK of OpenAI: the Responses API and chat completions. */

export { type OpenAITools, toOpenAITools, type ModelClient, type ModelToolOptions } from "./models/index.ts";
