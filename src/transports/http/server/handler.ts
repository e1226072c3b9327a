import { andThen, type Awaitable, recover, settled } from "../../../async/awaitable.ts";
import { type Clock, systemClock } from "../../../async/clock.ts";
import type { KeysOf } from "../../../errors/known-keys.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import { RawJson } from "../../../json/raw.ts";
import { createSeal, type Seal } from "../../../mcp/seal.ts";
import type { Server } from "../../../mcp/server.ts";
import { createMemoryEventStore, type EventStore } from "../legacy/event-store.ts";
import { findSession } from "../legacy/find-session.ts";
import { createHttpSse, type HttpSse } from "../legacy/http-sse.ts";
import { announce, serveGet } from "../legacy/legacy.ts";
import { SessionTable } from "../legacy/session-table.ts";
import { Admissions } from "./admissions.ts";
import { corsHeaders, isPreflight } from "./cors.ts";
import type { Endpoint, OnWarning } from "./endpoint.ts";
import { createGuard, type GuardOptions } from "./guard.ts";
import { createKeepAlive, type KeepAlive } from "./keep-alive.ts";
import { readJsonBody, type Responses, servePost } from "./post.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { refuseKey, sendError, sendJson } from "./send-json.ts";

/** Says who sent a request; undefined refuses it with 401, {@link anybody} lets it in without a name. */
export type Authenticate = (
  header: HttpRequest["header"],
) => string | undefined | typeof anybody | Promise<string | undefined | typeof anybody>;

/** A caller that needs no name. */
export const anybody: unique symbol = Symbol("anybody");

export interface HttpOptions extends GuardOptions {
  /** The path of the endpoint; `/mcp`. */
  readonly path?: string;
  readonly responses?: Responses;
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
  /** By default written to the standard error stream. */
  readonly onWarning?: OnWarning;
}

export const httpOptionKeys: KeysOf<HttpOptions> = {
  host: true,
  allowedHosts: true,
  allowedOrigins: true,
  path: true,
  responses: true,
  authenticate: true,
  corsOrigins: true,
  seal: true,
  sessionTtlMs: true,
  sessionIdleMs: true,
  maxSessions: true,
  events: true,
  retryMs: true,
  keepAliveMs: true,
  maxBodyBytes: true,
  clock: true,
  onWarning: true,
};

/** An endpoint that any HTTP server can be put in front of. */
export interface HttpHandler {
  /** Every path that is served, and the methods it takes. */
  readonly routes: { readonly [path: string]: readonly string[] };
  /** Answers one request; resolves when the answer is complete. */
  handle(http: HttpRequest, reply: Reply): Awaitable<void>;
  /** From now on `GET /health` says that we are leaving, and no call begins; those that run may finish. */
  drain(): void;
  /** Ends every stream and forgets every session. */
  close(): void;
}

/** `since` is the moment the caller was let in. */
type Route = (http: HttpRequest, reply: Reply, caller: string | undefined, since: number) => Awaitable<void>;
type Routes = { readonly [path: string]: { readonly [method: string]: Route } };

