import type { Client } from "@junctor/client";
import { type Awaitable, waitFor } from "@junctor/core/async";
import type { UpstreamError } from "@junctor/core/errors";
import type { CallContext } from "@junctor/core/provider";
import { abandonedTask, toCallerError } from "../bridge/index.ts";
import type { Cluster } from "../cluster/index.ts";

/**
 * Makes a request by a client of the same server at another replica, the home of a parked call or a task. `gone` makes the error
 * for a replica that has ended; by default the one for a task.
 */
export type UseAt = <T>(
  at: string,
  context: CallContext,
  use: (client: Client) => Awaitable<T>,
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
