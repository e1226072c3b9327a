import { RpcError } from "../../errors/rpc-error.ts";
import { sessionHeader } from "./call-stream.ts";
import { sendError } from "./exchange.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import type { LiveSession, SessionTable } from "./session-table.ts";

/** The session a request names. Answers 400 without a name and 404 for one that is not there, or not the caller's. */
export function findSession(
  http: HttpRequest,
  reply: Reply,
  caller: string | undefined,
  sessions: SessionTable,
): LiveSession | undefined {
  const token = http.header(sessionHeader);
  const live = token === undefined ? undefined : sessions.find(token, caller);
  if (token === undefined) sendError(reply, 400, sessionMissing());
  else if (live === undefined) sendError(reply, 404, sessionNotFound());
  return live;
}

export function sessionMissing(): RpcError {
  return new RpcError("rpc.invalid_request", "The header Mcp-Session-Id is missing; send initialize first");
}

export function sessionNotFound(): RpcError {
  return new RpcError(
    "rpc.invalid_request",
    "Session not found or expired; send initialize again, without Mcp-Session-Id",
  );
}
