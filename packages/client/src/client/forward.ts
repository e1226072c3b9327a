import { type Awaitable, isPromise, type Cancellation, waitFor } from "@junctor/core/async";
import { RpcError, rpcCodes } from "@junctor/core/errors";
import { joinJson, joinMembers, type RawJson, parseText } from "@junctor/core/json";
import {
  extensionIds,
  encodeHeaderValue,
  mirroredParams,
  parseAsks,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import type { CallContext, OldOutcome, Round, ToolCall, ToolOutcome } from "@junctor/core/provider";
import type { RequestSpec } from "./conversation.ts";
import { type Conversations, toNotSent } from "./conversations.ts";
import type { Lists } from "./lists.ts";
import type { OnBehalf } from "./on-behalf.ts";
import { parseTask } from "./parse-result.ts";

interface ForwarderOptions {
  readonly conversations: Pick<Conversations, "send" | "agreement">;
  readonly onBehalf: OnBehalf;
  readonly lists: Lists;
  readonly isHttp: boolean;
  /** Types of results that pass as they are, beside those of the protocol. */
  readonly resultTypes?: readonly string[] | undefined;
}

/** Sends calls of tools to the server, one round at a time. */
export interface Forwarder {
  /** Makes a call on behalf of a caller, which answers the questions of the server. */
  forward(call: ToolCall, context: CallContext): Promise<ToolOutcome>;
  /** One round of a call. `read` says what the answer means. */
  round<T>(
    call: ToolCall,
    tool: Tool | undefined,
    spec: RequestSpec,
    read: (result: RawJson) => T,
  ): Promise<T>;
  /** Whether headers repeat arguments, for which the tool's schema must be known. */
  isMirroring(): boolean;
  /** The definition of a tool. It is looked up before anything is sent for the call. */
  findTool(name: string, stop: Cancellation): Awaitable<Tool | undefined>;
}

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { conversations, onBehalf, lists, isHttp, resultTypes = [] } = options;
  const { send } = conversations;
  const isMirroring = (): boolean => isHttp && conversations.agreement?.mode.kind === "modern";

  const findTool: Forwarder["findTool"] = (name, stop) => {
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
    const mirrored = known === undefined ? undefined : toMirroredHeaders(known, call.arguments);
    const made = mirrored === undefined ? spec : { ...spec, mirrored };
    const head = [`{"name":${JSON.stringify(call.name)},"arguments":`, call.arguments];
    return send("tools/call", toRoundParams(head, call.round), made, call.name);
  };

  /** A server that says the headers are wrong has another schema than we know: look again, once. */
  const round: Forwarder["round"] = (call, tool, spec, read) =>
    attempt(call, tool, spec).then(read, async (error: unknown) => {
      if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.header_mismatch"]) throw error;
      lists.tools.invalidate();
      const renewed = await waitFor(lists.tools.get(), spec.stop);
      const known = renewed.find(({ name }) => name === call.name);
      return read(await attempt(call, known, spec));
    });

  return {
    findTool,
    isMirroring,
    round,
    forward: (call, context) =>
      onBehalf(context, call.name, (spec) => {
        const tool = isMirroring() ? findTool(call.name, spec.stop) : undefined;
        const known: (result: RawJson) => ToolOutcome = declaresTasks(spec) ? toOwnOutcome : toRoundOutcome;
        const read = resultTypes.length === 0 ? known : orOpened(resultTypes, known);
        return isPromise(tool)
          ? tool.then((found) => round(call, found, spec, read))
          : round(call, tool, spec, read);
      }),
  };
}

/** Takes results of types that the config opened as they are. */
function orOpened(
  types: readonly string[],
  read: (result: RawJson) => ToolOutcome,
): (result: RawJson) => ToolOutcome {
  return (result) => {
    const type = result.at("resultType")?.value;
    return typeof type === "string" && types.includes(type) ? { kind: "complete", result } : read(result);
  };
}

/** Whether a request declared that its caller knows tasks. For any other, a task is an error. */
function declaresTasks({ capabilities }: RequestSpec): boolean {
  return capabilities?.extensions !== undefined && extensionIds.tasks in capabilities.extensions;
}

/** Calls a tool directly, or for a program that composes providers. */
interface CallTool<Options extends object> {
  (name: string, args?: object, options?: Options): Promise<ToolResult>;
  (call: ToolCall, context: CallContext): Promise<ToolOutcome>;
}

/** One function for both ways of calling a tool. */
export function toCallTool<Options extends object>(
  call: (name: string, args?: object, options?: Options) => Promise<ToolResult>,
  forward: Forwarder["forward"],
): CallTool<Options> {
  const callTool = (first: string | ToolCall, second?: object, third?: Options): Promise<unknown> =>
    typeof first === "string" ? call(first, second, third) : forward(first, second as CallContext);
  return callTool as CallTool<Options>;
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

/**
 * The headers that repeat arguments of a modern call over HTTP; undefined for a tool that wants none, as most do. Values
 * that are missing or null have none.
 */
function toMirroredHeaders(
  { inputSchema }: Tool,
  args: RawJson,
): { readonly [header: string]: string } | undefined {
  const params = mirroredParams(inputSchema);
  if (params.length === 0) return undefined;
  const headers: { [header: string]: string } = {};
  for (const { header, path } of params) {
    const value = path.reduce<RawJson | undefined>((node, key) => node?.at(key), args);
    if (value === undefined || value.kind === "null") continue;
    headers[`mcp-param-${header.toLowerCase()}`] = encodeHeaderValue(toHeaderText(value));
  }
  return headers;
}

/** Integers in decimal, however they were written. Numbers too large for that stay as they are. */
function toHeaderText(json: RawJson): string {
  const { value } = json;
  if (typeof value === "string") return value;
  return Number.isSafeInteger(value) ? String(value) : json.text;
}

/**
 * The params of one round of a request that may have to ask something. `head` is the object without its closing brace, in
 * pieces. The answers of the last round follow as the bytes the caller gave.
 */
export function toRoundParams(head: readonly (string | RawJson)[], round: Round | undefined): RawJson {
  if (round === undefined) return joinJson([...head, "}"]);
  const { answers, latest = answers, state } = round;
  const hasAnswers = Object.keys(latest).length > 0;
  return joinJson([
    ...head,
    ...(hasAnswers ? [',"inputResponses":', joinMembers(latest)] : []),
    ...(typeof state === "string" ? [`,"requestState":${JSON.stringify(state)}`] : []),
    "}",
  ]);
}

/** What a server's answer to one round means. */
export function toRoundOutcome(result: RawJson): OldOutcome {
  if (resultTypeOf(result) === "complete") return { kind: "complete", result };
  const state = result.at("requestState")?.value;
  const asks = parseAsks(result.at("inputRequests"));
  return { kind: "input_required", asks, ...(state === undefined ? {} : { state }) };
}

/** The same for a call that declared tasks. */
export function toOwnOutcome(result: RawJson): ToolOutcome {
  if (result.textOf("resultType") !== '"task"') return toRoundOutcome(result);
  return { kind: "task", task: parseTask(result) };
}

/** The type of a result. A missing `resultType` means complete; an unknown one is an error. */
function resultTypeOf(result: RawJson): "complete" | "input_required" {
  const text = result.textOf("resultType");
  // The usual spelling.
  if (text === undefined || text === '"complete"') return "complete";
  const type: unknown = parseText(text) ?? "complete";
  if (type === "complete" || type === "input_required") return type;
  throw new RpcError(
    "rpc.other",
    `The server answered with a result of the unknown type ${JSON.stringify(type)}`,
  );
}
