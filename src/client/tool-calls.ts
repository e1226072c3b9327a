import type { Clock } from "../async/clock.ts";
import type { Deadline } from "../async/deadline.ts";
import { unlessAborted } from "../async/unless-aborted.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { joinJson } from "../json/join.ts";
import { RawJson } from "../json/raw.ts";
import type { Ask, Tool, ToolResult } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";
import type { Answers, ToolCall, ToolOutcome } from "../tools/provider.ts";
import type { CallOptions } from "./call-options.ts";
import type { Recorded, Tally } from "./call-record.ts";
import { type RequestSpec, resultTypeOf } from "./conversation.ts";
import type { Deadlines } from "./deadlines.ts";
import { answerAll, fulfil } from "./fulfil.ts";
import { type AskHandlers, parseAsks } from "./handlers.ts";
import type { Lists } from "./lists.ts";
import { toMirroredHeaders } from "./mirrored.ts";
import { toNotSent } from "./not-sent.ts";
import type { OnBehalf } from "./on-behalf.ts";
import type { ToolCheck } from "./tool-check.ts";

/** Sends a request in whatever conversation is on. */
export type Send = (method: string, params: RawJson | undefined, spec: RequestSpec) => Promise<RawJson>;

export interface ToolCallsOptions {
  readonly send: Send;
  readonly lists: Lists;
  readonly check: ToolCheck;
  readonly handlers: AskHandlers;
  readonly recorded: Recorded;
  readonly deadlines: Deadlines;
  readonly onBehalf: OnBehalf;
  readonly clock: Clock;
  readonly maxRounds: number;
  readonly validate: boolean;
  /** Whether headers repeat arguments, for which the tool's schema must be known. */
  readonly isMirroring: () => boolean;
}

/** Calling tools, for people and for programs that compose providers. */
export interface ToolCalls {
  call(name: string, args: object, options: CallOptions): Promise<ToolResult>;
  forward(call: ToolCall, context: CallContext): Promise<ToolOutcome>;
}

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { send, lists, check, handlers, clock, deadlines, recorded } = options;

  /** What is known of a tool. Nothing has been sent for the call while that is found out. */
  const findTool = async (name: string, signal: AbortSignal): Promise<Tool | undefined> => {
    try {
      const known = lists.tools.last ?? (await unlessAborted(lists.tools.get(), signal));
      return known.find((tool) => tool.name === name);
    } catch (error) {
      throw toNotSent(error);
    }
  };

  /** One round. A server that says the headers are wrong has another schema than we know: look again, once. */
  const round = async (call: ToolCall, tool: Tool | undefined, spec: RequestSpec): Promise<ToolOutcome> => {
    const attempt = (known: Tool | undefined): Promise<RawJson> => {
      const mirrored = known === undefined ? undefined : toMirroredHeaders(known, call.arguments);
      return send("tools/call", toParams(call), mirrored === undefined ? spec : { ...spec, mirrored });
    };
    let result: RawJson;
    try {
      result = await attempt(tool);
    } catch (error) {
      if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.header_mismatch"]) throw error;
      lists.tools.invalidate();
      const renewed = await unlessAborted(lists.tools.get(), spec.stop.signal);
      result = await attempt(renewed.find(({ name }) => name === call.name));
    }
    if (resultTypeOf(result) === "complete") return { kind: "complete", result };
    const state = result.at("requestState")?.value;
    const asks = parseAsks(result.at("inputRequests"));
    return { kind: "input_required", asks, ...(state === undefined ? {} : { state }) };
  };

  const answer = async (asks: { readonly [key: string]: Ask }, underway: Deadline): Promise<Answers> => {
    const release = underway.hold();
    try {
      return await answerAll(asks, handlers, underway.signal, clock);
    } finally {
      release();
    }
  };

  const toSpec = (
    underway: Deadline,
    args: RawJson,
    tally: Tally,
    onEvent: ((event: CallEvent) => void) | undefined,
  ): RequestSpec => {
    const { stop } = underway;
    const onSent = (): void => {
      underway.isSent = true;
      tally.bytesSent = args.byteLength;
    };
    if (onEvent === undefined) return { stop, onSent };
    const observe = (event: CallEvent): void => {
      underway.touch();
      onEvent(event);
    };
    return { stop, onSent, onEvent: observe };
  };

  return {
    call: async (name, args, given) => {
      const shouldCheck = given.validate ?? options.validate;
      const raw = RawJson.fromValue(args);
      const subject = { tool: name, args: raw, caller: given.caller };
      const outcome = await recorded(subject, (tally) =>
        deadlines.run(given, async (underway) => {
          const needsTool = shouldCheck || options.isMirroring();
          const tool = needsTool ? await findTool(name, underway.signal) : undefined;
          if (shouldCheck && tool !== undefined) await check.checkArguments(tool, raw.value);
          const { logLevel } = given;
          const plain = toSpec(underway, raw, tally, given.onEvent);
          const spec = logLevel === undefined ? plain : { ...plain, logLevel };
          const result = await fulfil(
            (resumption) => round({ name, arguments: raw, resumption }, tool, spec),
            (asks) => answer(asks, underway),
            options.maxRounds,
          );
          tally.bytesReceived = result.byteLength;
          if (shouldCheck && tool !== undefined && result.at("isError")?.value !== true)
            await check.checkOutput(tool, result.at("structuredContent")?.value);
          return { kind: "complete", result };
        }),
      );
      const result = toToolResult(outcome.kind === "complete" ? outcome.result : RawJson.fromValue({}));
      if (given.throwOnToolError === true && result.isError === true)
        throw new ToolError(describeFailure(result));
      return result;
    },

    forward: (call, context) => {
      const subject = {
        tool: call.name,
        args: call.arguments,
        caller: context.caller,
        trace: () => {
          const trace = context.meta?.at("traceparent")?.value;
          return typeof trace === "string" ? trace : undefined;
        },
      };
      return recorded(subject, (tally) =>
        options.onBehalf(context, async (spec) => {
          const tool = options.isMirroring() ? await findTool(call.name, spec.stop.signal) : undefined;
          tally.bytesSent = call.arguments.byteLength;
          const outcome = await round(call, tool, spec);
          if (outcome.kind === "complete") tally.bytesReceived = outcome.result.byteLength;
          return outcome;
        }),
      );
    },
  };
}

/** The params of one round, with the arguments as the bytes they are. */
function toParams({ name, arguments: args, resumption }: ToolCall): RawJson {
  const parts: (string | RawJson)[] = [`{"name":${JSON.stringify(name)},"arguments":`, args];
  if (resumption !== undefined) {
    const { answers, latest = answers, state } = resumption;
    const entries = Object.entries(latest);
    if (entries.length > 0) {
      entries.forEach(([key, answer], index) => {
        parts.push(`${index === 0 ? ',"inputResponses":{' : ","}${JSON.stringify(key)}:`, answer);
      });
      parts.push("}");
    }
    if (typeof state === "string") parts.push(`,"requestState":${JSON.stringify(state)}`);
  }
  parts.push("}");
  return joinJson(parts);
}

/** What callers get. A legacy server may leave `content` out. */
function toToolResult(result: RawJson): ToolResult {
  const { content, structuredContent, isError, _meta } = result.value as Partial<ToolResult>;
  return {
    content: Array.isArray(content) ? content : [],
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  };
}

function describeFailure({ content }: ToolResult): string {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.length === 0 ? "The tool failed without saying why." : texts.join("\n");
}
