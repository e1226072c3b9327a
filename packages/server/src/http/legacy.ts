import { randomBytes } from "node:crypto";
import { andThen, type Awaitable, recover, type Clock, sleep, LazyAbort } from "@junctor/core/async";
import { RpcError, toStatus } from "@junctor/core/errors";
import { isLegalBatch, isLegacyRevision, type Handshake, sessionHeader } from "@junctor/core/mcp";
import {
  type Batch,
  type Notification,
  type Request,
  type Response,
  encodeMessage,
  toId,
} from "@junctor/core/rpc";
import { atExpiry, type Endpoint, refuseGreedy } from "./endpoint.ts";
import { streamOf } from "./event-store.ts";
import { type Admission, type Admitted, ownerOf } from "./guard.ts";
import { type CallStream, runLegacyCall } from "./legacy-call.ts";
import {
  type FrameSink,
  type HttpHeaders,
  type Reply,
  parseAccept,
  refuse,
  sendError,
  sendJson,
  sseHeaders,
  toData,
} from "./reply.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession } from "./session-table.ts";

/** Serves `initialize`, which alone needs no session, and tells the client the id of the one it began. */
export async function serveInitialize(
  request: Request,
  admission: Admission,
  endpoint: Endpoint,
): Promise<void> {
  const { server, sessions, mount } = endpoint;
  const { reply, caller, identity } = admission;
  let live: LiveSession | undefined;
  try {
    const result = await server.handle(request, {
      era: { kind: "legacy", session: undefined },
      cancellation: new LazyAbort(),
      caller,
      identity,
      notify: () => Promise.resolve(),
      beginSession: (handshake: Handshake) => {
        live = sessions.begin(handshake, caller, ownerOf(admission), mount);
        live.session.identity = identity;
      },
    });
    const headers = live === undefined ? {} : { [sessionHeader]: live.token };
    sendJson(reply, 200, encodeMessage({ kind: "result", id: request.id, result }), {
      "content-type": "application/json",
      ...headers,
    });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (toStatus(error) >= 429) refuseGreedy(admission, error, endpoint, request.id);
    else sendError(reply, error.code === "rpc.internal" ? 503 : 200, error, request);
  }
}

/** Serves one request of a session. */
export function serveLegacyRequest(request: Request, out: CallStream): Awaitable<void> {
  return andThen(runLegacyCall(request, out), (response) =>
    response === undefined ? out.abandon() : out.finish(response),
  );
}

