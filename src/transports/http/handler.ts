import { type Clock, systemClock } from "../../async/clock.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { RawJson } from "../../json/raw.ts";
import { parseMessage } from "../../jsonrpc/parse.ts";
import { decideEra } from "../../mcp/era.ts";
import { createSeal, type Seal } from "../../mcp/seal.ts";
import type { Server } from "../../mcp/server.ts";
import { messageShape } from "../../mcp/shape.ts";
import { corsHeaders, isPreflight } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import { createMemoryEventStore, type EventStore } from "./event-store.ts";
import { sendError, sendJson } from "./exchange.ts";
import { createGuard, type GuardOptions } from "./guard.ts";
import { createHttpSse } from "./http-sse.ts";
import { createKeepAlive } from "./keep-alive.ts";
import { sessionHeader } from "./legacy-call.ts";
import {
  announce,
  serveBatch,
  serveGet,
  serveInitialize,
  serveLegacyRequest,
  takeNotification,
} from "./legacy.ts";
import { type Accepted, isJson, parseAccept } from "./media-type.ts";
import { serveModern } from "./modern.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { type LiveSession, SessionTable } from "./session-table.ts";

/** Says who sent a request; undefined refuses it with 401. */
export type Authenticate = (
  header: HttpRequest["header"],
) => string | undefined | Promise<string | undefined>;

export interface HttpOptions extends GuardOptions {
  /** The path of the endpoint; `/mcp`. */
  readonly path?: string;
  /** Whether the answers are JSON or event streams: by what the call does, or always one of them. */
  readonly responses?: "auto" | "json" | "sse";
  readonly authenticate?: Authenticate;
  /** Origins whose pages may read our answers; they are allowed as `Origin` too. None by default. */
  readonly corsOrigins?: readonly string[];
  /** Seals session ids. Share its secret to share sessions with other processes, or with the next one. */
  readonly seal?: Seal;
  readonly sessionTtlMs?: number;
  readonly sessionIdleMs?: number;
  readonly maxSessions?: number;
  readonly events?: EventStore;
  readonly retryMs?: number;
  readonly keepAliveMs?: number;
  readonly maxBodyBytes?: number;
  readonly clock?: Clock;
}

/** An endpoint that any HTTP server can be put in front of. */
export interface HttpHandler {
  /** Answers one request; resolves when the answer is complete. Never rejects. */
  handle(http: HttpRequest, reply: Reply): Promise<void>;
  /** From now on `GET /health` says that we are leaving; streams of 2024-11-05 end when their calls have. */
  drain(): void;
  /** Ends every stream and forgets every session. */
  close(): void;
}

type Route = (http: HttpRequest, reply: Reply, caller: string | undefined) => Promise<void> | void;
type Routes = { readonly [path: string]: { readonly [method: string]: Route } };

