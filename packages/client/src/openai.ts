/** The tools of a server for OpenAI's SDK: the Responses API and chat completions. */

export { type OpenAITools, toOpenAITools, type ModelClient, type ModelToolOptions } from "./models/index.ts";
