import { randomBytes } from "node:crypto";
import { andThen, type Awaitable, recover } from "../../../async/awaitable.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import type { RawJson } from "../../../json/raw.ts";
import type { Batch } from "../../../jsonrpc/channel.ts";
import type { Notification, Request, Response } from "../../../jsonrpc/message.ts";
import { encodeMessage } from "../../../jsonrpc/message.ts";
import { toId } from "../../../jsonrpc/parse.ts";
import { isLegalBatch } from "../../../mcp/batch.ts";
import type { Handshake } from "../../../mcp/session.ts";
import { type Accepted, parseAccept } from "../media-type.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { HttpRequest, Reply } from "../server/reply.ts";
import { sendError, sendJson, toData } from "../server/send-json.ts";
import { sseHeaders } from "../sse.ts";
import { CallStream, sessionHeader } from "./call-stream.ts";
import { streamOf } from "./event-store.ts";
import { runLegacyCall } from "./legacy-call.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession, SessionTable } from "./session-table.ts";

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
    sendError(reply, error.code === "rpc.internal" ? 503 : 200, error, request.id);
  }
}

/** Serves one request of a session. */
export function serveLegacyRequest(
  request: Request,
  live: LiveSession,
  reply: Reply,
  accepted: Accepted,
  endpoint: Endpoint,
): Awaitable<void> {
  const out = new CallStream(live, reply, accepted, endpoint);
  return andThen(runLegacyCall(request, live, out, accepted.sse, endpoint), (response) =>
    response === undefined ? abandon(out, reply) : out.finish(response),
  );
}

/** A cancelled request gets no answer, but its POST must end. */
async function abandon(out: CallStream, reply: Reply): Promise<void> {
  if (!(await out.abandon())) reply.send(202, {});
}

/** Serves a batch: every request at once, one answer for all. */
export async function serveBatch(
  batch: Batch,
  live: LiveSession,
  reply: Reply,
  accepted: Accepted,
  endpoint: Endpoint,
): Promise<void> {
  if (!isLegalBatch(batch, live.session)) {
    const text = "Batches exist in protocol revision 2025-03-26 only, without initialize and modern requests";
    return sendError(reply, 400, new RpcError("rpc.invalid_request", text));
  }
  const invalid = batch.items.find((item) => item.kind === "invalid");
  if (invalid !== undefined) return sendError(reply, 400, invalid.error);
  const out = new CallStream(live, reply, accepted, endpoint);
  const answers = await Promise.all(
    batch.items.map(async (item): Promise<Response | undefined> => {
      switch (item.kind) {
        case "request":
          return runLegacyCall(item, live, out, accepted.sse, endpoint);
        case "notification":
          takeNotification(item, live);
          return undefined;
        case "result":
        case "error":
          live.asks.answered(item);
          return undefined;
        case "invalid":
          return undefined; // Refused above, with the whole batch.
      }
    }),
  );
  const responses = answers.filter((answer) => answer !== undefined);
  if (responses.length > 0) await out.finish(responses);
  else await abandon(out, reply);
}

/** The only notification that changes anything here is the one that cancels a request of the same session. */
export function takeNotification(notification: Notification, live: LiveSession | undefined): void {
  if (notification.method !== "notifications/cancelled") return;
  const text = notification.params?.at("requestId")?.text;
  const id = text === undefined ? undefined : toId(text);
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
  if (live.standalone !== undefined) endpoint.forget(live.standalone);
  const stream = new ResumableStream(
    randomBytes(9).toString("base64url"),
    endpoint.events,
    endpoint.clock.now(),
  );
  live.standalone = stream;
  await stream.open(
    endpoint.openSink(reply, headers, () => {
      live.usedAt = endpoint.clock.now(); // It has as long to come back as if it had just been here.
    }),
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
  await stream.resume(endpoint.openSink(reply, headers), lastEventId, endpoint.clock.now());
  if (stream === live.standalone) flushAnnouncements(live, endpoint);
}

/** Most news kept for a session that listens to none; beyond that the oldest is forgotten. */
const maxUnannounced = 1024;

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
  const [oldest] = live.unannounced.keys();
  if (live.unannounced.size > maxUnannounced && oldest !== undefined) live.unannounced.delete(oldest);
  flushAnnouncements(live, endpoint);
}

function flushAnnouncements(live: LiveSession, endpoint: Endpoint): void {
  const { standalone } = live;
  if (standalone?.isConnected !== true) return;
  const failed = (error: unknown): void => endpoint.onWarning("An announcement was lost", error);
  for (const data of live.unannounced.values())
    void recover(() => standalone.send(data, endpoint.clock.now()), failed);
  live.unannounced.clear();
}
