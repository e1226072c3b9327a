import { joinJson, joinMembers, type RawJson } from "@junctor/core/json";
import { withTasks } from "@junctor/core/mcp";
import type { CallContext, TaskProvider } from "@junctor/core/provider";
import type { Send } from "./conversations.ts";
import type { OnBehalf } from "./on-behalf.ts";
import { parseTask } from "./parse-result.ts";

interface TaskFacetOptions {
  readonly send: Send;
  readonly onBehalf: OnBehalf;
}

/** The tasks of a modern server, for those who forward the requests of others. Results and answers stay the bytes that came. */
export function createTaskFacet({ send, onBehalf }: TaskFacetOptions): TaskProvider {
  const request = (
    method: string,
    ref: string,
    context: CallContext,
    more: readonly (string | RawJson)[] = [],
  ): Promise<RawJson> => {
    const params = joinJson([`{"taskId":${JSON.stringify(ref)}`, ...more, "}"]);
    // For a caller that knows no tasks, the gateway may follow a task itself.
    return onBehalf(context, method, (spec) =>
      send(method, params, { ...spec, capabilities: withTasks(spec.capabilities ?? {}) }, ref),
    );
  };
  return {
    get: async (ref, context) => parseTask(await request("tasks/get", ref, context), ref),
    update: async (ref, answers, context) => {
      await request("tasks/update", ref, context, [',"inputResponses":', joinMembers(answers)]);
    },
    cancel: async (ref, context) => {
      await request("tasks/cancel", ref, context);
    },
  };
}
