import { RpcError, rpcCodes } from "@junctor/core/errors";
import { type RawJson, withoutMembers } from "@junctor/core/json";
import { parseAsks, type ToolResult } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import type { Outcome, TaskOutcome } from "@junctor/core/provider";

/** What callers get. A legacy server may leave `content` out. */
export function toToolResult(result: RawJson): ToolResult {
  const { content, structuredContent, isError, _meta } = result.value as Partial<ToolResult>;
  return defined({ content: Array.isArray(content) ? content : [], structuredContent, isError, _meta });
}

/** The longest id of a task that is kept. */
const maxIdLength = 8192;

/** The members of a task that are read here, and those that belong to one hop. */
const ofTask =
  "taskId status statusMessage createdAt lastUpdatedAt ttlMs pollIntervalMs inputRequests result error resultType cacheScope _meta".split(
    " ",
  );

/** Reads a task as a server wrote it. `id` is the one that was asked for. Throws for what is no task. */
export function parseTask(raw: RawJson, id?: string): TaskOutcome {
  const { taskId, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, statusMessage } = raw.value as {
    readonly [member: string]: unknown;
  };
  if (typeof taskId !== "string" || taskId === "" || taskId.length > maxIdLength)
    throw noTask("it has no taskId, or one that is too long");
  if (id !== undefined && taskId !== id) throw noTask("it is another task than the one asked for");
  const task = {
    ref: taskId,
    message: typeof statusMessage === "string" ? statusMessage : undefined,
    createdAt: parseTime(createdAt, "createdAt"),
    updatedAt: parseTime(lastUpdatedAt, "lastUpdatedAt"),
    ttlMs: typeof ttlMs === "number" && Number.isSafeInteger(ttlMs) && ttlMs > 0 ? ttlMs : null,
    pollMs: typeof pollIntervalMs === "number" && pollIntervalMs >= 0 ? pollIntervalMs : undefined,
    more: raw.hasOnly(ofTask) ? undefined : withoutMembers(raw, ofTask),
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
      if (result?.kind !== "object") throw noTask("it is completed and has no result");
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
      throw noTask(`its status is ${JSON.stringify(status)}`);
  }
}

function parseTime(value: unknown, member: string): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw noTask(`its ${member} is no date`);
  return time;
}

function noTask(why: string): RpcError {
  return new RpcError("rpc.other", `The server answered with a task that cannot be read: ${why}`);
}
