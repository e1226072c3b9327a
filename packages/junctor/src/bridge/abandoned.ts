import { UpstreamError } from "@junctor/core/errors";

/**
 * The answer to a caller that comes back to a parked call that is no longer there. The server had begun to work on it, and
 * how far it came is unknown.
 */
export function abandonedCall(server: string, why: string): UpstreamError {
  const text =
    `The call that waited for these answers is gone: ${why}. ${server} had begun to work on it, and whether it carried it ` +
    "out is unknown. The call was not made again: make the request anew, without requestState, if it may be carried out twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** The answer to a caller that asks for a task of a replica that is gone. */
export function abandonedTask(server: string): UpstreamError {
  const text =
    `The replica of the gateway that had this task has ended. ${server} had begun to work on it, and it is unknown whether it ` +
    "finished. Call the tool again if it is safe to run it twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** Why a call is not in the table, as far as that can be known. */
export const notParked =
  "its caller came back too late, or the gateway or the server was restarted meanwhile";
