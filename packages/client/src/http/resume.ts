import { createBackoff, type Cancellation, fromSignal, sleep } from "@junctor/core/async";
import { ClosedError, RpcError, rpcCodes, SessionExpiredError } from "@junctor/core/errors";
import type { Incoming, RequestId, Response } from "@junctor/core/rpc";
import type { HttpEndpoint } from "./endpoint.ts";
import { httpErrorOf, isRefused, mediaTypeOf, type ReplySink } from "./exchange.ts";
import { type Pace, ReplyReader, type TakeMessage } from "./reply-reader.ts";
import type { WholeReply } from "./whole-reply.ts";

/** A server may make us wait, but not for good. */
const maxRetryMs: number = 5 * 60_000;

/** How often a broken legacy stream is resumed without a new event in between. */
const maxResumes = 5;

/**
 * Waits for the answer to a request that was posted, over as many responses as that takes where a legacy server numbers
 * its events. Rejects at once when it cannot come any more.
 */
export function awaitAnswer(
  posted: Promise<void>,
  endpoint: HttpEndpoint,
  reader: ReplyReader,
  { id, stop }: { readonly id: RequestId; readonly stop: Cancellation },
): Promise<Response> {
  return posted.then(
    () =>
      reader.isStream ? awaitStreamed(endpoint, undefined, reader, stop) : toAnswer(endpoint, reader, id),
    (error: unknown) => {
      if (!reader.isStream || !isBroken(error)) throw error;
      return awaitStreamed(endpoint, error, reader, stop);
    },
  );
}

/** Waits for an answer that comes on a stream, which may be `failed` already, and resumes it where that can be. */
async function awaitStreamed(
  endpoint: HttpEndpoint,
  failed: unknown,
  reader: ReplyReader,
  stop: Cancellation,
): Promise<Response> {
  let broken = failed;
  const backoff = createBackoff();
  for (let failures = broken === undefined ? 0 : 1; reader.answer === undefined;) {
    const { lastEventId, retryMs, events } = reader;
    // What cannot stand in a header cannot be asked for.
    const isResumable = /^[\x20-\xff]+$/.test(lastEventId ?? "") && endpoint.mode.kind === "legacy";
    if (!isResumable || failures > maxResumes || isRefused(broken)) throw lost(endpoint, broken);
    // A stream that broke is asked for again at once; a server that ended it wants us to wait.
    const waitMs = broken !== undefined && failures === 1 ? 0 : backoff.next();
    await sleep(Math.max(Math.min(retryMs ?? 0, maxRetryMs), waitMs), endpoint.clock, stop.signal);
    broken = await resume(endpoint, reader, lastEventId ?? "", stop);
    if (reader.events > events || reader.lastEventId !== lastEventId) {
      failures = 0;
      backoff.reset();
    }
    // Who says when to come back may send us away as often as they like; the deadline is the caller's.
    if (broken !== undefined || reader.retryMs === undefined) failures++;
  }
  return reader.answer;
}

/** Resolves with the error, if another attempt may succeed. */
async function resume(
  endpoint: HttpEndpoint,
  reader: ReplyReader,
  lastEventId: string,
  stop: Cancellation,
): Promise<unknown> {
  reader.rewind();
  try {
    await endpoint.send(reader, { method: "GET", stop, headers: ["last-event-id", lastEventId] });
  } catch (error) {
    if (isBroken(error)) return error;
    throw error;
  }
  if (reader.isStream) return undefined;
  const { status, body } = reader.whole;
  const refused = httpErrorOf(status, endpoint.url, body);
  if (status >= 500) return refused;
  throw lost(endpoint, refused);
}

/** A failure of the network, which another request may not meet. */
function isBroken(error: unknown): boolean {
  return error instanceof ClosedError;
}

/** The request was sent, and its outcome is unknown. */
function lost({ target }: HttpEndpoint, cause: unknown): ClosedError {
  return new ClosedError("outcome_unknown", `${target} ended the stream before the answer`, { cause });
}

