import { setMaxListeners } from "node:events";
import { waitFor, LazyAbort, LeakyBucket } from "@junctor/core/async";
import { patienceMs } from "@junctor/core/channel";
import { RpcError, TimeoutError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Link,
  type LinkEvents,
  type LinkRequest,
  encodeHeaderValue,
  namedBy,
  sessionHeader,
} from "@junctor/core/mcp";
import {
  encodeMessage,
  type Notification,
  type Request,
  type RequestId,
  type Response,
  toErrorBody,
  toRequestId,
} from "@junctor/core/rpc";
import { httpErrorOf } from "./exchange.ts";
import { createHttpWay, type HeaderPairs, type HttpLinkOptions } from "./http-way.ts";
import { type Pace, ReplyReader, type TakeMessage } from "./reply-reader.ts";
import { awaitAnswer, listenForAnnouncements } from "./resume.ts";
import { WholeReply } from "./whole-reply.ts";

/** How long the farewell to a legacy server may take. */
const farewellMs = 1000;

/** How long a server may take to accept an answer or a notification. */
const deliveryMs = 30_000;

/** Answers that the server has not accepted; beyond that the stream that brings its next request is not read. */
const maxDelivering = 64;

/** Most requests of the server that are worked on at once; beyond that they are refused. */
const maxAsked = 1024;

