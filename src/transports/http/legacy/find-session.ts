import { RpcError } from "../../../errors/rpc-error.ts";
import { isLegacyRevision } from "../../../mcp/revision.ts";
import type { HttpRequest, Reply } from "../server/reply.ts";
import { sendError } from "../server/send-json.ts";
import { sessionHeader } from "./call-stream.ts";
import type { LiveSession, SessionTable } from "./session-table.ts";

/**
 * The session a request names. Answers 400 without a name, and for a revision no session speaks; 404 for a session that
 * is not there, or not the caller's; 503 when there is no room for it.
 */
export function findSession(
  http: HttpRequest,
  reply: Reply,
  caller: string | undefined,
  sessions: SessionTable,
): LiveSession | undefined {
  const token = http.header(sessionHeader);
  const revision = http.header("mcp-protocol-version")?.trim();
  if (revision !== undefined && !isLegacyRevision(revision)) {
    const text = `The header MCP-Protocol-Version names ${JSON.stringify(revision)}, which no session speaks`;
    return refuse(reply, 400, new RpcError("rpc.invalid_request", text));
  }
  if (token === undefined) return refuse(reply, 400, sessionMissing());
  const live = sessions.find(token, caller);
  if (live === "unknown") return refuse(reply, 404, sessionNotFound());
  return live === "full" ? refuse(reply, 503, sessionsFull()) : live;
}

function refuse(reply: Reply, status: number, error: RpcError): undefined {
  sendError(reply, status, error);
  return undefined;
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

export function sessionsFull(): RpcError {
  return new RpcError("rpc.internal", "Too many sessions are busy; try again later");
}
