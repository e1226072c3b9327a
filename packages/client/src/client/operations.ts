import { type Awaitable, isPromise, type Cancellation, waitFor } from "@junctor/core/async";
import { RpcError, rpcCodes } from "@junctor/core/errors";
import { parseText, type RawJson, withoutMembers } from "@junctor/core/json";
import {
  encodeHeaderValue,
  extensionIds,
  methods,
  mirroredParams,
  parseAsks,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import { type Operation, type Outcome, toParams, type TaskOutcome } from "@junctor/core/provider";
import { type RequestSpec, type Conversations, toNotSent } from "./conversation.ts";
import type { Lists } from "./lists.ts";

interface OperationsOptions {
  readonly conversations: Pick<Conversations, "send" | "agreement">;
  readonly tools: Lists["tools"];
  readonly isHttp: boolean;
  /** Whether requests without capabilities of their own declare tasks. */
  readonly declaresTasks: boolean;
  /** The `resultType`s of tool results that pass unchanged, besides those of the protocol. */
  readonly resultTypes?: readonly string[] | undefined;
}

/** Sends operations to the server, one round at a time. */
export interface Operations {
  send(operation: Operation, spec: RequestSpec): Promise<Outcome>;
  /** The definition of a tool. It is looked up before anything is sent for the call. */
  findTool(name: string, stop: Cancellation): Awaitable<Tool | undefined>;
}

export function createOperations(options: OperationsOptions): Operations {
  const { conversations, tools, isHttp, declaresTasks, resultTypes = [] } = options;

  const findTool: Operations["findTool"] = (name, stop) =>
    tools.last === undefined
      ? waitFor(tools.get(), stop).then(
          (listing) => listing.get(name),
          (error: unknown) => {
            throw toNotSent(error);
          },
        )
      : tools.last.get(name);

  const request = (operation: Operation, tool: Tool | undefined, spec: RequestSpec): Promise<RawJson> => {
    const { method, name, ref = name } = operation;
    const about = methods.get(method)?.name === undefined ? undefined : ref;
    const mirrored = tool && toMirroredHeaders(tool, operation.arguments);
    const made = mirrored === undefined ? spec : { ...spec, mirrored };
    return conversations.send(method, toParams(operation), made, about);
  };

  /** The outcome that a result of the server stands for. */
  const toOutcome = (result: RawJson, { method, ref }: Operation, spec: RequestSpec): Outcome => {
    if (method === "tasks/get") return parseTask(result, ref);
    if (methods.get(method)?.asks !== true) return { kind: "complete", result };
    const text = result.textOf("resultType");
    // The usual spelling, without parsing. A missing type means complete.
    if (text === undefined || text === '"complete"') return { kind: "complete", result };
    const type: unknown = parseText(text) ?? "complete";
    const isOpened = method === "tools/call" && typeof type === "string" && resultTypes.includes(type);
    if (type === "complete" || isOpened) return { kind: "complete", result };
    if (type === "input_required") {
      const state = result.at("requestState")?.value;
      const asks = parseAsks(result.at("inputRequests"));
      return { kind: "input_required", asks, ...(state === undefined ? {} : { state }) };
    }
    if (type === "task" && method === "tools/call" && mayBeTask(spec)) return parseTask(result);
    throw new RpcError(
      "rpc.other",
      `The server answered with a result of the unknown type ${JSON.stringify(type)}`,
    );
  };
  /** Whether a request declared tasks. If not, a task as its result is an error. */
  const mayBeTask = ({ capabilities }: RequestSpec): boolean =>
    capabilities === undefined
      ? declaresTasks
      : capabilities.extensions !== undefined && extensionIds.tasks in capabilities.extensions;

  const callTool = (operation: Operation, tool: Tool | undefined, spec: RequestSpec): Promise<Outcome> =>
    request(operation, tool, spec).then(
      (result) => toOutcome(result, operation, spec),
      async (error: unknown) => {
        // A server that refuses the headers has another schema than the one we know: list the tools again, once.
        if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.header_mismatch"]) throw error;
        tools.invalidate();
        const renewed = (await waitFor(tools.get(), spec.stop)).get(operation.name);
        return toOutcome(await request(operation, renewed, spec), operation, spec);
      },
    );

  return {
    findTool,
    send: (operation, spec) => {
      if (operation.method !== "tools/call")
        return request(operation, undefined, spec).then((result) => toOutcome(result, operation, spec));
      const isMirroring = isHttp && conversations.agreement?.mode.kind === "modern";
      const tool = isMirroring ? findTool(operation.name, spec.stop) : undefined;
      return isPromise(tool)
        ? tool.then((found) => callTool(operation, found, spec))
        : callTool(operation, tool, spec);
    },
  };
}

/**
 * The headers that repeat arguments of a modern call over HTTP; undefined for a tool that wants no headers, which most are.
 * Missing and null values get no header.
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

/** A value as header text. Integers are decimal, however they were written; unsafe integers stay as they were written. */
function toHeaderText(json: RawJson): string {
  const { value } = json;
  if (typeof value === "string") return value;
  return Number.isSafeInteger(value) ? String(value) : json.text;
}

/** A result as callers get it. A legacy server may leave `content` out. */
export function toToolResult(result: RawJson): ToolResult {
  const { content, structuredContent, isError, _meta } = result.value as Partial<ToolResult>;
  return defined({ content: Array.isArray(content) ? content : [], structuredContent, isError, _meta });
}

/** The longest id of a task that is kept. */
const maxIdLength = 8192;

/** The members of a task that are read here or belong to one hop. All others are passed on. */
const taskMembers =
  "taskId status statusMessage createdAt lastUpdatedAt ttlMs pollIntervalMs inputRequests result error resultType cacheScope _meta".split(
    " ",
  );

/** Reads a task as a server wrote it. `id` is the one that was asked for. Throws if it is not a task. */
function parseTask(raw: RawJson, id?: string): TaskOutcome {
  const { taskId, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, statusMessage } = raw.value as {
    readonly [member: string]: unknown;
  };
  if (typeof taskId !== "string" || taskId === "" || taskId.length > maxIdLength)
    throw unreadableTask("it has no taskId, or one that is too long");
  if (id !== undefined && taskId !== id) throw unreadableTask("it is another task than the one asked for");
  const task = {
    ref: taskId,
    message: typeof statusMessage === "string" ? statusMessage : undefined,
    createdAt: parseTime(createdAt, "createdAt"),
    updatedAt: parseTime(lastUpdatedAt, "lastUpdatedAt"),
    ttlMs: typeof ttlMs === "number" && Number.isSafeInteger(ttlMs) && ttlMs > 0 ? ttlMs : null,
    pollMs: typeof pollIntervalMs === "number" && pollIntervalMs >= 0 ? pollIntervalMs : undefined,
    more: raw.hasOnly(taskMembers) ? undefined : withoutMembers(raw, taskMembers),
  };
  return { ...parseStatus(raw), task };
}

function parseStatus(raw: RawJson): Outcome {
  const status = raw.at("status")?.value;
  switch (status) {
    case "working":
    case "cancelled":
      return { kind: status };
    case "input_required":
      return { kind: status, asks: parseAsks(raw.at("inputRequests")) };
    case "completed": {
      const result = raw.at("result");
      if (result?.kind !== "object") throw unreadableTask("it is completed and has no result");
      return { kind: "complete", result };
    }
    case "failed": {
      const { code, message, data } = (raw.at("error")?.value ?? {}) as {
        readonly [member: string]: unknown;
      };
      const text = typeof message === "string" ? message : "The task failed without saying why";
      const rpcCode = typeof code === "number" ? code : rpcCodes["rpc.internal"];
      return { kind: status, error: new RpcError("rpc.other", text, { rpcCode, data }) };
    }
    default:
      throw unreadableTask(`its status is ${JSON.stringify(status)}`);
  }
}

function parseTime(value: unknown, member: string): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw unreadableTask(`its ${member} is not a date`);
  return time;
}

function unreadableTask(why: string): RpcError {
  return new RpcError("rpc.other", `The server answered with a task that cannot be read: ${why}`);
}
