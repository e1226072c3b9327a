import { randomBytes } from "node:crypto";
import { RpcError } from "../../errors/rpc-error.ts";
import type { RawJson } from "../../json/raw.ts";
import type { Batch } from "../../jsonrpc/channel.ts";
import type { Notification, Request, RequestId, Response } from "../../jsonrpc/message.ts";
import { encodeMessage } from "../../jsonrpc/message.ts";
import { hasClaim } from "../../mcp/envelope.ts";
import type { Handshake } from "../../mcp/session.ts";
import type { Endpoint } from "./endpoint.ts";
import { streamOf } from "./event-store.ts";
import { sendError, sendJson, toData, toErrorResponse } from "./exchange.ts";
import { createCallStream, runLegacyCall, sessionHeader } from "./legacy-call.ts";
import { type Accepted, parseAccept } from "./media-type.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession, SessionTable } from "./session-table.ts";
import { sseHeaders } from "./sse.ts";

/** Serves `initialize`, which alone needs no session, and tells the client the id of the one it began. */
export async function serveInitialize(
  request: Request,
  reply: Reply,
  endpoint: Endpoint,
  sessions: SessionTable,
  caller: string | undefined,
): Promise<void> {
  let live: LiveSession | undefined;
  try {
    const result = await endpoint.server.handle(request, {
      era: { kind: "legacy", session: undefined },
      signal: new AbortController().signal,
      caller,
      notify: () => Promise.resolve(),
      beginSession: (handshake: Handshake) => {
        live = sessions.begin(handshake, caller);
      },
    });
    const headers = live === undefined ? {} : { [sessionHeader]: live.token };
    sendJson(reply, 200, encodeMessage({ kind: "result", id: request.id, result }), {
      "content-type": "application/json",
      ...headers,
    });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    sendError(reply, 200, error, request.id);
  }
}

/** Serves one request of a session. */
export async function serveLegacyRequest(
  request: Request,
  live: LiveSession,
  reply: Reply,
  accepted: Accepted,
  endpoint: Endpoint,
): Promise<void> {
  const out = createCallStream(live, reply, accepted, endpoint);
  const response = await runLegacyCall(request, live, out, accepted.sse, endpoint);
  if (response !== undefined) await out.finish(response);
  // A cancelled request gets no answer, but its POST must end.
  else if (!(await out.abandon())) reply.send(202, {});
}

/** Serves a batch: every request at once, one answer for all. */
export async function serveBatch(
  batch: Batch,
  live: LiveSession,
  reply: Reply,
  accepted: Accepted,
  endpoint: Endpoint,
): Promise<void> {
  if (live.session.handshake.revision !== "2025-03-26") {
    return sendError(
      reply,
      400,
      new RpcError("rpc.invalid_request", "Batches exist in protocol revision 2025-03-26 only"),
    );
  }
  const misfit = batch.items.find(
    (item) =>
      (item.kind === "request" || item.kind === "notification") &&
      (item.method === "initialize" || hasClaim(item.params)),
  );
  if (misfit !== undefined) {
    return sendError(
      reply,
      400,
      new RpcError("rpc.invalid_request", "A batch holds neither initialize nor modern requests"),
    );
  }
  const out = createCallStream(live, reply, accepted, endpoint);
  const answers = await Promise.all(
    batch.items.map(async (item): Promise<Response | undefined> => {
      switch (item.kind) {
        case "request":
          return runLegacyCall(item, live, out, accepted.sse, endpoint);
        case "notification":
          takeNotification(item, live);
          return undefined;
        case "invalid":
          return item.isAnswerable ? toErrorResponse(item.error, item.id) : undefined;
        case "result":
        case "error":
          live.asks.answered(item);
          return undefined;
      }
    }),
  );
  const responses = answers.filter((answer) => answer !== undefined);
  if (responses.length > 0) await out.finish(responses);
  else if (!(await out.abandon())) reply.send(202, {});
}

/** The only notification that changes anything here is the one that cancels a request of the same session. */
export function takeNotification(notification: Notification, live: LiveSession | undefined): void {
  if (notification.method !== "notifications/cancelled") return;
  const id = notification.params?.at("requestId")?.text as RequestId | undefined;
  if (id !== undefined)
    live?.running.get(id)?.abort(new DOMException("The caller cancelled the request", "AbortError"));
}

/** `GET`: the stream of announcements, or what a broken stream did not deliver. */
export async function serveGet(
  http: HttpRequest,
  reply: Reply,
  live: LiveSession,
  endpoint: Endpoint,
): Promise<void> {
  if (!parseAccept(http.header("accept")).sse) {
    return sendError(
      reply,
      406,
      new RpcError("rpc.invalid_request", "This answers with an event stream: accept text/event-stream"),
    );
  }
  const lastEventId = http.header("last-event-id");
  const headers = { ...sseHeaders, [sessionHeader]: live.token };
  if (lastEventId !== undefined) return resume(lastEventId, reply, live, endpoint, headers);
  if (live.standalone?.isConnected === true) {
    return sendError(
      reply,
      409,
      new RpcError("rpc.invalid_request", "This session has a stream open already"),
    );
  }
  const stream = new ResumableStream(
    randomBytes(9).toString("base64url"),
    endpoint.events,
    endpoint.clock.now(),
  );
  live.standalone = stream;
  await stream.open(
    endpoint.openSink(reply, headers),
    live.session.handshake.revision === "2025-11-25" ? endpoint.retryMs : undefined,
  );
  flushAnnouncements(live, endpoint);
}

async function resume(
  lastEventId: string,
  reply: Reply,
  live: LiveSession,
  endpoint: Endpoint,
  headers: { readonly [name: string]: string },
): Promise<void> {
  const id = streamOf(lastEventId);
  const stream = live.standalone?.id === id ? live.standalone : live.streams.get(id);
  const isKnown = stream !== undefined && (await endpoint.events.after(lastEventId)) !== undefined;
  if (!isKnown) {
    const text = `The event ${JSON.stringify(lastEventId)} is not known here, or what followed it is no longer kept`;
    return sendError(reply, 400, new RpcError("rpc.invalid_request", text));
  }
  await stream.resume(endpoint.openSink(reply, headers), lastEventId);
  if (stream === live.standalone) flushAnnouncements(live, endpoint);
}

/**
 * Tells a session of a change, on its standalone stream. Without one the news waits: merged by what it is about, so it
 * takes no more room than there are things to change.
 */
export function announce(
  live: LiveSession,
  endpoint: Endpoint,
  method: string,
  params: RawJson | undefined,
): void {
  const data = toData({ kind: "notification", method, params });
  live.unannounced.set(params === undefined ? method : data, data);
  flushAnnouncements(live, endpoint);
}

function flushAnnouncements(live: LiveSession, endpoint: Endpoint): void {
  if (live.standalone?.isConnected !== true) return;
  for (const data of live.unannounced.values()) void live.standalone.send(data, endpoint.clock.now());
  live.unannounced.clear();
}
