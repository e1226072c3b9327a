import { waitFor } from "../../async/clock.ts";
import type { Client } from "../../client/client.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { UpstreamError } from "../../errors/upstream-error.ts";
import type { CallContext } from "../../tools/context.ts";
import { abandonedTask } from "../bridge/abandoned.ts";
import { toCallerError } from "../bridge/caller-error.ts";

/**
 * Makes a request by a client of the same server at another replica, the home of a parked call or a task. `gone` makes the error
 * for a replica that has ended; by default the one for a task.
 */
export type UseAt = <T>(
  at: string,
  context: CallContext,
  use: (client: Client) => Promise<T>,
  gone?: (server: string) => UpstreamError,
) => Promise<T>;

/** The other replicas of the gateway. */
export interface OtherReplicas {
  /** The id of this replica. */
  readonly here: string;
  readonly clientAt: Cluster["clientAt"];
}

export function createUseAt(
  server: string,
  others: OtherReplicas | undefined,
  toFailure: (error: unknown) => unknown,
): UseAt {
  return async (at, context, use, gone = abandonedTask) => {
    try {
      const client = others && (await waitFor(others.clientAt(at, server), context));
      if (client === undefined) throw gone(server);
      return await use(client);
    } catch (error) {
      throw toFailure(toCallerError(error, context, server));
    }
  };
}
