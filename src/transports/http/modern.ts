import { RpcError } from "../../errors/rpc-error.ts";
import { encodeMessage, type Message, type Request } from "../../jsonrpc/message.ts";
import type { ModernEra } from "../../mcp/era.ts";
import type { Endpoint } from "./endpoint.ts";
import { sendError, sendJson, toData, toErrorResponse } from "./exchange.ts";
import type { Accepted } from "./media-type.ts";
import type { FrameSink, HttpRequest, Reply } from "./reply.ts";
import { sseHeaders, toFrame } from "./sse.ts";
import { toStatus } from "./status.ts";

/**
 * Serves one modern request: one call, one reply. The reply is JSON unless the call says something before its result.
 * A client that hangs up has cancelled.
 */
export async function serveModern(
  request: Request,
  era: ModernEra,
  http: HttpRequest,
  reply: Reply,
  endpoint: Endpoint,
  accepted: Accepted,
  caller: string | undefined,
): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  reply.onHangUp(() => controller.abort(new DOMException("The client hung up", "AbortError")));
  let sink: FrameSink | undefined;
  let isOver = false;
  const write = async (message: Message): Promise<void> => {
    if (signal.aborted || isOver) return;
    sink ??= endpoint.openSink(reply, sseHeaders);
    await sink.write(toFrame(toData(message)));
  };
  if (request.method === "subscriptions/listen" && !accepted.sse) {
    const error = new RpcError(
      "rpc.invalid_request",
      "subscriptions/listen answers with an event stream: accept text/event-stream",
    );
    return sendError(reply, 406, error, request.id);
  }
  try {
    const result = await endpoint.server.handle(request, {
      era,
      signal,
      caller,
      headers: http.header,
      notify: async (method, params) => {
        if (accepted.sse) await write({ kind: "notification", method, params });
      },
    });
    const response = { kind: "result", id: request.id, result } as const;
    if (sink === undefined && accepted.json) return sendJson(reply, 200, encodeMessage(response));
    await write(response);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (sink === undefined) return sendError(reply, toStatus(error, true), error, request.id);
    await write(toErrorResponse(error, request.id));
  } finally {
    isOver = true;
    sink?.end();
  }
}
