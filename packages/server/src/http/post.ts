import type { Awaitable } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { decideEra, sessionHeader, messageShape } from "@junctor/core/mcp";
import { type Batch, type Notification, type Request, type Response, parseMessage } from "@junctor/core/rpc";
import { type Endpoint, refuseGreedy, refuseNew, type Responses } from "./endpoint.ts";
import { type Admission, ownerOf } from "./guard.ts";
import { CallStream } from "./legacy-call.ts";
import {
  findSession,
  serveBatch,
  serveInitialize,
  serveLegacyNotification,
  serveLegacyRequest,
  sessionMissing,
  sessionNotFound,
} from "./legacy.ts";
import { ModernCall } from "./modern.ts";
import {
  type Accepted,
  type HttpRequest,
  isJson,
  parseAccept,
  refuse,
  refuseKey,
  sendError,
  type WantedBody,
} from "./reply.ts";

/** Serves the body of a request that was let in. */
type ServeBody = (body: Uint8Array, admission: Admission, endpoint: Endpoint) => Awaitable<void>;

const smallBytes = 16 * 1024;

/** Asks for the body of a request, which must be JSON. Undefined when the request was refused: for its type, or because memory is short. */
export function wantJson(admission: Admission, endpoint: Endpoint, serve: ServeBody): WantedBody | undefined {
  const { http, reply } = admission;
  if (!isJson(http.header("content-type"))) {
    refuse(reply, 415, "The body must be application/json");
    return undefined;
  }
  const { maxBodyBytes } = endpoint;
  // A large body is not even read while memory is short; a small one may cancel something.
  const isSmall = endpoint.shortage === 0 || Number(http.header("content-length") ?? Infinity) <= smallBytes;
  if (!isSmall && refuseNew(admission, endpoint)) return undefined;
  return {
    maxBytes: maxBodyBytes,
    take: (body) => {
      if (body === "aborted") return;
      if (body !== "too_large") return serve(body, admission, endpoint);
      refuse(reply, 413, `The body is larger than ${maxBodyBytes} bytes`);
    },
  };
}

/** Serves a POST: finds out what its body is and which era it is of. */
export function servePost(body: Uint8Array, admission: Admission, endpoint: Endpoint): Awaitable<void> {
  const { http, reply } = admission;
  // The key of a caller that sends slowly may have been revoked meanwhile.
  if (!endpoint.admissions.revocations.holds(admission.caller, admission.since))
    return refuseKey(reply, true);
  const accepted = accept(http, endpoint.responses);
  if (!accepted.json && !accepted.sse)
    return refuse(reply, 406, "Accept application/json and text/event-stream");
  const incoming = parseMessage(body, { shape: messageShape });
  switch (incoming.kind) {
    case "invalid":
      return sendError(reply, 400, withCode(incoming.error, endpoint), incoming);
    case "request":
    case "notification":
      return serveSingle(incoming, accepted, admission, endpoint);
    case "batch":
    case "result":
    case "error":
      return serveOther(incoming, accepted, admission, endpoint);
  }
}

function serveSingle(
  message: Request | Notification,
  accepted: Accepted,
  admission: Admission,
  endpoint: Endpoint,
): Awaitable<void> {
  const { http, reply, caller } = admission;
  const { serves } = endpoint.server;
  const token = serves === "modern" ? undefined : http.header(sessionHeader);
  const { sessions, mount } = endpoint;
  const found = token === undefined ? "unknown" : sessions.find(token, caller, ownerOf(admission), mount);
  const live = typeof found === "string" || !("session" in found) ? undefined : found;
  if (live !== undefined) live.session.identity = admission.identity;
  const era = decideEra(message, { session: live?.session, headers: http.header, serves });
  const id = message.kind === "request" ? message.id : undefined;
  if (typeof found !== "string" && live === undefined && era.kind !== "modern")
    return refuseGreedy(admission, found as RpcError, endpoint, id);
  if (era.kind === "refused") {
    // An unknown session explains more than a missing handshake; any other fault explains more than both.
    const isLost = token !== undefined && era.error.code === "rpc.not_initialized";
    return isLost
      ? sendError(reply, 404, sessionNotFound(), { id })
      : sendError(reply, 400, era.error, { id });
  }
  if (era.kind === "legacy" && token !== undefined && live === undefined)
    return sendError(reply, 404, sessionNotFound(), { id });
  if (message.kind === "notification") {
    if (era.kind === "legacy") {
      if (live === undefined && serves !== "modern") return sendError(reply, 400, sessionMissing());
      serveLegacyNotification(message, live);
    }
    return reply.send(202, {});
  }
  if ((endpoint.isDraining || endpoint.shortage > 0) && refuseNew(admission, endpoint, message.id)) return;
  if (era.kind === "modern") return new ModernCall(era, accepted, admission, endpoint).serve(message);
  if (live === undefined) return serveInitialize(message, admission, endpoint);
  if (message.method === "initialize")
    return refuse(reply, 400, "This session is initialized already", message);
  return serveLegacyRequest(message, new CallStream(live, accepted, admission, endpoint));
}

/** Serves what only legacy sessions send: batches, and answers to our questions. */
async function serveOther(
  incoming: Batch | Response,
  accepted: Accepted,
  admission: Admission,
  endpoint: Endpoint,
): Promise<void> {
  const { reply } = admission;
  if (endpoint.server.serves === "modern") return refuse(reply, 400, "Send one request, or one notification");
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  if (incoming.kind === "batch") {
    const isNew = incoming.items.some((item) => item.kind === "request");
    if (isNew && refuseNew(admission, endpoint)) return;
    return serveBatch(incoming, reply, new CallStream(live, accepted, admission, endpoint));
  }
  live.asks.answered(incoming);
  reply.send(202, {});
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