/** The endpoint for a server: every revision on one path, and the two routes of 2024-11-05 beside it. */
export function createHttpHandler(server: Server, options: HttpOptions = {}): HttpHandler {
  const { path = "/mcp", authenticate, corsOrigins = [], clock = systemClock } = options;
  const guard = createGuard({
    ...options,
    allowedOrigins: [...(options.allowedOrigins ?? []), ...corsOrigins],
  });
  const keepAlive = createKeepAlive(options.keepAliveMs ?? 15_000);
  const endpoint: Endpoint = {
    server,
    clock,
    events: options.events ?? createMemoryEventStore(),
    retryMs: options.retryMs ?? 1000,
    maxBodyBytes: options.maxBodyBytes ?? 4 * 1024 * 1024,
    openSink: (reply, headers) => {
      const sink = reply.stream(200, headers);
      keepAlive.add(sink);
      return sink;
    },
  };
  const sessions = new SessionTable({
    seal: options.seal ?? createSeal(),
    clock,
    ttlMs: options.sessionTtlMs ?? 24 * 3_600_000,
    idleMs: options.sessionIdleMs ?? 5 * 60_000,
    maxLive: options.maxSessions ?? 10_000,
    onLive: (live) => {
      live.detach = server.attach(live.session, (method, params) => announce(live, endpoint, method, params));
    },
  });
  const httpSse = createHttpSse(endpoint, "/messages", 1000);
  let isDraining = false;

  const routes: Routes = {
    [path]: {
      POST: (http, reply, caller) =>
        servePost(http, reply, caller, endpoint, sessions, options.responses ?? "auto"),
      ...(server.serves === "modern" ? {} : legacyRoutes(endpoint, sessions)),
    },
    "/health": {
      GET: (_http, reply) => sendJson(reply, isDraining ? 503 : 200, isDraining ? draining : healthy),
    },
    ...(server.serves === "modern"
      ? {}
      : {
          "/sse": {
            GET: (_http: HttpRequest, reply: Reply, caller: string | undefined) =>
              httpSse.open(reply, caller),
          },
          "/messages": {
            POST: async (http: HttpRequest, reply: Reply, caller: string | undefined) => {
              const body = await readJsonBody(http, reply, endpoint.maxBodyBytes);
              if (body !== undefined) await httpSse.post(http, body, reply, caller);
            },
          },
        }),
  };

  const serve = async (http: HttpRequest, reply: Reply): Promise<void> => {
    const refusal = guard(http);
    if (refusal !== undefined) return sendError(reply, 403, new RpcError("rpc.invalid_request", refusal));
    const route = Object.hasOwn(routes, http.path) ? routes[http.path] : undefined;
    if (route === undefined) {
      return sendError(
        reply,
        404,
        new RpcError("rpc.invalid_request", `Nothing is at ${http.path}; the endpoint is ${path}`),
      );
    }
    if (isPreflight(http, corsOrigins)) return reply.send(204, {});
    const method = Object.hasOwn(route, http.method) ? route[http.method] : undefined;
    if (method === undefined) {
      const allow = Object.keys(route).join(", ");
      return sendError(
        reply,
        405,
        new RpcError("rpc.invalid_request", `${http.path} takes ${allow}`),
        undefined,
        { allow },
      );
    }
    const isOpen = authenticate === undefined || http.path === "/health";
    const caller = isOpen ? undefined : await authenticate(http.header);
    if (!isOpen && caller === undefined) {
      const error = new RpcError(
        "rpc.invalid_request",
        "Send a valid key in the header Authorization: Bearer KEY",
      );
      return sendError(reply, 401, error, undefined, { "www-authenticate": "Bearer" });
    }
    await method(http, reply, caller);
  };

  return {
    handle: async (http, reply) => {
      const extra = corsHeaders(http, corsOrigins);
      await serve(http, extra === undefined ? reply : withHeaders(reply, extra));
    },
    drain: () => {
      isDraining = true;
      httpSse.close();
    },
    close: () => {
      sessions.close();
      keepAlive.stop();
    },
  };
}

const healthy = RawJson.fromText('{"status":"ok"}');
const draining = RawJson.fromText('{"status":"draining"}');

