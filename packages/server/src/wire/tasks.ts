/** Tasks as callers see them: their ids, and their JSON (SEP-2663). */
import { NotFoundError, RpcError } from "@junctor/core/errors";
import { joinJson, RawJson } from "@junctor/core/json";
import { declaredExtension, extensionIds, missingExtension, type Seal } from "@junctor/core/mcp";
import type { CallContext, Outcome, TaskOutcome } from "@junctor/core/provider";
import { toErrorBody } from "@junctor/core/rpc";

/** Throws `-32021` unless the request declares tasks. Capabilities count for one request, so each request about a task must. Check it first. */
export function assertDeclared({ capabilities }: Pick<CallContext, "capabilities">): void {
  if (declaredExtension(capabilities, extensionIds.tasks) === undefined)
    throw missingExtension(extensionIds.tasks);
}

/** Ids are valid for ten years: the provider decides when a task expires. */
const idTtlMs = 10 * 365 * 24 * 3_600_000;
/** Ids are repeated in a header, and Node takes 16 KiB of headers. */
const maxIdLength = 4096;

/** What the id of a task stands for: the tool whose call became the task, and the provider's own name of the task. */
export type TaskName = readonly [tool: string, ref: string];

/** The id of a task for one caller. It is not valid for any other caller. */
function toTaskId(name: TaskName, seal: Seal, caller: string | undefined): string {
  const id = seal.seal(name, toBinding(caller), idTtlMs);
  if (id.length <= maxIdLength) return id;
  const text = `The id of the task has ${id.length} characters; the limit is ${maxIdLength}. Keep the state of the job elsewhere, and return its key`;
  throw new RpcError("rpc.internal", text);
}

/** The task of an id. Every invalid id gets the same error: the task is unknown. */
export function openTaskId(id: string, seal: Seal, caller: string | undefined): TaskName {
  const opened = id.length <= maxIdLength ? seal.open(id, toBinding(caller)) : undefined;
  const name = opened?.ok === true ? opened.payload : undefined;
  if (Array.isArray(name) && name.length === 2 && name.every((part) => typeof part === "string"))
    return name as unknown as TaskName;
  throw new NotFoundError("task", "");
}

function toBinding(caller: string | undefined): string {
  return JSON.stringify([caller ?? null, "task"]);
}

/** The result of a call that became a task. It has no questions and results: `tasks/get` has them. */
export function toCreatedTask(
  outcome: TaskOutcome,
  tool: string,
  seal: Seal,
  caller: string | undefined,
): RawJson {
  const id = toTaskId([tool, outcome.task.ref], seal, caller);
  return RawJson.fromText(`{"resultType":"task",${toMembers(outcome, id)}${unknownOf(outcome)}}`);
}

/** The whole state of a task, for `tasks/get` and for listeners. `more` is further members as JSON text. */
export function toTaskJson(outcome: Outcome, id: string, more?: string): RawJson {
  assertTask(outcome);
  const head = `{${toMembers(outcome, id)}${unknownOf(outcome)}${more === undefined ? "" : `,${more}`}`;
  switch (outcome.kind) {
    case "input_required":
      return RawJson.fromText(`${head},"inputRequests":${JSON.stringify(outcome.asks)}}`);
    case "complete":
      return joinJson([`${head},"result":`, outcome.result, "}"]);
    case "failed":
      return RawJson.fromText(`${head},"error":${toErrorText(outcome.error)}}`);
    case "working":
    case "cancelled":
      return RawJson.fromText(`${head}}`);
  }
}

function assertTask(outcome: Outcome): asserts outcome is TaskOutcome {
  if (outcome.task === undefined) throw new TypeError("The provider did not say how its task is");
}

function toMembers({ kind, task }: TaskOutcome, taskId: string): string {
  const { message, createdAt, updatedAt, ttlMs, pollMs } = task;
  const members = {
    taskId,
    status: kind === "complete" ? "completed" : kind,
    statusMessage: message,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: pollMs,
  };
  return JSON.stringify(members).slice(1, -1);
}

/** The unknown members of a task from its server, with a comma in front. */
function unknownOf({ task: { more } }: TaskOutcome): string {
  const members = more?.text.trim().slice(1, -1).trim() ?? "";
  return members === "" ? "" : `,${members}`;
}

function toErrorText(error: RpcError): string {
  const { code, message, data } = toErrorBody(error);
  const more = data === undefined ? "" : `,"data":${data.text}`;
  return `${JSON.stringify({ code, message }).slice(0, -1)}${more}}`;
}
