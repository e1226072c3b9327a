import type { Client } from "../../client/client.ts";
import { fromLineTaskId, isLine, toLineTaskId } from "../../cluster/line-server.ts";
import type { TaskState } from "../../tools/task.ts";

/** Tasks of the server, and tasks that the gateway hosts for one that knows only those of 2025-11-25. */
export const prefixes: { readonly own: "m:"; readonly hosted: "h:" } = { own: "m:", hosted: "h:" };

/** The ref of a task as the server of a client knows it. A replica adds its prefix, which is the same at every replica. */
export function toServerRef(ref: string, client: Client): string {
  return isLine(client) && !isHostedElsewhere(ref) ? toLineTaskId(prefixes.own + ref) : ref;
}

/** A task of a client's server. Its ref is the one that it has at the replica of its process. */
export function fromServer(task: TaskState, client: Client): TaskState {
  if (!isLine(client) || isHostedElsewhere(task.ref)) return task;
  return { ...task, ref: fromLineTaskId(task.ref).slice(prefixes.own.length) };
}

/** Whether this is the ref of a task that another replica hosts. It is known only to replicas that have a line there. */
function isHostedElsewhere(ref: string): boolean {
  return ref.startsWith(`"${prefixes.hosted}`);
}
