import { waitFor } from "../../../async/clock.ts";
import { LazyAbort } from "../../../async/lazy-abort.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import { RawJson } from "../../../json/raw.ts";
import {
  encodeMessage,
  type Notification,
  type Request,
  type RequestId,
  type Response,
  toErrorBody,
  toRequestId,
} from "../../../jsonrpc/message.ts";
import type { Link, LinkEvents, LinkRequest } from "../../../mcp/link.ts";
import { encodeHeaderValue, namedBy } from "../../../mcp/mirrored-headers.ts";
import { sessionHeader } from "../../../mcp/session.ts";
import { httpErrorOf, WholeReply } from "./exchange.ts";
import { createHttpWay, type HeaderPairs, type HttpLinkOptions } from "./http-way.ts";
import { ReplyReader, type TakeMessage } from "./reply-reader.ts";
import { awaitAnswer, listenForAnnouncements } from "./resume.ts";

/** How long the farewell to a legacy server may take. */
const farewellMs = 1000;

/** A link over Streamable HTTP, of either era. */
export function createHttpLink(url: URL, options: HttpLinkOptions): Link {
  const { maxResponseBytes: maxBytes = 64 * 1024 * 1024, onWarning } = options;
  const way = createHttpWay(url, options);
  const { target, clock } = way;
  const closing = new AbortController();
  /** What a legacy server asked and we have not answered. */
  const unanswered = new Map<RequestId, AbortController>();
  /** Answers, cancellations and the like that have not arrived yet. */
  const delivering = new Set<Promise<void>>();
  let nextId = 1;
  let closed: Promise<void> | undefined;

  /** Sends a message that has no answer. */
  const deliver = (body: RawJson, headers: HeaderPairs): Promise<void> => {
    const send = async (): Promise<void> => {
      const reply = new WholeReply(64 * 1024);
      await way.send(reply, { method: "POST", body, headers, isExpress: true });
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
  /** A modern request is cancelled by closing its stream, which aborting has done. A legacy one must be told. */
  const cancel = (id: RequestId, method: string): void => {
    if (way.mode.kind === "modern" || method === "initialize" || method === "server/discover") return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    notify("notifications/cancelled", params).catch(() => {}); // The server is gone, or forgot us: nothing to cancel.
  };

  const answer = async (request: Request, events: LinkEvents, asked: Set<AbortController>): Promise<void> => {
    const { id } = request;
    const asking = new AbortController();
    unanswered.set(id, asking);
    asked.add(asking);
    const response = await events.asked(request, asking.signal).then(
      (result): Response => ({ kind: "result", id, result }),
      (error: unknown): Response => ({ kind: "error", id, error: toErrorBody(toRpcError(error)) }),
    );
    unanswered.delete(id);
    asked.delete(asking);
    if (asking.signal.aborted) return;
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
          return;
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
    for (const asking of unanswered.values()) asking.abort();
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
      /** What the server asks on this request's stream is of no interest once that has ended. */
      let asked: Set<AbortController> | undefined;
      let takeOwn: TakeMessage | undefined;
      // Most requests are answered without another word.
      const take: TakeMessage = (message) => {
        takeOwn ??= takeFor(events?.() ?? {}, (asked = new Set()));
        takeOwn(message);
      };
      const onAbort = (): void => cancel(id, method);
      stop.onAbort(onAbort);
      try {
        const body = encodeMessage({ kind: "request", id, method, params });
        const reader = new ReplyReader(id, maxBytes, take);
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
      } finally {
        stop.offAbort(onAbort);
        for (const asking of asked ?? []) asking.abort(new DOMException("The request is over", "AbortError"));
      }
    },
    notify,
    listen: (onOpen) =>
      listenForAnnouncements(way, {
        take: takeFor({}),
        maxBytes,
        signal: closing.signal,
        onOpen,
        onWarning,
      }),
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

const noHeaders: HeaderPairs = [];

function toRpcError(error: unknown): RpcError {
  return error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
}
