import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { AbortedError, AuthorizationError, BrandedError, ValidationError } from "@junctor/core/errors";
import type { Tool, ToolResult } from "@junctor/core/mcp";
import { type CallOptions, type CallPart, type Client, modelTools, textOf } from "../client/index.ts";

// What the tools for all model SDKs share. No SDK is imported, not even for its types: ours have the same structure.

/** The part of a client that tools for models need. */
export type ModelClient = Pick<Client, "listTools" | "streamTool">;

/** How tools for models are called; a `signal` comes from the SDK with each call. */
export interface ModelToolOptions extends Omit<CallOptions, "signal" | "throwOnToolError"> {
  /** How often a call that did not reach the server is sent again; 2. A call that may have reached it is never sent again. */
  readonly retries?: number;
}

/** A tool under a name that models accept. */
export interface ModelTool {
  readonly name: string;
  readonly tool: Tool;
  /** Yields progress as it comes, and the result at the end. A failure becomes a result that tells the model what happened to the call. */
  stream(args: unknown, signal: AbortSignal | undefined): AsyncGenerator<CallPart, void>;
  call(args: unknown, signal: AbortSignal | undefined): Promise<ToolResult>;
}

/** The tools of a server that a model may use. */
export async function listModelTools(
  client: ModelClient,
  options: ModelToolOptions = {},
): Promise<readonly ModelTool[]> {
  const { retries = 2, ...callOptions } = options;
  const nameFor = createNames();
  return modelTools(await client.listTools()).map((tool) => {
    const stream: ModelTool["stream"] = (args, signal) =>
      streamSafely(
        client,
        tool.name,
        args,
        { ...callOptions, ...(signal === undefined ? {} : { signal }) },
        retries,
      );
    return {
      name: nameFor(tool.name),
      tool,
      stream,
      call: async (args, signal) => {
        for await (const part of stream(args, signal)) if (part.kind === "result") return part.result;
        return toFailure("The call ended without a result.");
      },
    };
  });
}

/** Models accept up to 64 of these characters. Other names are changed, and get a digest of the original to stay distinct. */
function createNames(): (name: string) => string {
  const taken = new Set<string>();
  return (name) => {
    const plain = name.replaceAll(/[^\w-]/g, "_");
    const isFine = plain === name && name.length <= 64 && name !== "" && !taken.has(name);
    const digest = createHash("sha256").update(name).digest("hex").slice(0, 8);
    const fitting = isFine ? name : `${plain.slice(0, 55)}_${digest}`;
    taken.add(fitting);
    return fitting;
  };
}

const firstPauseMs = 100;

async function* streamSafely(
  client: ModelClient,
  name: string,
  args: unknown,
  options: CallOptions,
  retries: number,
): AsyncGenerator<CallPart, void> {
  const { signal } = options;
  for (let attempt = 0; ; attempt++) {
    try {
      yield* client.streamTool(name, toArguments(args), options);
      return;
    } catch (error) {
      if (signal?.aborted === true || error instanceof AbortedError) throw error;
      if (attempt >= retries || !isRetryable(error)) {
        yield { kind: "result", result: toFailure(describeFailure(error)) };
        return;
      }
    }
    await pause(firstPauseMs * 4 ** attempt, undefined, signal === undefined ? {} : { signal });
  }
}

function toArguments(args: unknown): object {
  return typeof args === "object" && args !== null ? args : {};
}

/** Whether a call failed before it reached its server, for a reason that may pass. */
function isRetryable(error: unknown): boolean {
  if (error instanceof ValidationError || error instanceof AuthorizationError) return false;
  return deliveryOf(error) === "not_sent";
}

function deliveryOf(error: unknown): unknown {
  return error instanceof BrandedError && "delivery" in error ? error.delivery : undefined;
}

/** A failure in words for a model, which must know whether it may call again. */
function describeFailure(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  switch (deliveryOf(error)) {
    case "not_sent":
      return `The call was not made: ${reason}`;
    case "outcome_unknown":
      return `It is not known whether the call was carried out, so find out before you make it again: ${reason}`;
    default:
      return reason;
  }
}

function toFailure(text: string): ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** An object schema as models take it: with `properties`, also where the server has none. */
export function toParameters({ inputSchema }: Tool): { readonly [keyword: string]: unknown } {
  return { ...inputSchema, type: "object", properties: inputSchema["properties"] ?? {} };
}

/** A result as text. Other content is named; a result without content becomes its structured content. */
export function toPlainText(result: ToolResult): string {
  const { content, structuredContent } = result;
  if (content.length === 0 && structuredContent !== undefined) return JSON.stringify(structuredContent);
  return content.map((block) => toBlockText(block)).join("\n");
}

/** A content block as text, for models and places that take only text. */
export function toBlockText(block: ToolResult["content"][number]): string {
  switch (block.type) {
    case "image":
    case "audio":
      return `[${block.type}: ${block.mimeType}]`;
    case "resource_link":
      return `[${block.name}: ${block.uri}]`;
    case "resource":
      return textOf({ content: [block] }) || `[${block.resource.mimeType ?? "data"}: ${block.resource.uri}]`;
    default:
      return block.text;
  }
}
