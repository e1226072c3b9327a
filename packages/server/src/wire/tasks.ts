import { type Awaitable, andThen, settled } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { declaredExtension, extensionIds, missingExtension, type Seal } from "@junctor/core/mcp";
import type { CallContext, Answers, TaskProvider, TaskState } from "@junctor/core/provider";
import { empty, type Finish, type Methods, objectParam, type Served, stringParam } from "./served.ts";
import { openTaskId, toTaskJson } from "./task-wire.ts";

/** The methods of tasks. Only modern callers have them: 2025-11-25 has methods of the same names that do other things. */
export function taskMethods(tasks: TaskProvider, seal: Seal, finish: Finish): Methods {
  const serve = (
    { params, wire, context }: Served,
    work: (ref: string, id: string) => Awaitable<RawJson>,
  ): Awaitable<RawJson> => {
    assertDeclared(context);
    const id = stringParam(params, "taskId");
    return andThen(work(openTaskId(id, seal, wire.caller), id), (result) => finish(result, wire.era));
  };
  return {
    "tasks/get": (served) =>
      serve(served, (ref, id) =>
        andThen(settled(tasks.get(ref, served.context)), (task) => toTaskJson(task, id)),
      ),
    "tasks/update": (served) =>
      serve(served, (ref) => {
        const answers = readAnswers(served.params);
        return andThen(settled(tasks.update(ref, answers, served.context)), () => empty);
      }),
    "tasks/cancel": (served) =>
      serve(served, (ref) => andThen(settled(tasks.cancel(ref, served.context)), () => empty)),
  };
}

/** Capabilities count for one request: each request about a task must declare that its caller knows tasks. This is checked first. */
function assertDeclared({ capabilities }: Pick<CallContext, "capabilities">): void {
  if (declaredExtension(capabilities, extensionIds.tasks) === undefined)
    throw missingExtension(extensionIds.tasks);
}

function readAnswers(params: RawJson | undefined): Answers {
  const given = objectParam(params, "inputResponses");
  if (given === undefined)
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: inputResponses must be an object of answers by key",
    );
  // A map made by `fromEntries` has own properties only, whatever the keys are called.
  return Object.fromEntries(Object.keys(given.value as object).map((key) => [key, given.at(key)])) as Answers;
}

/** Most tasks of one listen request. */
const maxTaskIds = 256;

/** The ids of tasks that a filter names. Throws `-32021` for a caller that did not declare tasks. */
export function readTaskIds(
  wanted: unknown,
  tasks: TaskProvider | undefined,
  context: Pick<CallContext, "capabilities">,
): ReadonlySet<string> {
  if (wanted === undefined || tasks?.watch === undefined) return new Set();
  assertDeclared(context);
  const isList = Array.isArray(wanted) && wanted.every((id) => typeof id === "string");
  if (isList && wanted.length <= maxTaskIds) return new Set(wanted as readonly string[]);
  const text = `Invalid params: taskIds must be an array of at most ${maxTaskIds} ids`;
  throw new RpcError("rpc.invalid_params", text);
}

/**
 * Watches the tasks that can be watched, and leaves the others out. The state of each is sent once as it is now: one that ended before
 * would not be heard of again. `watched` takes the functions that end it.
 */
export async function watchTasks(
  ids: Iterable<string>,
  tasks: TaskProvider | undefined,
  seal: Seal,
  { served, watched, onState }: TaskWatch,
): Promise<void> {
  const { wire, context } = served;
  for (const id of ids) {
    try {
      const ref = openTaskId(id, seal, wire.caller);
      const stop = await tasks?.watch?.(ref, context, (task) => onState(id, task));
      if (stop === undefined || tasks === undefined) continue;
      watched.set(id, stop);
      onState(id, await tasks.get(ref, context));
    } catch {
      // It is not among those that are acknowledged, and that says enough.
    }
  }
}

interface TaskWatch {
  readonly served: Served;
  readonly watched: Map<string, () => void>;
  readonly onState: (id: string, task: TaskState) => void;
}
