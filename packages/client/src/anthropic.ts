/** The tools of a server for Anthropic's SDK. */

export {
  type AnthropicTools,
  toAnthropicTools,
  type ModelClient,
  type ModelToolOptions,
} from "./models/index.ts";
