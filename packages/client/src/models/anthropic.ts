import type { ToolResult } from "@junctor/core/mcp";
import {
  listModelTools,
  type ModelClient,
  type ModelToolOptions,
  toBlockText,
  toParameters,
  toPlainText,
} from "./model-tools.ts";

/** The tools of a server as Anthropic's SDK takes them. */
export interface AnthropicTools {
  /** For `messages.create`. */
  readonly definitions: AnthropicTool[];
  /** For `beta.messages.toolRunner`, which calls them by itself. */
  readonly runnable: AnthropicRunnable[];
  /** Makes the call of a `tool_use` block, and resolves with the block that answers it in the next message. */
  answer(call: AnthropicCall, options?: { readonly signal?: AbortSignal }): Promise<AnthropicAnswer>;
}

interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: "object"; [keyword: string]: unknown };
}

interface AnthropicRunnable extends AnthropicTool {
  parse: (args: unknown) => unknown;
  run: (
    args: unknown,
    context?: { readonly signal?: AbortSignal | null | undefined },
  ) => Promise<AnthropicBlock[]>;
}

interface AnthropicCall {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

interface AnthropicAnswer {
  type: "tool_result";
  tool_use_id: string;
  content: AnthropicBlock[];
  is_error: boolean;
}

type AnthropicBlock =
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: AnthropicImageType; data: string } };

type AnthropicImageType = "image/jpeg" | "image/png" | "image/gif" | "image/webp";
const imageTypes: readonly string[] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/**
 * The tools of a server for Anthropic's SDK. An image reaches the model as an image, and a signal stops the call. The handlers of the
 * client answer what the server asks. Only a call that did not reach the server is sent again.
 *
 * @example
 * import { toAnthropicTools } from "@junctor/client/anthropic";
 * const { runnable } = await toAnthropicTools(client);
 * const request = { model: "claude-opus-4-5", max_tokens: 1000, messages: yourMessages, tools: runnable };
 * const message = await anthropic.beta.messages.toolRunner(request);
 */
export async function toAnthropicTools(
  client: ModelClient,
  options: ModelToolOptions = {},
): Promise<AnthropicTools> {
  const listed = await listModelTools(client, options);
  const byName = new Map(listed.map((tool) => [tool.name, tool]));
  const definitions = listed.map(({ name, tool }) => ({
    name,
    description: tool.description ?? "",
    input_schema: { ...toParameters(tool), type: "object" as const },
  }));
  return {
    definitions,
    runnable: listed.map(({ call }, index) => ({
      ...(definitions[index] as AnthropicTool),
      parse: (args) => args,
      run: async (args, context) => {
        const result = await call(args, context?.signal ?? undefined);
        // The runner reports a thrown error as the failure of the tool, with this text.
        if (result.isError === true) throw new Error(toPlainText(result));
        return toBlocks(result);
      },
    })),
    answer: async ({ id, name, input }, { signal } = {}) => {
      const result = await byName.get(name)?.call(input, signal);
      const missing: AnthropicBlock[] = [{ type: "text", text: `There is no tool ${JSON.stringify(name)}.` }];
      return {
        type: "tool_result",
        tool_use_id: id,
        content: result === undefined ? missing : toBlocks(result),
        is_error: result === undefined || result.isError === true,
      };
    },
  };
}

function toBlocks(result: ToolResult): AnthropicBlock[] {
  const { content, structuredContent } = result;
  if (content.length === 0 && structuredContent !== undefined)
    return [{ type: "text", text: toPlainText(result) }];
  return content.map((block) => {
    if (block.type !== "image" || !imageTypes.includes(block.mimeType))
      return { type: "text", text: toBlockText(block) };
    const media_type = block.mimeType as AnthropicImageType;
    return { type: "image", source: { type: "base64", media_type, data: block.data } };
  });
}
