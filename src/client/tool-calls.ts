import { randomUUID } from "node:crypto";
import { type Clock, sleep } from "../async/clock.ts";
import { createDeadline, type Deadline } from "../async/deadline.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { joinJson } from "../json/join.ts";
import { RawJson } from "../json/raw.ts";
import type { Ask, Tool, ToolResult } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";
import type { Resumption, ToolCall, ToolOutcome } from "../tools/provider.ts";
import type { Audit } from "./audit.ts";
import { digestOf } from "./audit.ts";
import type { CallOptions } from "./call-options.ts";
import { type Conversation, type RequestSpec, resultTypeOf } from "./conversation.ts";
import { type AskHandlers, answerAsk, parseAsks } from "./handlers.ts";
import type { Lists } from "./lists.ts";
import { toMirroredHeaders } from "./mirrored.ts";
import type { ToolCheck } from "./tool-check.ts";

/** Sends a request in whatever conversation is on. */
export type Send = (method: string, params: RawJson | undefined, spec: RequestSpec) => Promise<RawJson>;

export interface ToolCallsOptions {
  readonly send: Send;
  readonly converse: () => Promise<Conversation>;
  readonly lists: Lists;
  readonly check: ToolCheck;
  readonly handlers: AskHandlers;
  readonly audit: Audit | undefined;
  readonly target: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly maxTotalMs: number;
  readonly maxRounds: number;
  readonly validate: boolean;
  /** Deadlines of calls underway; they stand still while we answer a question of the server. */
  readonly deadlines: Set<Deadline>;
}

/** Calling tools, for people and for programs that compose providers. */
export interface ToolCalls {
  call(name: string, args: object, options: CallOptions): Promise<ToolResult>;
  forward(call: ToolCall, context: CallContext): Promise<ToolOutcome>;
}

