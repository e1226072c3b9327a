import type { ToolResult } from "@junctor/core/mcp";
import {
  listModelTools,
  type ModelClient,
  type ModelToolOptions,
  toBlockText,
  toParameters,
  toPlainText,
} from "./model-tools.ts";

/** The tools of a server as OpenAI's SDK takes them. */
export interface OpenAITools {
  /** For `responses.create`. */
  readonly responses: OpenAIResponseTool[];
  /** For `chat.completions.runTools`, which calls them by itself, and for `chat.completions.create`. */
  readonly chat: OpenAIChatTool[];
  /** Makes the call that a response wants, and resolves with the item that answers it in the next request. */
  answer(call: OpenAICall, options?: { readonly signal?: AbortSignal }): Promise<OpenAIAnswer>;
}

interface OpenAIResponseTool {
  type: "function";
  name: string;
  description: string | null;
  parameters: { [keyword: string]: unknown };
  strict: boolean;
}

interface OpenAIChatTool {
  type: "function";
  function: {
    name: string;
    description: string;
    parameters: { [keyword: string]: unknown };
    parse: (text: string) => object;
    function: (args: object, runner: { readonly controller: AbortController }) => Promise<string>;
  };
}

interface OpenAICall {
  readonly type: "function_call";
  readonly call_id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
}

interface OpenAIAnswer {
  type: "function_call_output";
  call_id: string;
  output:
    | string
    | ({ type: "input_text"; text: string } | { type: "input_image"; image_url: string; detail: "auto" })[];
}

/**
 * The tools of a server for OpenAI's SDK. With the Responses API, an image reaches the model as an image. A signal stops the call. The
 * handlers of the client answer what the server asks. Only a call that did not reach the server is sent again.
 *
 * @example
 * import { toOpenAITools } from "@junctor/client/openai";
 * const tools = await toOpenAITools(client);
 * const response = await openai.responses.create({ model: "gpt-5", input: yourInput, tools: tools.responses });
 * const calls = response.output.filter((item) => item.type === "function_call");
 * yourInput.push(...response.output, ...(await Promise.all(calls.map((call) => tools.answer(call)))));
 */
export async function toOpenAITools(
  client: ModelClient,
  options: ModelToolOptions = {},
): Promise<OpenAITools> {
  const listed = await listModelTools(client, options);
  const byName = new Map(listed.map((tool) => [tool.name, tool]));
  return {
    responses: listed.map(({ name, tool }) => ({
      type: "function",
      name,
      description: tool.description ?? null,
      parameters: toParameters(tool),
      strict: false,
    })),
    chat: listed.map(({ name, tool, call }) => ({
      type: "function",
      function: {
        name,
        description: tool.description ?? "",
        parameters: toParameters(tool),
        parse: (text) => parseArguments(text),
        function: async (args, { controller }) => toPlainText(await call(args, controller.signal)),
      },
    })),
    answer: async ({ call_id, name, arguments: text }, { signal } = {}) => {
      const found = byName.get(name);
      const toAnswer = (output: OpenAIAnswer["output"]): OpenAIAnswer => ({
        type: "function_call_output",
        call_id,
        output,
      });
      if (found === undefined) return toAnswer(`There is no tool ${JSON.stringify(name)}.`);
      let args: object;
      try {
        args = parseArguments(text);
      } catch (error) {
        return toAnswer(`The call was not made: its arguments are not JSON: ${(error as Error).message}`);
      }
      return toAnswer(toOutput(await found.call(args, signal)));
    },
  };
}

/** Models write nothing at all for a tool without arguments. */
function parseArguments(text: string): object {
  return text.trim() === "" ? {} : (JSON.parse(text) as object);
}

function toOutput(result: ToolResult): OpenAIAnswer["output"] {
  if (!result.content.some(({ type }) => type === "image")) return toPlainText(result);
  return result.content.map((block) =>
    block.type === "image"
      ? { type: "input_image", image_url: `data:${block.mimeType};base64,${block.data}`, detail: "auto" }
      : { type: "input_text", text: toBlockText(block) },
  );
}