/** Serves a batch: every request at once, one answer for all. */
export async function serveBatch(batch: Batch, reply: Reply, out: CallStream): Promise<void> {
  const { live } = out;
  if (!isLegalBatch(batch, live.session)) {
    const text = "Batches exist in protocol revision 2025-03-26 only, without initialize and modern requests";
    return refuse(reply, 400, text);
  }
  const invalid = batch.items.find((item) => item.kind === "invalid");
  if (invalid !== undefined) return sendError(reply, 400, invalid.error);
  const answers = await Promise.all(
    batch.items.map(async (item): Promise<Response | undefined> => {
      switch (item.kind) {
        case "request":
          return runLegacyCall(item, out);
        case "notification":
          serveLegacyNotification(item, live);
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
  else await out.abandon();
}

/** The only notification that changes anything here is the one that cancels a request of the same session. */
export function serveLegacyNotification(notification: Notification, live: LiveSession | undefined): void {
  if (notification.method !== "notifications/cancelled") return;
  const text = notification.params?.at("requestId")?.text;
  const id = text === undefined ? undefined : toId(text);
  if (id !== undefined)
    live?.running.get(id)?.abort(new DOMException("The caller cancelled the request", "AbortError"));
}

/** `GET`: the stream of announcements, or what a broken stream did not deliver. */
export async function serveGet(admission: Admission, endpoint: Endpoint): Promise<void> {
  const { http, reply } = admission;
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  if (!parseAccept(http.header("accept")).sse)
    return refuse(reply, 406, "This answers with an event stream: accept text/event-stream");
  const lastEventId = http.header("last-event-id");
  if (lastEventId !== undefined) return resume(lastEventId, admission, live, endpoint);
  if (admission.piped !== undefined) await untilLeft(live, endpoint.clock);
  if (live.standalone?.isConnected === true)
    return refuse(reply, 409, "This session has a stream open already");
  const standing = new StandingStream(live);
  const refusal = endpoint.admissions.refusal(standing);
  if (refusal !== undefined) return refuseGreedy(admission, refusal, endpoint);
  if (live.standalone !== undefined) endpoint.forget(live.standalone);
  const stream = new ResumableStream(
    randomBytes(9).toString("base64url"),
    endpoint.events,
    endpoint.clock.now(),
    live.owner,
  );
  live.standalone = stream;
  await stream.open(
    standing.open(reply, live, endpoint),
    live.session.handshake.revision === "2025-11-25" ? endpoint.retryMs : undefined,
  );
  flushAnnouncements(live, endpoint);
}

/** How long the end of a stream may take to come through from another process, and how often it is looked for. */
const leavingMs = 1000;
const lookMs = 20;

/**
 * Waits for the end of a stream that its client has left. A client may come back by another process before the one that had its
 * stream has noticed that it left.
 */
async function untilLeft(live: LiveSession, clock: Clock): Promise<void> {
  const until = clock.now() + leavingMs;
  while (live.standalone?.isConnected === true && clock.now() < until) await sleep(lookMs, clock);
}

/** `DELETE`: ends a session for good. */
export function serveDelete(admission: Admission, endpoint: Endpoint): void {
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  endpoint.sessions.delete(live);
  admission.reply.send(200, {});
}

function streamHeaders(live: LiveSession): HttpHeaders {
  return { ...sseHeaders, [sessionHeader]: live.token };
}

/** A stream that stays open, which counts among those of its caller until it is closed. */
class StandingStream implements Admitted {
  readonly caller: string | undefined;
  readonly owner: string | undefined;
  readonly isStream = true;
  #sink: FrameSink | undefined;

  constructor({ caller, owner }: LiveSession) {
    this.caller = caller;
    this.owner = owner;
  }

  open(reply: Reply, live: LiveSession, endpoint: Endpoint): FrameSink {
    const number = endpoint.admissions.add(this);
    // The session stays, and the client may come back with another token.
    const stop = atExpiry(live.session.identity, endpoint.clock, () => this.#sink?.end());
    this.#sink = endpoint.openSink(reply, streamHeaders(live), () => {
      stop();
      endpoint.admissions.delete(number);
      live.usedAt = endpoint.clock.now(); // It has as long to come back as if it had just been here.
    });
    return this.#sink;
  }

  cut(reason: string): void {
    this.#sink?.cut(reason);
  }
}

async function resume(
  lastEventId: string,
  admission: Admission,
  live: LiveSession,
  endpoint: Endpoint,
): Promise<void> {
  const { reply } = admission;
  const id = streamOf(lastEventId);
  const stream = live.standalone?.id === id ? live.standalone : live.streams.get(id);
  const isKnown = stream !== undefined && (await endpoint.events.after(lastEventId)) !== undefined;
  if (!isKnown) {
    const text = `The event ${JSON.stringify(lastEventId)} is not known here, or what followed it is no longer kept`;
    return refuse(reply, 400, text);
  }
  if (admission.piped?.isMending === true && (stream.isConnected || endpoint.shortage > 0))
    return refuse(
      reply,
      409,
      "This stream continues over another connection, or was cut because memory is short",
    );
  const standing = new StandingStream(live);
  // A client that replaces its own open stream holds no more streams than before.
  const refusal = stream.isConnected ? undefined : endpoint.admissions.refusal(standing);
  if (refusal !== undefined) return refuseGreedy(admission, refusal, endpoint);
  const sink = standing.open(reply, live, endpoint);
  await stream.resume(sink, lastEventId, endpoint.clock.now());
  if (stream === live.standalone) flushAnnouncements(live, endpoint);
}

/** Most announcements kept for a session that has no stream for them; beyond that the oldest is forgotten. */
const maxUnannounced = 1024;

/**
 * Announces a change to a session, on its standalone stream. Without one the announcement waits. Announcements of the same change
 * are merged, so there are no more of them than things that can change.
 */
export function announce(news: Notification, live: LiveSession, endpoint: Endpoint): void {
  const data = toData(news);
  live.unannounced.set(news.params === undefined ? news.method : data, data);
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

/**
 * The session a request names. Answers 400 without a name, and for a revision no session speaks; 404 for a session that
 * is not there, or not the caller's; 503 when there is no room for it.
 */
export function findSession(admission: Admission, endpoint: Endpoint): LiveSession | undefined {
  const { http, reply, caller } = admission;
  const token = http.header(sessionHeader);
  const revision = http.header("mcp-protocol-version")?.trim();
  if (revision !== undefined && !isLegacyRevision(revision)) {
    const text = `The header MCP-Protocol-Version names ${JSON.stringify(revision)}, which no session speaks`;
    return refused(reply, 400, new RpcError("rpc.invalid_request", text));
  }
  if (token === undefined) return refused(reply, 400, sessionMissing());
  const live = endpoint.sessions.find(token, caller, ownerOf(admission), endpoint.mount);
  if (live === "unknown") return refused(reply, 404, sessionNotFound());
  if (!("session" in live)) return refused(reply, toStatus(live), live);
  live.session.identity = admission.identity;
  return live;
}

function refused(reply: Reply, status: number, error: RpcError): undefined {
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