/** A server that asks nothing and is not done wants to be asked again later. */
const pauseMs = 250;

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { send, converse, lists, check, handlers, clock, deadlines } = options;

  const findTool = async (name: string): Promise<Tool | undefined> =>
    (await lists.tools.known()).find((tool) => tool.name === name);

  /** One round. A server that says the headers are wrong has another schema than we know: look again, once. */
  const round = async (call: ToolCall, tool: Tool | undefined, spec: RequestSpec): Promise<ToolOutcome> => {
    const attempt = async (known: Tool | undefined): Promise<RawJson> =>
      send("tools/call", toParams(call), { ...spec, mirrored: toMirroredHeaders(known, call.arguments) });
    const result = await attempt(tool).catch(async (error: unknown) => {
      if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.header_mismatch"]) throw error;
      lists.tools.invalidate();
      return attempt((await lists.tools.get()).find(({ name }) => name === call.name));
    });
    if (resultTypeOf(result) === "complete") return { kind: "complete", result };
    const state = result.at("requestState")?.value;
    const asks = parseAsks(result.at("inputRequests"));
    return { kind: "input_required", asks, ...(state === undefined ? {} : { state }) };
  };

  const answerAll = async (
    asks: { readonly [key: string]: Ask },
    deadline: Deadline,
  ): Promise<Resumption["answers"]> => {
    const release = deadline.hold();
    try {
      const entries = Object.entries(asks);
      if (entries.length === 0) await sleep(pauseMs, clock, deadline.signal);
      const answers = entries.map(
        async ([key, ask]) => [key, await answerAsk(ask, handlers, deadline.signal)] as const,
      );
      return Object.fromEntries(await Promise.all(answers));
    } finally {
      release();
    }
  };

  const untilComplete = async (
    first: ToolCall,
    tool: Tool | undefined,
    spec: RequestSpec,
    deadline: Deadline,
  ): Promise<RawJson> => {
    let call = first;
    for (let rounds = 0; rounds <= options.maxRounds; rounds++) {
      const outcome = await round(call, tool, spec);
      if (outcome.kind === "complete") return outcome.result;
      const answers = await answerAll(outcome.asks, deadline);
      call = { ...first, resumption: { answers, state: outcome.state } };
    }
    throw new RpcError("rpc.other", `The server asked more than ${options.maxRounds} times; giving up`);
  };

  const watched = async <T>(
    limits: {
      signal?: AbortSignal | undefined;
      timeoutMs?: number | undefined;
      maxTotalMs?: number | undefined;
    },
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> => {
    const {
      timeoutMs: idleMs = options.timeoutMs,
      maxTotalMs: totalMs = options.maxTotalMs,
      signal,
    } = limits;
    using deadline = createDeadline({ idleMs, totalMs, signal, clock });
    deadlines.add(deadline);
    try {
      return await work(deadline);
    } finally {
      deadlines.delete(deadline);
    }
  };

  const toSpec = (deadline: Deadline, onEvent: ((event: CallEvent) => void) | undefined): RequestSpec => ({
    signal: deadline.signal,
    ...(onEvent === undefined
      ? {}
      : {
          onEvent: (event) => {
            deadline.touch();
            onEvent(event);
          },
        }),
  });

  const recorded = async (
    name: string,
    args: RawJson,
    caller: string | undefined,
    work: () => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> => {
    const { audit } = options;
    if (audit === undefined) return work();
    const startedAt = clock.now();
    const finish = async (outcome: string, bytesReceived: number): Promise<void> => {
      const mode = await converse().then(
        ({ agreement }) => agreement.mode,
        () => undefined,
      );
      await audit.record({
        time: new Date(startedAt).toISOString(),
        call: randomUUID(),
        caller,
        server: options.target,
        tool: name,
        era: mode?.kind,
        revision: mode?.revision,
        argumentsDigest: digestOf(args),
        ...(audit.redact === undefined ? {} : { arguments: audit.redact(args.value, name) }),
        outcome,
        bytesSent: args.byteLength,
        bytesReceived,
        durationMs: clock.now() - startedAt,
      });
    };
    try {
      const outcome = await work();
      const isComplete = outcome.kind === "complete";
      const isError = isComplete && outcome.result.at("isError")?.value === true;
      await finish(
        isError ? "tool_error" : isComplete ? "ok" : outcome.kind,
        isComplete ? outcome.result.byteLength : 0,
      );
      return outcome;
    } catch (error) {
      await finish((error as { code?: string }).code ?? "unknown", 0);
      throw error;
    }
  };

  return {
    call: async (name, args, given) => {
      const shouldCheck = given.validate ?? options.validate;
      const raw = RawJson.fromValue(args);
      const outcome = await recorded(name, raw, given.caller, () =>
        watched(given, async (deadline) => {
          const tool = await findTool(name);
          if (shouldCheck && tool !== undefined) await check.checkArguments(tool, raw.value);
          const { logLevel } = given;
          const spec = {
            ...toSpec(deadline, given.onEvent),
            ...(logLevel === undefined ? {} : { logLevel }),
          };
          const result = await untilComplete({ name, arguments: raw }, tool, spec, deadline);
          if (shouldCheck && tool !== undefined && result.at("isError")?.value !== true) {
            await check.checkOutput(tool, result.at("structuredContent")?.value);
          }
          return { kind: "complete", result };
        }),
      );
      const result = toToolResult(outcome.kind === "complete" ? outcome.result : RawJson.fromValue({}));
      if (given.throwOnToolError === true && result.isError === true)
        throw new ToolError(describeFailure(result));
      return result;
    },

    forward: (call, context) =>
      recorded(call.name, call.arguments, context.caller, () =>
        watched(context, async (deadline) => {
          const { agreement } = await converse();
          const needsSchema = agreement.mode.kind === "modern";
          const tool = needsSchema ? await findTool(call.name) : undefined;
          const spec = toSpec(deadline, (event) => void context.emit(event));
          return round(call, tool, { ...spec, capabilities: context.capabilities });
        }),
      ),
  };
}

/** The params of one round, with the arguments as the bytes they are. */
function toParams({ name, arguments: args, resumption }: ToolCall): RawJson {
  const parts: (string | RawJson)[] = [`{"name":${JSON.stringify(name)},"arguments":`, args];
  if (resumption !== undefined) {
    const { answers, state } = resumption;
    const entries = Object.entries(answers);
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
