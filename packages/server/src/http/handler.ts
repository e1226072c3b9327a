import { andThen, recover, settled, systemClock, Repeats } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import { createSeal, type Server, sessionHeader } from "@junctor/core/mcp";
import { refuseCaller, sendDocument } from "./admit.ts";
import { anybody } from "./authenticate.ts";
import type { PipedFrom } from "./elsewhere.ts";
import { createKeepAlive, type Endpoint, toLoad, type KeepAlive, writeWarning } from "./endpoint.ts";
import { createMemoryEventStore } from "./event-store.ts";
import {
  type Admission,
  Admissions,
  corsHeaders,
  createGuard,
  isPreflight,
  toCaller,
  withHeaders,
} from "./guard.ts";
import { createHealthRoutes, healthPaths } from "./health-routes.ts";
import type { HttpOptions } from "./http-options.ts";
import { createHttpSse, type HttpSse } from "./http-sse.ts";
import { announce, serveDelete, serveGet } from "./legacy.ts";
import type { Shortage } from "./memory-watch.ts";
import { boundElsewhere, MountedEndpoints, nameIn, noMounts } from "./mounts.ts";
import { servePage } from "./pages.ts";
import { servePost, wantJson } from "./post.ts";
import { type HttpRequest, refuse, refuseKey, type Reply, type Routed } from "./reply.ts";
import { openSessionId, SessionTable } from "./session-table.ts";

/** An endpoint that any HTTP server can be put in front of. */
export interface HttpHandler {
  /** Every path that is served, and the methods it takes. */
  readonly routes: { readonly [path: string]: readonly string[] };
  /** Answers one request, or lets it in and wants its body. */
  handle(http: HttpRequest, reply: Reply): Routed;
  /** The same for a request that another process of the same gateway let in. */
  admit(http: HttpRequest, reply: Reply, from: PipedFrom): Routed;
  /** From now on `/ready` and `/health` say 503, and no call begins. Calls that run may finish. */
  drain(): void;
  /** Sheds work while memory is short: refuses calls, and cuts streams of the caller with most. */
  shed(shortage: Shortage): void;
  /** Sets the function that is called after every few calls that did not end at once. It looks at the memory. */
  onMany(look: () => void): void;
  /** The calls, streams and sessions that callers have open. */
  inspect(): ReturnType<typeof toLoad>;
  /** Ends every stream and forgets every session. */
  close(): void;
}

type Route = (admission: Admission) => Routed;
type Routes = { readonly [path: string]: { readonly [method: string]: Route } };

