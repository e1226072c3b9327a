import { randomBytes } from "node:crypto";
import { RpcError } from "../../errors/rpc-error.ts";
import { ToolError } from "../../errors/tool-error.ts";
import { encodeMessage, type Message, type Request, type Response } from "../../jsonrpc/message.ts";
import { isAtLeast } from "../../mcp/revision.ts";
import type { WireContext } from "../../mcp/server.ts";
import type { Endpoint } from "./endpoint.ts";
import { sendJson, toData, toErrorResponse } from "./exchange.ts";
import type { Accepted } from "./media-type.ts";
import type { Reply } from "./reply.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession } from "./session-table.ts";
import { sseHeaders } from "./sse.ts";

/** The header that names a legacy session. */
export const sessionHeader = "mcp-session-id";

/**
 * Where the messages of one legacy POST go: nowhere until there is something to say, then onto a stream that outlives
 * the connection. Several requests of a batch share one.
 */
export interface CallStream {
  send(message: Message): Promise<void>;
  /** Lets the connection go; see `WireContext.release`. */
  release(): Promise<void>;
  /** Answers: on the stream if there is one, else as JSON. */
  finish(responses: Response | readonly Response[]): Promise<void>;
  /** Ends the stream without an answer; false when there is none. */
  abandon(): Promise<boolean>;
}

export function createCallStream(
  live: LiveSession,
  reply: Reply,
  accepted: Accepted,
  endpoint: Endpoint,
): CallStream {
  const headers = { [sessionHeader]: live.token };
  let stream: ResumableStream | undefined;
  const open = async (): Promise<ResumableStream> => {
    if (stream !== undefined) return stream;
    stream = new ResumableStream(randomBytes(9).toString("base64url"), endpoint.events, endpoint.clock.now());
    live.streams.set(stream.id, stream);
    const canLeave = isAtLeast(live.session.handshake.revision, "2025-11-25");
    const sink = endpoint.openSink(reply, { ...sseHeaders, ...headers });
    await stream.open(sink, canLeave ? endpoint.retryMs : undefined);
    return stream;
  };
  return {
    send: async (message) => {
      if (accepted.sse) await (await open()).send(toData(message), endpoint.clock.now());
    },
    release: async () => {
      if (accepted.sse) await (await open()).release();
    },
    finish: async (responses) => {
      if (stream === undefined && accepted.json) {
        return sendJson(reply, 200, encodeMessage(responses), {
          "content-type": "application/json",
          ...headers,
        });
      }
      const out = await open();
      for (const response of Array.isArray(responses) ? (responses as Response[]) : [responses as Response]) {
        await out.send(toData(response), endpoint.clock.now());
      }
      await out.end();
    },
    abandon: async () => {
      await stream?.end();
      return stream !== undefined;
    },
  };
}

/**
 * Runs one request of a legacy session. Undefined when it was cancelled: nothing is sent for it any more. A client that
 * hangs up has not cancelled.
 */
export async function runLegacyCall(
  request: Request,
  live: LiveSession,
  out: CallStream,
  canAsk: boolean,
  endpoint: Endpoint,
): Promise<Response | undefined> {
  const { id } = request;
  if (live.running.has(id)) {
    const error = new RpcError(
      "rpc.invalid_request",
      `The id ${id} is already in use by a request in flight`,
    );
    return toErrorResponse(error, id);
  }
  const controller = new AbortController();
  const { signal } = controller;
  live.running.set(id, controller);
  let isOver = false;
  const send = async (message: Message): Promise<void> => {
    if (!isOver && !signal.aborted) await out.send(message);
  };
  const wire: WireContext = {
    era: { kind: "legacy", session: live.session },
    signal,
    caller: live.caller,
    notify: (method, params) => send({ kind: "notification", method, params }),
    ask: (method, params, askSignal) => {
      if (!canAsk)
        throw new ToolError(`This needs ${method}, and the client accepts no event stream to be asked on.`);
      return live.asks.request(method, params, {
        signal: askSignal,
        via: { send: (message) => send(message as Message) },
      });
    },
    ...(isAtLeast(live.session.handshake.revision, "2025-11-25") ? { release: () => out.release() } : {}),
  };
  try {
    const result = await endpoint.server.handle(request, wire);
    return signal.aborted ? undefined : { kind: "result", id, result };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return signal.aborted ? undefined : toErrorResponse(error, id);
  } finally {
    isOver = true;
    if (live.running.get(id) === controller) live.running.delete(id);
  }
}
