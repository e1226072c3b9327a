import type { ToolResult } from "@junctor/core/mcp";
import {
  listModelTools,
  type ModelClient,
  type ModelTool,
  type ModelToolOptions,
  toBlockText,
  toParameters,
  toPlainText,
} from "./model-tools.ts";

/** One tool as `generateText` and `streamText` take it. */
export interface AiSdkTool {
  readonly type: "dynamic";
  readonly description?: string;
  readonly title?: string;
  readonly inputSchema: AiSdkSchema;
  readonly execute: (args: unknown, options: AiSdkCall) => AsyncGenerator<ToolResult, void>;
  readonly toModelOutput: (options: { readonly output: unknown }) => AiSdkOutput;
}

/** A Standard Schema that knows its JSON Schema. Arguments are checked by the client. */
interface AiSdkSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: {
      readonly input: () => { [keyword: string]: unknown };
      readonly output: () => { [keyword: string]: unknown };
    };
  };
}

interface AiSdkCall {
  readonly abortSignal?: AbortSignal | undefined;
}

type AiSdkOutput =
  | { type: "text"; value: string }
  | { type: "error-text"; value: string }
  | { type: "content"; value: AiSdkPart[] };

type AiSdkPart =
  | { type: "text"; text: string }
  | { type: "image-data"; data: string; mediaType: string }
  | { type: "file-data"; data: string; mediaType: string };

/**
 * The tools of a server, by name, for `generateText` and `streamText`. Progress becomes a preliminary result, and an image reaches the
 * model as an image. The signal of the SDK stops the call. The handlers of the client answer what the server asks. Only a call that did not reach
 * the server is sent again.
 *
 * @example
 * import { toAiSdkTools } from "@junctor/client/ai-sdk";
 * const tools = await toAiSdkTools(client);
 * const { text } = await generateText({ model: yourModel, tools, stopWhen: stepCountIs(5), prompt: "What is new?" });
 */
export async function toAiSdkTools(
  client: ModelClient,
  options: ModelToolOptions = {},
): Promise<{ [name: string]: AiSdkTool }> {
  const tools = await listModelTools(client, options);
  return Object.fromEntries(tools.map((tool) => [tool.name, toAiSdkTool(tool)]));
}

function toAiSdkTool({ tool, stream }: ModelTool): AiSdkTool {
  const { description, title } = tool;
  const toSchema = (): { [keyword: string]: unknown } => ({ ...toParameters(tool) });
  return {
    type: "dynamic",
    ...(description === undefined ? {} : { description }),
    ...(title === undefined ? {} : { title }),
    inputSchema: {
      "~standard": {
        version: 1,
        vendor: "junctor",
        validate: (value) => ({ value }),
        jsonSchema: { input: toSchema, output: toSchema },
      },
    },
    async *execute(args, { abortSignal }) {
      for await (const part of stream(args, abortSignal)) {
        if (part.kind === "result") yield part.result;
        if (part.kind === "progress" && part.message !== undefined)
          yield { content: [{ type: "text", text: part.message }] };
      }
    },
    toModelOutput: ({ output }) => toOutput(output as ToolResult),
  };
}

function toOutput(result: ToolResult): AiSdkOutput {
  if (result.isError === true) return { type: "error-text", value: toPlainText(result) };
  const isMedia = ({ type }: ToolResult["content"][number]): boolean => type === "image" || type === "audio";
  if (!result.content.some(isMedia)) return { type: "text", value: toPlainText(result) };
  return {
    type: "content",
    value: result.content.map((block) => {
      if (block.type === "image") return { type: "image-data", data: block.data, mediaType: block.mimeType };
      if (block.type === "audio") return { type: "file-data", data: block.data, mediaType: block.mimeType };
      return { type: "text", text: toBlockText(block) };
    }),
  };
}