/** The endpoint for a server: every revision on one path, and the two routes of 2024-11-05 beside it. */
export function createHttpHandler(server: Server, options: HttpOptions = {}): HttpHandler {
  const { path = "/mcp", authenticate, corsOrigins = [], mounts = noMounts, elsewhere } = options;
  const guard = createGuard({
    ...options,
    allowedOrigins: [...(options.allowedOrigins ?? []), ...corsOrigins],
  });
  const keepAlive = createKeepAlive(options.keepAliveMs ?? 15_000);
  const endpoint = createEndpoint(server, options, keepAlive, (name) => mounted.serverAt(name));
  const mounted = new MountedEndpoints(endpoint, mounts, (gone) => httpSse.close(gone));
  const { admissions, sessions } = endpoint;
  const httpSse = createHttpSse(endpoint, "/messages", 1000, elsewhere?.address);
  const routes: Routes = {
    [path]: endpointMethods(server.serves, () => endpoint),
    ...createHealthRoutes(endpoint, options.isReady),
    ...(server.serves === "modern" ? {} : httpSseRoutes(endpoint, httpSse)),
  };
  const openMounted: Route = (admission) => {
    const found = mounted.find(admission, "/sse/");
    return found && httpSse.open(admission, found.server);
  };
  const mountRoutes: readonly (readonly [base: string, Routes[string]])[] = [
    [`${path}/`, endpointMethods(server.serves, (admission) => mounted.find(admission, `${path}/`))],
    ...(server.serves === "modern" ? [] : [["/sse/", { GET: openMounted }] as const]),
  ];
  const routeOf = (at: string): Routes[string] | undefined => {
    if (Object.hasOwn(routes, at)) return routes[at];
    return mountRoutes.find(([base]) => mounts !== noMounts && at.startsWith(base))?.[1];
  };

  const enter = (method: Route, admission: Admission): Routed => {
    const { http, caller } = admission;
    const { seal } = options;
    if (seal === undefined || elsewhere?.isAbout(http) !== true) return method(admission);
    const mount = http.path.startsWith(`${path}/`) ? nameIn(http.path, `${path}/`) : undefined;
    return elsewhere.pass(admission, {
      maxBytes: endpoint.maxBodyBytes,
      isGood: () => openSessionId(http.header(sessionHeader) ?? "", seal, { caller, mount }).ok,
      serve: () => method(admission),
    });
  };

  const documentAt = (at: string): RawJson | undefined =>
    authenticate?.documentAt?.(at, (endpointPath) => routeOf(endpointPath) !== undefined);
  const serve = (http: HttpRequest, reply: Reply): Routed => {
    const refusal = guard(http);
    if (refusal !== undefined)
      return sendDocument(http, reply, documentAt) ? undefined : refuse(reply, 403, refusal);
    const route = routeOf(http.path);
    if (route === undefined) {
      const page = servePage(options.pages, http, reply);
      if (page !== false) return page;
      const text = `Nothing is at ${http.path}; the endpoint is ${path}`;
      return sendDocument(http, reply, documentAt) ? undefined : refuse(reply, 404, text);
    }
    if (isPreflight(http, corsOrigins)) return reply.send(204, {});
    const method = Object.hasOwn(route, http.method) ? route[http.method] : undefined;
    if (method === undefined) {
      const allow = Object.keys(route).join(", ");
      return refuse(reply, 405, `${http.path} takes ${allow}`, { headers: { allow } });
    }
    const since = admissions.revocations.turn;
    if (healthPaths.includes(http.path))
      return method({ http, reply, caller: undefined, identity: undefined, since });
    if (authenticate === undefined)
      return enter(method, { http, reply, caller: undefined, identity: undefined, since });
    return andThen(settled(authenticate(http.header, http)), (known) => {
      const identity = toCaller(known);
      if (identity === undefined && known !== anybody) return refuseCaller(reply, known, http);
      const caller = identity?.name;
      reply.caller = caller;
      if (!admissions.revocations.holds(caller, since)) return refuseKey(reply, true);
      const bound = caller === undefined ? undefined : mounts.boundTo?.(caller);
      if (bound !== undefined && (http.path === path || http.path === "/sse"))
        return refuse(reply, 403, boundElsewhere(bound, http.path));
      return enter(method, { http, reply, caller, identity, since });
    });
  };
  const admit: HttpHandler["admit"] = (http, reply, { identity, address: from, hops = 1, isMending }) => {
    const caller = identity?.name;
    const method = routeOf(http.path)?.[http.method];
    if (method === undefined) return refuse(reply, 404, `Nothing is at ${http.path}`);
    reply.caller = caller;
    const since = admissions.revocations.turn;
    return enter(method, { http, reply, caller, identity, since, piped: { from, hops, isMending } });
  };
  const stopHearing = server.onRevoked?.((caller) => {
    admissions.revoke(caller);
    sessions.endWhere((live) => live.caller === caller);
  });

  return {
    routes: Object.fromEntries(Object.entries(routes).map(([at, methods]) => [at, Object.keys(methods)])),
    handle: (http, reply) => {
      if (corsOrigins.length === 0) return serve(http, reply);
      return serve(http, withHeaders(reply, corsHeaders(http, corsOrigins)));
    },
    drain: () => {
      endpoint.isDraining = true;
      mounted.drain();
      httpSse.drain();
    },
    admit,
    shed: (shortage) => {
      endpoint.shortage = shortage;
      if (shortage > 0) admissions.cutStreams("memory is short");
    },
    onMany: (look) => {
      admissions.onMany = look;
    },
    inspect: () => toLoad(endpoint),
    close: () => {
      stopHearing?.();
      mounted.close();
      admissions.giveUp();
      httpSse.close();
      sessions.close();
      keepAlive.stop();
    },
  };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

function createEndpoint(
  server: Server,
  options: HttpOptions,
  keepAlive: KeepAlive,
  serverAt: (mount: string | undefined) => Server,
): Mutable<Endpoint> {
  const { onWarning = writeWarning, clock = systemClock } = options;
  const forget: Endpoint["forget"] = (stream) => {
    const failed = (error: unknown): void => onWarning("The events of a stream were not dropped", error);
    void recover(() => stream.close("forgotten"), failed);
  };
  const sessions = new SessionTable({
    seal: options.seal ?? createSeal({ now: () => clock.now() }),
    clock,
    ttlMs: options.sessionTtlMs ?? 24 * 3_600_000,
    idleMs: options.sessionIdleMs ?? 5 * 60_000,
    maxLive: options.maxSessions ?? 16_384,
    maxPerOwner: () => options.perCaller?.sessions,
    elsewhere: options.elsewhere,
    onLive: (live) => {
      live.detach = serverAt(live.mount).attach(
        live.session,
        (method, params) => announce({ kind: "notification", method, params }, live, endpoint),
        live.caller,
      );
    },
    forget,
  });
  const refusals = new Repeats({ clock });
  const endpoint: Mutable<Endpoint> = {
    server,
    mount: undefined,
    admissions: new Admissions(options.perCaller),
    sessions,
    clock,
    events: options.events ?? createMemoryEventStore(),
    responses: options.responses ?? "auto",
    retryMs: options.retryMs ?? 1000,
    maxBodyBytes: options.maxBodyBytes ?? 4 * 1024 * 1024,
    isDraining: false,
    shortage: 0,
    openSink: (reply, headers, onClosed) => {
      const sink = reply.stream(200, headers, () => {
        keepAlive.remove(number);
        onClosed?.();
      });
      const number = keepAlive.add(sink);
      return sink;
    },
    forget,
    challengeFor: options.authenticate?.challengeFor,
    onWarning,
    onRefused: (owner, error) => {
      const times = refusals.note(`${owner} ${error.code}`);
      if (times === undefined) return;
      const often = times === 1 ? "" : ` ${times} more times`;
      onWarning(`${owner ?? "A caller"} was refused${often}: ${error.message}`);
    },
  };
  return endpoint;
}

/** The methods of an endpoint's path, or of the paths of its mounts. Where `endpointFor` gives undefined, it has answered the request. */
function endpointMethods(
  serves: Server["serves"],
  endpointFor: (admission: Admission) => Endpoint | undefined,
): Routes[string] {
  const post: Route = (admission) => {
    const endpoint = endpointFor(admission);
    return endpoint && wantJson(admission, endpoint, servePost);
  };
  if (serves === "modern") return { POST: post };
  return {
    POST: post,
    GET: (admission) => {
      const endpoint = endpointFor(admission);
      return endpoint && serveGet(admission, endpoint);
    },
    DELETE: (admission) => {
      const endpoint = endpointFor(admission);
      return endpoint && serveDelete(admission, endpoint);
    },
  };
}

function httpSseRoutes(endpoint: Endpoint, httpSse: HttpSse): Routes {
  return {
    "/sse": { GET: (admission) => httpSse.open(admission, endpoint.server) },
    "/messages": {
      POST: (admission) => wantJson(admission, endpoint, (body) => httpSse.post(body, admission)),
    },
  };
}
