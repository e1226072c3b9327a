/** The tools of a server for the SDK of Anthropic. */

export {
  type AnthropicTools,
  toAnthropicTools,
  type ModelClient,
  type ModelToolOptions,
} from "./models/index.ts";
