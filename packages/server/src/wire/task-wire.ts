/** Tasks as callers see them: their ids, and their JSON (SEP-2663). */
import { NotFoundError, RpcError } from "@junctor/core/errors";
import { joinJson, RawJson } from "@junctor/core/json";
import type { Seal } from "@junctor/core/mcp";
import type { TaskState } from "@junctor/core/provider";
import { toErrorBody } from "@junctor/core/rpc";

/** An id opens for ten years. When a task expires is for its provider to say. */
const idTtlMs = 10 * 365 * 24 * 3_600_000;
/** Ids are repeated in a header, and Node takes 16 KiB of headers. */
const maxIdLength = 4096;

/** The id of a task for one caller. For any other caller it does not open. */
function toTaskId(ref: string, seal: Seal, caller: string | undefined): string {
  const id = seal.seal(ref, toBinding(caller), idTtlMs);
  if (id.length <= maxIdLength) return id;
  const text = `The id of the task has ${id.length} characters; the limit is ${maxIdLength}. Keep the state of the job elsewhere, and return its key`;
  throw new RpcError("rpc.internal", text);
}

/** The provider's name of a task. For every id that does not open the error is the same: the task is unknown. */
export function openTaskId(id: string, seal: Seal, caller: string | undefined): string {
  const opened = id.length <= maxIdLength ? seal.open(id, toBinding(caller)) : undefined;
  if (opened?.ok === true && typeof opened.payload === "string") return opened.payload;
  throw new NotFoundError("task", "");
}

function toBinding(caller: string | undefined): string {
  return JSON.stringify([caller ?? null, "task"]);
}

/** The result of a call that became a task. It says nothing of questions and results: `tasks/get` does. */
export function toCreatedTask(task: TaskState, seal: Seal, caller: string | undefined): RawJson {
  return RawJson.fromText(`{"resultType":"task",${toMembers(task, toTaskId(task.ref, seal, caller))}}`);
}

/** The whole of a task, for `tasks/get` and for those who listen. `more` is members as JSON text. */
export function toTaskJson(task: TaskState, id: string, more?: string): RawJson {
  const head = `{${toMembers(task, id)}${more === undefined ? "" : `,${more}`}`;
  switch (task.status) {
    case "input_required":
      return RawJson.fromText(`${head},"inputRequests":${JSON.stringify(task.asks)}}`);
    case "completed":
      return joinJson([`${head},"result":`, task.result, "}"]);
    case "failed":
      return RawJson.fromText(`${head},"error":${toErrorText(task.error)}}`);
    case "working":
    case "cancelled":
      return RawJson.fromText(`${head}}`);
  }
}

function toMembers(task: TaskState, taskId: string): string {
  const { status, message, createdAt, updatedAt, ttlMs, pollMs } = task;
  const members = {
    taskId,
    status,
    statusMessage: message,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: pollMs,
  };
  return JSON.stringify(members).slice(1, -1);
}

function toErrorText(error: RpcError): string {
  const { code, message, data } = toErrorBody(error);
  const more = data === undefined ? "" : `,"data":${data.text}`;
  return `${JSON.stringify({ code, message }).slice(0, -1)}${more}}`;
}
