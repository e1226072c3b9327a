import { type Awaitable, isPromise } from "../async/awaitable.ts";
import type { Cancellation } from "../async/cancellation.ts";
import { type Clock, waitFor } from "../async/clock.ts";
import type { Deadline } from "../async/deadline.ts";
import { toTrace } from "../audit/bounded.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Ask, Tool, ToolResult } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";
import type { Answers, ToolCall, ToolOutcome } from "../tools/provider.ts";
import type { CallOptions } from "./call-options.ts";
import { newTally, type Recorded, type Tally } from "./call-record.ts";
import type { RequestSpec } from "./conversation.ts";
import type { Deadlines } from "./deadlines.ts";
import { answerAll, fulfil } from "./fulfil.ts";
import type { AskHandlers } from "./handlers.ts";
import type { Lists } from "./lists.ts";
import { toMirroredHeaders } from "./mirrored.ts";
import { toNotSent } from "./not-sent.ts";
import type { OnBehalf } from "./on-behalf.ts";
import { toMetaMembers } from "./own-meta.ts";
import { toRoundOutcome, toRoundParams } from "./round.ts";
import type { ToolCheck } from "./tool-check.ts";

/** Sends a request in whatever conversation is on. */
export type Send = (
  method: string,
  params: RawJson | undefined,
  spec: RequestSpec,
  about?: string,
) => Promise<RawJson>;

interface ToolCallsOptions {
  readonly send: Send;
  readonly lists: Lists;
  readonly check: ToolCheck;
  readonly handlers: AskHandlers;
  /** Undefined where nobody wants records. */
  readonly recorded: Recorded | undefined;
  readonly deadlines: Deadlines;
  readonly onBehalf: OnBehalf;
  readonly clock: Clock;
  readonly maxRounds: number;
  readonly validate: boolean;
  /** Whether headers repeat arguments, for which the tool's schema must be known. */
  readonly isMirroring: () => boolean;
}

/** Calling tools, for people and for programs that compose providers. */
interface ToolCalls {
  call(name: string, args: object, options: CallOptions): Promise<ToolResult>;
  forward(call: ToolCall, context: CallContext): Promise<ToolOutcome>;
}

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { send, lists, check, handlers, clock, deadlines, recorded } = options;

  /** What is known of a tool. Nothing has been sent for the call while that is found out. */
  const findTool = (name: string, stop: Cancellation): Awaitable<Tool | undefined> => {
    const { last } = lists.tools;
    if (last !== undefined) return toolsByName(last).get(name);
    return waitFor(lists.tools.get(), stop).then(
      (tools) => toolsByName(tools).get(name),
      (error: unknown) => {
        throw toNotSent(error);
      },
    );
  };

  const attempt = (call: ToolCall, known: Tool | undefined, spec: RequestSpec): Promise<RawJson> => {
    const mirrored = toMirroredHeaders(known, call.arguments);
    const made = mirrored === undefined ? spec : { ...spec, mirrored };
    const head = [`{"name":${JSON.stringify(call.name)},"arguments":`, call.arguments];
    return send("tools/call", toRoundParams(head, call.resumption), made, call.name);
  };

  /** One round. A server that says the headers are wrong has another schema than we know: look again, once. */
  const round = (call: ToolCall, tool: Tool | undefined, spec: RequestSpec): Promise<ToolOutcome> =>
    attempt(call, tool, spec).then(toRoundOutcome, async (error: unknown) => {
      if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.header_mismatch"]) throw error;
      lists.tools.invalidate();
      const renewed = await waitFor(lists.tools.get(), spec.stop);
      const known = renewed.find(({ name }) => name === call.name);
      return toRoundOutcome(await attempt(call, known, spec));
    });

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

  const forward = (call: ToolCall, context: CallContext): Promise<ToolOutcome> =>
    options.onBehalf(context, (spec) => {
      const tool = options.isMirroring() ? findTool(call.name, spec.stop) : undefined;
      return isPromise(tool) ? tool.then((found) => round(call, found, spec)) : round(call, tool, spec);
    });

  return {
    call: async (name, args, given) => {
      const shouldCheck = given.validate ?? options.validate;
      const raw = RawJson.fromValue(args);
      const { logLevel, caller } = given;
      const meta = toMetaMembers(given.meta, logLevel);
      const trace = (): string | undefined => toTrace(given.meta?.["traceparent"]);
      const subject = { tool: name, args: raw, caller, trace };
      const work = (tally: Tally): Promise<ToolOutcome> =>
        deadlines.run(given, async (underway) => {
          const needsTool = shouldCheck || options.isMirroring();
          const tool = needsTool ? await findTool(name, underway.stop) : undefined;
          if (shouldCheck && tool !== undefined) await check.checkArguments(tool, raw.value);
          const spec = { ...toSpec(underway, raw, tally, given.onEvent), logLevel, meta };
          const result = await fulfil(
            (resumption) => round({ name, arguments: raw, resumption }, tool, spec),
            (asks) => answer(asks, underway),
            options.maxRounds,
          );
          tally.bytesReceived = result.byteLength;
          if (shouldCheck && tool !== undefined && result.at("isError")?.value !== true)
            await check.checkOutput(tool, result.at("structuredContent")?.value);
          return { kind: "complete", result };
        });
      const outcome = await (recorded === undefined ? work(newTally()) : recorded(subject, work));
      const result = toToolResult(outcome.kind === "complete" ? outcome.result : RawJson.fromValue({}));
      if (given.throwOnToolError === true && result.isError === true)
        throw new ToolError(describeFailure(result));
      return result;
    },

    forward: (call, context) => {
      if (recorded === undefined) return forward(call, context);
      const { name, arguments: args } = call;
      const subject = {
        tool: name,
        args,
        caller: context.caller,
        trace: () => toTrace(context.meta?.at("traceparent")?.value),
      };
      return recorded(subject, async (tally) => {
        tally.bytesSent = args.byteLength;
        const outcome = await forward(call, context);
        if (outcome.kind === "complete") tally.bytesReceived = outcome.result.byteLength;
        return outcome;
      });
    },
  };
}

const known = new WeakMap<readonly Tool[], ReadonlyMap<string, Tool>>();

/** The tools of a list by name, made once for each list. Of several with one name, the first. */
function toolsByName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  let byName = known.get(tools);
  if (byName === undefined) {
    byName = new Map(tools.toReversed().map((tool) => [tool.name, tool]));
    known.set(tools, byName);
  }
  return byName;
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
