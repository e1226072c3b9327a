export { type AiSdkTool, toAiSdkTools } from "./ai-sdk.ts";
export { type OpenAITools, toOpenAITools } from "./openai.ts";
export { type AnthropicTools, toAnthropicTools } from "./anthropic.ts";
export type { ModelClient, ModelToolOptions } from "./model-tools.ts";
