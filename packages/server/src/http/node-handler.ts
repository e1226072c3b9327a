import type { IncomingMessage, ServerResponse } from "node:http";
import { systemClock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { Server } from "@junctor/core/mcp";
import { writeWarning } from "./endpoint.ts";
import type { FetchOptions } from "./fetch.ts";
import { HttpHandler } from "./handler.ts";
import { NodeReply, NodeRequest, readNodeBody } from "./node-reply.ts";
import { type Body, sendError, type SinkLimits, Unread } from "./reply.ts";

/** Answers a request of `node:http`. `parsed` is its body, if a framework has read it. */
export type NodeHandler = (
  incoming: IncomingMessage & { readonly body?: unknown },
  response: ServerResponse,
  parsed?: unknown,
) => Promise<void>;

/** Serves MCP inside another server on `node:http`: Express, Fastify, Koa, Nest. */
export function toNodeHandler(server: Server, options: FetchOptions = {}): NodeHandler {
  const handler = new HttpHandler(server, options);
  const { onWarning = writeWarning, clock = systemClock } = options;
  const limits: SinkLimits = {
    maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
    stallMs: options.stallMs ?? 60_000,
    unread: new Unread({
      maxBytes: 256 * 1024 * 1024,
      maxBytesEach: () => options.perCaller?.unreadBytes ?? 64 * 1024 * 1024,
      clock,
    }),
    onCut: (reason) => onWarning(`A client was cut off: ${reason}`),
  };
  return async (incoming, response, parsed) => {
    const http = new NodeRequest(incoming);
    const reply = new NodeReply(response, limits);
    try {
      const wanted = await handler.handle(http, reply);
      await wanted?.take(await bodyOf(incoming, parsed, wanted.maxBytes));
    } catch (error) {
      onWarning(`Serving ${http.method} ${http.path} failed`, error);
      if (response.headersSent) response.destroy();
      else sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
    }
  };
}

/** The body of a request, parsed by the framework or else read now. Express passes `next` where others pass the body. */
function bodyOf(
  incoming: Parameters<NodeHandler>[0],
  parsed: unknown,
  maxBytes: number,
): Body | Promise<Body> {
  const passed = parsed === undefined || typeof parsed === "function" ? undefined : parsed;
  // If a parser did not know the type of the body, `incoming.body` is `{}` and the body is unread.
  const body = passed ?? (incoming.readableEnded ? (incoming.body ?? "") : undefined);
  if (body === undefined) return new Promise((resolve) => readNodeBody(incoming, maxBytes, resolve));
  const bytes = toBytes(body);
  return bytes.length > maxBytes ? "too_large" : bytes;
}

function toBytes(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
}