/** A link over Streamable HTTP, of either era. */
export function createHttpLink(url: URL, options: HttpLinkOptions): Link {
  const { maxResponseBytes: maxBytes = 64 * 1024 * 1024, onWarning } = options;
  const way = createHttpWay(url, options);
  const { target, clock } = way;
  const closing = new AbortController();
  // Each stream that has to wait listens to it.
  setMaxListeners(0, closing.signal);
  const pace: Pace = { bucket: new LeakyBucket(clock, patienceMs), clock, signal: closing.signal };
  /** The requests of a legacy server that are not answered yet. */
  const unanswered = new Map<RequestId, AbortController>();
  /** Answers, cancellations and the like that have not arrived yet. */
  const delivering = new Set<Promise<void>>();
  /** Requests of the server that are worked on, also under one id. */
  let asking = 0;
  let nextId = 1;
  let closed: Promise<void> | undefined;

  /** Sends a message that has no answer. */
  const deliver = (body: RawJson, headers: HeaderPairs): Promise<void> => {
    const send = async (): Promise<void> => {
      const reply = new WholeReply(64 * 1024);
      const stop = new LazyAbort();
      const late = (): void => stop.abort(new TimeoutError("total", deliveryMs, "outcome_unknown"));
      const stopTimer = clock.timer(deliveryMs, late);
      await way.send(reply, { method: "POST", body, headers, stop, isExpress: true }).finally(stopTimer);
      if (reply.status >= 300) throw httpErrorOf(reply.status, url, reply.body);
    };
    const delivered: Promise<void> = send().finally(() => delivering.delete(delivered));
    delivering.add(delivered);
    return delivered;
  };
  const notify = (method: string, params: RawJson | undefined): Promise<void> => {
    const headers = way.mode.kind === "modern" ? ["mcp-method", method] : [];
    return deliver(encodeMessage({ kind: "notification", method, params }), headers);
  };
  /** A modern request is cancelled by closing its stream, which the abort has done. A legacy server needs a notification. */
  const cancel = (id: RequestId, method: string): void => {
    if (way.mode.kind === "modern" || method === "initialize" || method === "server/discover") return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    notify("notifications/cancelled", params).catch(() => {}); // The server is gone, or forgot us: nothing to cancel.
  };

  const answer = async (request: Request, events: LinkEvents, asked: Set<AbortController>): Promise<void> => {
    const { id } = request;
    if (asking >= maxAsked) {
      const text = `Too many requests in flight; at most ${maxAsked} at once`;
      const error = toErrorBody(new RpcError("rpc.internal", text));
      return deliver(encodeMessage({ kind: "error", id, error }), []).catch(() => {});
    }
    const withdrawal = new AbortController();
    asking++;
    unanswered.set(id, withdrawal);
    asked.add(withdrawal);
    const response = await events.asked(request, withdrawal.signal).then(
      (result): Response => ({ kind: "result", id, result }),
      (error: unknown): Response => ({ kind: "error", id, error: toErrorBody(toRpcError(error)) }),
    );
    asking--;
    unanswered.delete(id);
    asked.delete(withdrawal);
    if (withdrawal.signal.aborted) return;
    await deliver(encodeMessage(response), []).catch((error: unknown) => {
      if (!closing.signal.aborted) onWarning?.(`An answer could not be delivered: ${String(error)}`);
    });
  };
  /** A server that no longer wants an answer gets none. */
  const giveUp = ({ params }: Notification): void => {
    const id = params?.at("requestId")?.text as RequestId | undefined;
    if (id !== undefined)
      unanswered.get(id)?.abort(new DOMException("The server cancelled it", "AbortError"));
  };
  const untilDelivered = async (): Promise<void> => {
    while (delivering.size >= maxDelivering) await Promise.race(delivering).catch(() => {});
  };
  const takeFor = (given: Partial<LinkEvents>, asked: Set<AbortController> = new Set()): TakeMessage => {
    const events = { ...options.events, ...given };
    return (message) => {
      switch (message.kind) {
        case "notification":
          if (message.method === "notifications/cancelled") giveUp(message);
          return events.notified(message);
        case "request":
          // Modern servers may not ask; whatever they want, they get no answer.
          if (way.mode.kind === "legacy") void answer(message, events, asked);
          // A server that asks and takes no answers has to wait with the next question.
          return delivering.size < maxDelivering ? undefined : untilDelivered();
        case "invalid":
          return onWarning?.(`${target} sent something that is no message: ${message.error.message}`);
      }
    };
  };

  /** A modern request repeats its method and name in its headers, so that proxies need not read the body. */
  const mirror = ({ method, params, about, mirrored }: LinkRequest): HeaderPairs => {
    if (way.mode.kind !== "modern") return noHeaders;
    const pairs = ["mcp-method", method];
    const member = namedBy.get(method);
    const name = about ?? (member === undefined ? undefined : params?.at(member)?.value);
    if (typeof name === "string") pairs.push("mcp-name", encodeHeaderValue(name));
    for (const header in mirrored) pairs.push(header, mirrored[header] as string);
    return pairs;
  };

  const close = async (): Promise<void> => {
    // Messages on their way, such as cancellations, get the time to arrive.
    await waitFor(Promise.allSettled(delivering), { ms: farewellMs, clock });
    closing.abort();
    for (const withdrawal of unanswered.values()) withdrawal.abort();
    way.close();
    if (way.session !== undefined && !way.isSessionOver) {
      // A courtesy; many servers do not offer it, and a server that is gone needs none.
      const stop = new LazyAbort();
      const stopTimer = clock.timer(farewellMs, () => stop.abort(undefined));
      await way.send(new WholeReply(64 * 1024), { method: "DELETE", stop }).catch(() => {});
      stopTimer();
    }
    await way[Symbol.asyncDispose]();
  };

  return {
    target,
    // Never: every request stands alone, and the next one may succeed.
    closed: new Promise(() => {}),
    use: (mode) => {
      way.mode = mode;
    },
    request: async (request) => {
      const { method, params, events, onSent, stop } = request;
      if (stop.isAborted) throw stop.reason;
      const id = toRequestId(request.id ?? nextId++);
      /** Questions on this request's stream end with the request. */
      let asked: Set<AbortController> | undefined;
      let takeOwn: TakeMessage | undefined;
      // Most requests are answered without another word.
      const take: TakeMessage = (message) => {
        takeOwn ??= takeFor(events?.() ?? {}, (asked = new Set()));
        return takeOwn(message);
      };
      const onAbort = (): void => cancel(id, method);
      stop.onAbort(onAbort);
      try {
        const body = encodeMessage({ kind: "request", id, method, params });
        const reader = new ReplyReader({ id, maxBytes, pace, take });
        const posted = way.send(reader, { method: "POST", body, stop, onSent, headers: mirror(request) });
        const response = await awaitAnswer(posted, way, reader, { id, stop });
        const { status, headers } = reader.whole;
        if (response.kind === "result") {
          const session = headers[sessionHeader];
          if (method === "initialize") way.session = typeof session === "string" ? session : undefined;
          return response.result;
        }
        const { code, message, data } = response.error;
        const cause = status === 200 ? undefined : httpErrorOf(status, url, reader.whole.body);
        throw new RpcError("rpc.other", message, { rpcCode: code, data: data?.value, cause });
      } catch (error) {
        const isProbe = method === "initialize" || method === "server/discover";
        if (!isProbe && error instanceof RpcError && error.rpcCode === 0)
          onWarning?.(`The server sent an answer that cannot be read: ${error.message}`);
        throw error;
      } finally {
        stop.offAbort(onAbort);
        if (asked !== undefined) withdraw(asked);
      }
    },
    notify,
    listen: (onOpen) =>
      listenForAnnouncements(way, {
        take: takeFor({}),
        maxBytes,
        pace,
        onOpen,
        onWarning,
      }),
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

const noHeaders: HeaderPairs = [];

/** Ends questions whose request is over. */
function withdraw(asked: Iterable<AbortController>): void {
  const reason = new DOMException("The request is over", "AbortError");
  for (const withdrawal of asked) withdrawal.abort(reason);
}

function toRpcError(error: unknown): RpcError {
  return error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
}