/** The answer in a JSON body, or the error that says why there is none. */
function toAnswer(endpoint: HttpEndpoint, reader: ReplyReader, id: RequestId): Response {
  const { status } = reader.whole;
  const message = reader.whole.parse();
  const isForUs = message.kind === "result" || message.kind === "error" ? message.id === id : false;
  const isForgotten =
    (status === 404 && !(isForUs && isUnknownMethod(message))) ||
    (status === 400 && !isForUs && isNoSession(message));
  if (isForgotten && endpoint.session !== undefined) {
    endpoint.isSessionOver = true;
    throw new SessionExpiredError();
  }
  if (message.kind === "result" && isForUs && status < 300) return message;
  // Authorization is between the client and HTTP, whatever the body says.
  if (status === 401 || status === 403) throw httpErrorOf(status, endpoint.url, reader.whole.body);
  // An error without an id is about the only request there was.
  if (message.kind === "error" && (isForUs || message.id === undefined)) return message;
  if (status < 300 && message.kind === "invalid" && message.answer !== undefined)
    throw new RpcError("rpc.other", message.error.message, { cause: message.error });
  if (status < 300) throw notMcp(endpoint, reader.whole);
  throw httpErrorOf(status, endpoint.url, reader.whole.body);
}

/** A web page, or whatever else a URL that is no MCP endpoint answers with. */
function notMcp({ target, url }: HttpEndpoint, { status, headers, body }: WholeReply): RpcError {
  const isPage = mediaTypeOf(headers) === "text/html";
  const what = isPage ? "a web page" : "something that is no answer to the request";
  const text = `${target} answered ${status} with ${what}: is this the URL of an MCP endpoint?`;
  return new RpcError("rpc.other", text, { cause: httpErrorOf(status, url, body) });
}

/** How the official servers say that they do not know a session, where 404 would be the protocol's endpoint. */
function isNoSession(message: Incoming): boolean {
  return message.kind === "error" && message.error.code === -32_000;
}

function isUnknownMethod(message: Incoming): boolean {
  return message.kind === "error" && message.error.code === rpcCodes["rpc.method_not_found"];
}

interface ListenOptions {
  readonly take: TakeMessage;
  readonly maxBytes: number;
  readonly pace: Pace;
  /** The stream is open; `mayHaveMissed` says that something may have been missed since it last was. */
  readonly onOpen: (mayHaveMissed: boolean) => void;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** How long a stream must have lasted to count as working. */
const stableMs = 5000;

/**
 * Keeps a legacy server's stream of announcements open until the signal aborts or the server refuses it for good. A
 * stream that ends at once is asked for again later and later, and never sooner than the server wants.
 */
export async function listenForAnnouncements(endpoint: HttpEndpoint, options: ListenOptions): Promise<void> {
  const { take, maxBytes, pace, onOpen, onWarning } = options;
  const { signal } = pace;
  const backoff = createBackoff();
  const stop = fromSignal(signal);
  const { session } = endpoint;
  let wasOpen = false;
  let openedAt = 0;
  const reader = new ReplyReader({ maxBytes, pace, take });
  const sink: ReplySink = {
    head: (status, headers) => {
      const mayHaveMissed = wasOpen && reader.lastEventId === undefined;
      reader.rewind();
      reader.head(status, headers);
      if (!reader.isStream) return;
      openedAt = endpoint.clock.now();
      wasOpen = true;
      onOpen(mayHaveMissed);
    },
    chunk: (bytes) => reader.chunk(bytes),
  };
  while (!signal.aborted && endpoint.session === session) {
    try {
      const { lastEventId } = reader;
      const headers = lastEventId === undefined ? [] : ["last-event-id", lastEventId];
      await endpoint.send(sink, { method: "GET", stop, headers });
      if (!reader.isStream && reader.whole.status < 500) return; // Not offered (405), or the session is over.
    } catch (error) {
      if (signal.aborted) return;
      onWarning?.(`The stream of announcements broke: ${String(error)}`);
    }
    if (reader.isStream && endpoint.clock.now() - openedAt >= stableMs) backoff.reset();
    await sleep(
      Math.max(Math.min(reader.retryMs ?? 0, maxRetryMs), backoff.next()),
      endpoint.clock,
      signal,
    ).catch(() => {});
  }
}
