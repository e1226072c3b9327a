import type { Awaitable } from "../../../async/awaitable.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import type { Batch } from "../../../jsonrpc/channel.ts";
import type { Notification, Request, Response } from "../../../jsonrpc/message.ts";
import { parseMessage } from "../../../jsonrpc/parse.ts";
import { decideEra } from "../../../mcp/era.ts";
import { messageShape } from "../../../mcp/shape.ts";
import { sessionHeader } from "../legacy/call-stream.ts";
import { findSession, sessionMissing, sessionNotFound, sessionsFull } from "../legacy/find-session.ts";
import { serveBatch, serveInitialize, serveLegacyRequest, takeNotification } from "../legacy/legacy.ts";
import type { SessionTable } from "../legacy/session-table.ts";
import { type Accepted, isJson, parseAccept } from "../media-type.ts";
import type { Endpoint } from "./endpoint.ts";
import { serveModern } from "./modern.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { refuseKey, sendError } from "./send-json.ts";

/** Whether the answers are JSON or event streams: by what the call does, or always one of them. */
export type Responses = "auto" | "json" | "sse";

/** One POST to the endpoint. */
export interface Post {
  readonly http: HttpRequest;
  readonly reply: Reply;
  readonly caller: string | undefined;
  /** The moment the caller was let in. */
  readonly since: number;
  readonly endpoint: Endpoint;
  readonly sessions: SessionTable;
  readonly responses: Responses;
}

/** Serves a POST: reads it, and finds out what it is and which era it is of. */
export function servePost(post: Post): Awaitable<void> {
  const { http, reply, endpoint } = post;
  return readJsonBody(http, reply, endpoint.maxBodyBytes, (body) => serveBody(body, post));
}

function serveBody(body: Uint8Array, post: Post): Awaitable<void> {
  const { http, reply, endpoint } = post;
  // Whoever takes its time to send may lose its key meanwhile.
  if (!endpoint.admissions.holds(post.caller, post.since)) return refuseKey(reply);
  const accepted = accept(http, post.responses);
  if (!accepted.json && !accepted.sse) {
    const error = new RpcError("rpc.invalid_request", "Accept application/json and text/event-stream");
    return sendError(reply, 406, error);
  }
  const incoming = parseMessage(body, { shape: messageShape });
  switch (incoming.kind) {
    case "invalid":
      return sendError(reply, 400, withCode(incoming.error, endpoint), incoming.id);
    case "request":
    case "notification":
      return serveSingle(incoming, accepted, post);
    case "batch":
    case "result":
    case "error":
      return serveOther(incoming, accepted, post);
  }
}

function serveSingle(message: Request | Notification, accepted: Accepted, post: Post): Awaitable<void> {
  const { http, reply, caller, endpoint, sessions } = post;
  const { serves } = endpoint.server;
  const token = serves === "modern" ? undefined : http.header(sessionHeader);
  const found = token === undefined ? "unknown" : sessions.find(token, caller);
  const live = typeof found === "string" ? undefined : found;
  const era = decideEra(message, { session: live?.session, headers: http.header, serves });
  const id = message.kind === "request" ? message.id : undefined;
  if (found === "full" && era.kind !== "modern")
    return sendError(reply, 503, sessionsFull(), id, { "retry-after": "1" });
  if (era.kind === "refused") {
    // A session that is not there says more than that there is none; whatever else is wrong says more than both.
    const isLost = token !== undefined && era.error.code === "rpc.not_initialized";
    return isLost ? sendError(reply, 404, sessionNotFound(), id) : sendError(reply, 400, era.error, id);
  }
  if (era.kind === "legacy" && token !== undefined && live === undefined)
    return sendError(reply, 404, sessionNotFound(), id);
  if (message.kind === "notification") {
    if (era.kind === "legacy") {
      if (live === undefined && serves !== "modern") return sendError(reply, 400, sessionMissing());
      takeNotification(message, live);
    }
    return reply.send(202, {});
  }
  if (endpoint.isDraining) return sendError(reply, 503, stoppingError(), id, { "retry-after": "1" });
  if (era.kind === "modern") return serveModern(message, era, http, reply, endpoint, accepted, caller);
  if (live === undefined) return serveInitialize(message, reply, endpoint, sessions, caller);
  if (message.method !== "initialize") return serveLegacyRequest(message, live, reply, accepted, endpoint);
  return sendError(
    reply,
    400,
    new RpcError("rpc.invalid_request", "This session is initialized already"),
    id,
  );
}

/** What only legacy sessions send: batches, and answers to what we asked. */
async function serveOther(incoming: Batch | Response, accepted: Accepted, post: Post): Promise<void> {
  const { http, reply, caller, endpoint, sessions } = post;
  if (endpoint.server.serves === "modern") {
    const error = new RpcError("rpc.invalid_request", "Send one request, or one notification");
    return sendError(reply, 400, error);
  }
  const live = findSession(http, reply, caller, sessions);
  if (live === undefined) return;
  if (incoming.kind === "batch") {
    const isNew = incoming.items.some((item) => item.kind === "request");
    if (isNew && endpoint.isDraining)
      return sendError(reply, 503, stoppingError(), undefined, { "retry-after": "1" });
    return serveBatch(incoming, live, reply, accepted, endpoint);
  }
  live.asks.answered(incoming);
  reply.send(202, {});
}

/** Hands over the body of a request that must be JSON; one that is refused, or never came whole, is not. */
export function readJsonBody(
  http: HttpRequest,
  reply: Reply,
  maxBytes: number,
  take: (body: Uint8Array) => Awaitable<void>,
): Awaitable<void> {
  if (!isJson(http.header("content-type"))) {
    return sendError(reply, 415, new RpcError("rpc.invalid_request", "The body must be application/json"));
  }
  return http.readBody(maxBytes, (body) => {
    if (body === "aborted") return;
    if (body !== "too_large") return take(body);
    sendError(reply, 413, new RpcError("rpc.invalid_request", `The body is larger than ${maxBytes} bytes`));
  });
}

/** The answer to what comes after we began to leave. */
export function stoppingError(): RpcError {
  return new RpcError("rpc.internal", "The server is stopping; try again later, or elsewhere");
}

function accept(http: HttpRequest, responses: Responses): Accepted {
  if (responses === "auto") return parseAccept(http.header("accept"));
  return { json: responses === "json", sse: responses === "sse" };
}

function withCode(error: RpcError, { server }: Endpoint): RpcError {
  return error.code === "rpc.parse"
    ? new RpcError("rpc.parse", error.message, { rpcCode: server.parseErrorCode })
    : error;
}