async function servePost(
  http: HttpRequest,
  reply: Reply,
  caller: string | undefined,
  endpoint: Endpoint,
  sessions: SessionTable,
  responses: NonNullable<HttpOptions["responses"]>,
): Promise<void> {
  const body = await readJsonBody(http, reply, endpoint.maxBodyBytes);
  if (body === undefined) return;
  const accepted = accept(http, responses);
  if (!accepted.json && !accepted.sse) {
    return sendError(
      reply,
      406,
      new RpcError("rpc.invalid_request", "Accept application/json and text/event-stream"),
    );
  }
  const incoming = parseMessage(body, { shape: messageShape });
  if (incoming.kind === "invalid")
    return sendError(reply, 400, withCode(incoming.error, endpoint), incoming.id);
  if (incoming.kind === "request" || incoming.kind === "notification") {
    const token = http.header(sessionHeader);
    const live = token === undefined ? undefined : sessions.find(token, caller);
    const era = decideEra(incoming, {
      session: live?.session,
      headers: http.header,
      serves: endpoint.server.serves,
    });
    const id = incoming.kind === "request" ? incoming.id : undefined;
    if (era.kind === "modern") {
      if (incoming.kind === "notification") return reply.send(202, {});
      return serveModern(incoming, era, http, reply, endpoint, accepted, caller);
    }
    if (token !== undefined && live === undefined) return sendError(reply, 404, sessionNotFound(), id);
    if (era.kind === "refused") return sendError(reply, 400, era.error, id);
    if (incoming.kind === "notification") {
      takeNotification(incoming, live);
      return reply.send(202, {});
    }
    if (live !== undefined && incoming.method !== "initialize") {
      return serveLegacyRequest(incoming, live, reply, accepted, endpoint);
    }
    if (live === undefined) return serveInitialize(incoming, reply, endpoint, sessions, caller);
    return sendError(
      reply,
      400,
      new RpcError("rpc.invalid_request", "This session is initialized already"),
      id,
    );
  }
  const live = findSession(http, reply, caller, sessions);
  if (live === undefined) return;
  if (incoming.kind === "batch") return serveBatch(incoming, live, reply, accepted, endpoint);
  live.asks.answered(incoming);
  reply.send(202, {});
}

function legacyRoutes(endpoint: Endpoint, sessions: SessionTable): { readonly [method: string]: Route } {
  return {
    GET: async (http, reply, caller) => {
      const live = findSession(http, reply, caller, sessions);
      if (live !== undefined) await serveGet(http, reply, live, endpoint);
    },
    DELETE: (http, reply, caller) => {
      const live = findSession(http, reply, caller, sessions);
      if (live === undefined) return;
      sessions.delete(live);
      reply.send(200, {});
    },
  };
}

/** The session a request names. Answers 400 without a name and 404 for one that is not there, or not the caller's. */
function findSession(
  http: HttpRequest,
  reply: Reply,
  caller: string | undefined,
  sessions: SessionTable,
): LiveSession | undefined {
  const token = http.header(sessionHeader);
  const live = token === undefined ? undefined : sessions.find(token, caller);
  if (token === undefined)
    sendError(reply, 400, new RpcError("rpc.invalid_request", "The header Mcp-Session-Id is missing"));
  else if (live === undefined) sendError(reply, 404, sessionNotFound());
  return live;
}

function sessionNotFound(): RpcError {
  return new RpcError(
    "rpc.invalid_request",
    "Session not found or expired; send initialize again, without Mcp-Session-Id",
  );
}

async function readJsonBody(
  http: HttpRequest,
  reply: Reply,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (!isJson(http.header("content-type"))) {
    sendError(reply, 415, new RpcError("rpc.invalid_request", "The body must be application/json"));
    return undefined;
  }
  const body = await http.readBody(maxBytes);
  if (body === "too_large") {
    sendError(reply, 413, new RpcError("rpc.invalid_request", `The body is larger than ${maxBytes} bytes`));
    return undefined;
  }
  return body === "aborted" ? undefined : body;
}

function accept(http: HttpRequest, responses: NonNullable<HttpOptions["responses"]>): Accepted {
  if (responses === "auto") return parseAccept(http.header("accept"));
  return { json: responses === "json", sse: responses === "sse" };
}

function withCode(error: RpcError, { server }: Endpoint): RpcError {
  return error.code === "rpc.parse"
    ? new RpcError("rpc.parse", error.message, { rpcCode: server.parseErrorCode })
    : error;
}

function withHeaders(reply: Reply, extra: { readonly [name: string]: string }): Reply {
  return {
    send: (status, headers, body) => reply.send(status, { ...headers, ...extra }, body),
    stream: (status, headers) => reply.stream(status, { ...headers, ...extra }),
    onHangUp: (callback) => reply.onHangUp(callback),
  };
}
