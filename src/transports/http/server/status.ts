import { NotFoundError } from "../../../errors/not-found-error.ts";
import type { RpcError } from "../../../errors/rpc-error.ts";

/**
 * The HTTP status of an error response. Errors about the request itself have one of their own; what a handler answers
 * is 200, also when it is an error (the protocol leaves that open, and every client reads the body).
 */
export function toStatus(error: RpcError, isModern: boolean): number {
  switch (error.code) {
    case "rpc.header_mismatch":
    case "rpc.unsupported_version":
    case "rpc.missing_capability":
      return 400;
    case "rpc.method_not_found":
      // A dialect answers an unknown *tool* with this code too; the method was served then.
      return isModern && !(error.cause instanceof NotFoundError) ? 404 : 200;
    default:
      return 200;
  }
}