/** The endpoint for a server: every revision on one path, and the two routes of 2024-11-05 beside it. */
export function createHttpHandler(server: Server, options: HttpOptions = {}): HttpHandler {
  const { path = "/mcp", authenticate, corsOrigins = [] } = options;
  const guard = createGuard({
    ...options,
    allowedOrigins: [...(options.allowedOrigins ?? []), ...corsOrigins],
  });
  const keepAlive = createKeepAlive(options.keepAliveMs ?? 15_000);
  const state = { isDraining: false };
  const admissions = new Admissions();
  const endpoint = createEndpoint(server, options, admissions, keepAlive, state);
  const sessions = createSessions(endpoint, options);
  const httpSse = createHttpSse(endpoint, "/messages", 1000);
  const tellHealth: Route = (_http, reply) =>
    sendJson(reply, state.isDraining ? 503 : 200, state.isDraining ? draining : healthy);
  const routes: Routes = {
    [path]: {
      POST: (http, reply, caller, since) =>
        servePost({ http, reply, caller, since, endpoint, sessions, responses: options.responses ?? "auto" }),
      ...(server.serves === "modern" ? {} : legacyMethods(endpoint, sessions)),
    },
    "/health": { GET: tellHealth, HEAD: tellHealth },
    ...(server.serves === "modern" ? {} : httpSseRoutes(endpoint, httpSse)),
  };

  const serve = (http: HttpRequest, reply: Reply): Awaitable<void> => {
    const refusal = guard(http);
    if (refusal !== undefined) return sendError(reply, 403, new RpcError("rpc.invalid_request", refusal));
    const route = Object.hasOwn(routes, http.path) ? routes[http.path] : undefined;
    if (route === undefined) {
      const text = `Nothing is at ${http.path}; the endpoint is ${path}`;
      return sendError(reply, 404, new RpcError("rpc.invalid_request", text));
    }
    if (isPreflight(http, corsOrigins)) return reply.send(204, {});
    const method = Object.hasOwn(route, http.method) ? route[http.method] : undefined;
    if (method === undefined) {
      const allow = Object.keys(route).join(", ");
      const error = new RpcError("rpc.invalid_request", `${http.path} takes ${allow}`);
      return sendError(reply, 405, error, undefined, { allow });
    }
    const since = admissions.turn;
    if (authenticate === undefined || http.path === "/health") return method(http, reply, undefined, since);
    return andThen(settled(authenticate(http.header)), (known) => {
      if (known !== anybody && typeof known !== "string") return refuseKey(reply);
      const caller = known === anybody ? undefined : known;
      return admissions.holds(caller, since) ? method(http, reply, caller, since) : refuseKey(reply);
    });
  };
  const stopHearing = server.onRevoked?.((caller) => {
    admissions.revoke(caller);
    sessions.revoke(caller);
  });

  return {
    routes: Object.fromEntries(Object.entries(routes).map(([at, methods]) => [at, Object.keys(methods)])),
    handle: (http, reply) => {
      const extra = corsHeaders(http, corsOrigins);
      return serve(http, extra === undefined ? reply : withHeaders(reply, extra));
    },
    drain: () => {
      state.isDraining = true;
      httpSse.drain();
    },
    close: () => {
      stopHearing?.();
      httpSse.close();
      sessions.close();
      keepAlive.stop();
    },
  };
}

const healthy = RawJson.fromText('{"status":"ok"}');
const draining = RawJson.fromText('{"status":"draining"}');

function createEndpoint(
  server: Server,
  options: HttpOptions,
  admissions: Admissions,
  keepAlive: KeepAlive,
  state: { readonly isDraining: boolean },
): Endpoint {
  const { onWarning = writeWarning } = options;
  return {
    server,
    admissions,
    clock: options.clock ?? systemClock,
    events: options.events ?? createMemoryEventStore(),
    retryMs: options.retryMs ?? 1000,
    maxBodyBytes: options.maxBodyBytes ?? 4 * 1024 * 1024,
    get isDraining() {
      return state.isDraining;
    },
    openSink: (reply, headers, onClosed) => {
      const sink = reply.stream(200, headers, () => {
        keepAlive.remove(number);
        onClosed?.();
      });
      const number = keepAlive.add(sink);
      return sink;
    },
    forget: (stream) => {
      const failed = (error: unknown): void => onWarning("The events of a stream were not dropped", error);
      void recover(() => stream.forget(), failed);
    },
    onWarning,
  };
}

function createSessions(endpoint: Endpoint, options: HttpOptions): SessionTable {
  return new SessionTable({
    seal: options.seal ?? createSeal({ now: () => endpoint.clock.now() }),
    clock: endpoint.clock,
    ttlMs: options.sessionTtlMs ?? 24 * 3_600_000,
    idleMs: options.sessionIdleMs ?? 5 * 60_000,
    maxLive: options.maxSessions ?? 10_000,
    onLive: (live) => {
      live.detach = endpoint.server.attach(
        live.session,
        (method, params) => announce(live, endpoint, method, params),
        live.caller,
      );
    },
    forget: (stream) => endpoint.forget(stream),
  });
}

function legacyMethods(endpoint: Endpoint, sessions: SessionTable): Routes[string] {
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

function httpSseRoutes(endpoint: Endpoint, httpSse: HttpSse): Routes {
  return {
    "/sse": { GET: (_http, reply, caller) => httpSse.open(reply, caller) },
    "/messages": {
      POST: (http, reply, caller) =>
        readJsonBody(http, reply, endpoint.maxBodyBytes, (body) => httpSse.post(http, body, reply, caller)),
    },
  };
}

function withHeaders(reply: Reply, extra: { readonly [name: string]: string }): Reply {
  return {
    send: (status, headers, body) => reply.send(status, { ...headers, ...extra }, body),
    stream: (status, headers, onClosed) => reply.stream(status, { ...headers, ...extra }, onClosed),
    onHangUp: (callback) => reply.onHangUp(callback),
  };
}

export function writeWarning(text: string, error?: unknown): void {
  console.error(error === undefined ? text : `${text}:`, ...(error === undefined ? [] : [error]));
}
