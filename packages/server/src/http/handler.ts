import { createHash } from "node:crypto";
import { andThen, recover, settled, systemClock, Repeats } from "@junctor/core/async";
import { RawJson } from "@junctor/core/json";
import {
  createSeal,
  type Server,
  sessionHeader,
  legacyRevisions,
  modernRevisions,
  cardNamePattern,
  type ServerCard,
} from "@junctor/core/mcp";
import { packageVersion } from "@junctor/core/options";
import { anybody, type Authenticated, toCaller } from "./authenticate.ts";
import { type Endpoint, type HttpLoad, KeepAlive, toLoad, writeWarning } from "./endpoint.ts";
import { createMemoryEventStore } from "./event-store.ts";
import {
  refuseCaller,
  sendDocument,
  type Admission,
  Admissions,
  corsHeaders,
  createGuard,
  isPreflight,
  withHeaders,
} from "./guard.ts";
import type { HttpOptions } from "./http-options.ts";
import { HttpSse } from "./http-sse.ts";
import { announce, serveDelete, serveGet } from "./legacy.ts";
import type { Shortage } from "./memory-watch.ts";
import { boundElsewhere, MountedEndpoints, nameIn, noMounts, servePage } from "./mounts.ts";
import { servePost, wantJson } from "./post.ts";
import { type HttpRequest, refuse, refuseKey, type Reply, type Routed, sendJson } from "./reply.ts";
import { type PipedFrom, openSessionId, SessionTable } from "./session-table.ts";

type Route = (admission: Admission) => Routed;
type Methods = { readonly [method: string]: Route };

/** An endpoint for any HTTP server: every revision on one path, and the two routes of 2024-11-05 beside it. */
export class HttpHandler {
  readonly #options: HttpOptions;
  readonly #path: string;
  readonly #guard: ReturnType<typeof createGuard>;
  readonly #card: ReturnType<typeof createServerCard>;
  readonly #keepAlive: KeepAlive;
  readonly #endpoint: Mutable<Endpoint>;
  readonly #mounted: MountedEndpoints;
  readonly #httpSse: HttpSse;
  readonly #routes: { readonly [path: string]: Methods };
  /** The routes of mounts, by the beginning of their paths. */
  readonly #mountRoutes: readonly (readonly [base: string, methods: Methods])[];
  readonly #stopHearing: (() => void) | undefined;

  constructor(server: Server, options: HttpOptions = {}) {
    const { path = "/mcp", corsOrigins = [], allowedOrigins = [], mounts = noMounts } = options;
    this.#options = options;
    this.#path = path;
    this.#guard = createGuard({ ...options, allowedOrigins: [...allowedOrigins, ...corsOrigins] });
    this.#card = createServerCard(server, options);
    this.#keepAlive = new KeepAlive(options.keepAliveMs ?? 15_000);
    this.#endpoint = createEndpoint(server, options, this.#keepAlive, (name) => this.#mounted.serverAt(name));
    const { admissions, sessions } = this.#endpoint;
    this.#mounted = new MountedEndpoints(this.#endpoint, mounts, (gone) => this.#httpSse.close(gone));
    this.#httpSse = new HttpSse(this.#endpoint, "/messages", 1000, options.elsewhere?.address);
    const isModern = server.serves === "modern";
    this.#routes = {
      [path]: endpointMethods(server.serves, () => this.#endpoint),
      ...createHealthRoutes(this.#endpoint, options.isReady),
      ...(isModern ? {} : httpSseRoutes(this.#endpoint, this.#httpSse)),
    };
    const atMount = (admission: Admission): Endpoint | undefined => this.#mounted.find(admission, `${path}/`);
    const openMounted: Route = (admission) => {
      const found = this.#mounted.find(admission, "/sse/");
      return found && this.#httpSse.open(admission, found.server);
    };
    this.#mountRoutes =
      options.mounts === undefined
        ? []
        : [
            [`${path}/`, endpointMethods(server.serves, atMount)],
            ...(isModern ? [] : [["/sse/", { GET: openMounted }] as const]),
          ];
    this.#stopHearing = server.onRevoked?.((caller) => {
      admissions.revoke(caller);
      sessions.endWhere((live) => live.caller === caller);
    });
  }

  /** Every path that is served, and the methods it takes. */
  get routes(): { readonly [path: string]: readonly string[] } {
    const routes = Object.entries(this.#routes);
    return Object.fromEntries(routes.map(([at, methods]) => [at, Object.keys(methods)]));
  }

  /** Answers one request, or accepts it and asks for its body. */
  handle(http: HttpRequest, reply: Reply): Routed {
    if (this.#card?.(http, reply) === true) return;
    const { corsOrigins = [] } = this.#options;
    if (corsOrigins.length === 0) return this.#serve(http, reply);
    return this.#serve(http, withHeaders(reply, corsHeaders(http, corsOrigins)));
  }

  /** The same for a request that another process of the same gateway accepted. */
  admit(
    http: HttpRequest,
    reply: Reply,
    { identity, address: from, hops = 1, isMending }: PipedFrom,
  ): Routed {
    const caller = identity?.name;
    const method = this.#methodsAt(http.path)?.[http.method];
    if (method === undefined) return refuse(reply, 404, `Nothing is at ${http.path}`);
    reply.caller = caller;
    const since = this.#endpoint.admissions.revocations.turn;
    return this.#enter(method, { http, reply, caller, identity, since, piped: { from, hops, isMending } });
  }

  /** From now on `/ready` and `/health` say 503, and no call begins. Running calls may finish. */
  drain(): void {
    this.#endpoint.isDraining = true;
    this.#mounted.drain();
    this.#httpSse.drain();
  }

  /** Sheds work while memory is short: refuses calls, and cuts streams of the caller that has most. */
  shed(shortage: Shortage): void {
    this.#endpoint.shortage = shortage;
    if (shortage > 0) this.#endpoint.admissions.cutStreams("memory is short");
  }

  /** Sets the function that checks the memory. It is called each time a few more calls did not end at once. */
  onMany(look: () => void): void {
    this.#endpoint.admissions.onMany = look;
  }

  /** The calls, streams and sessions that callers have open. */
  inspect(): HttpLoad {
    return toLoad(this.#endpoint);
  }

  /** Ends every stream and forgets every session. */
  close(): void {
    this.#stopHearing?.();
    this.#mounted.close();
    this.#endpoint.admissions.giveUp();
    this.#httpSse.close();
    this.#endpoint.sessions.close();
    this.#keepAlive.stop();
  }

  #methodsAt(path: string): Methods | undefined {
    if (Object.hasOwn(this.#routes, path)) return this.#routes[path];
    if (this.#path === "*") return path.startsWith("/.well-known/") ? undefined : this.#routes["*"];
    return this.#mountRoutes.find(([base]) => path.startsWith(base))?.[1];
  }

  /** The order of the checks: `Host` and `Origin`, the path, the method, the caller. */
  #serve(http: HttpRequest, reply: Reply): Routed {
    const { authenticate, pages, corsOrigins = [] } = this.#options;
    const refusal = this.#guard(http);
    if (refusal !== undefined)
      return this.#sendDocument(http, reply) ? undefined : refuse(reply, 403, refusal);
    const methods = this.#methodsAt(http.path);
    if (methods === undefined) {
      const page = servePage(pages, http, reply);
      if (page !== false) return page;
      const text = `Nothing is at ${http.path}; the endpoint is ${this.#path}`;
      return this.#sendDocument(http, reply) ? undefined : refuse(reply, 404, text);
    }
    if (isPreflight(http, corsOrigins)) return reply.send(204, {});
    const method = Object.hasOwn(methods, http.method) ? methods[http.method] : undefined;
    if (method === undefined) {
      const allow = Object.keys(methods).join(", ");
      return refuse(reply, 405, `${http.path} takes ${allow}`, { headers: { allow } });
    }
    const since = this.#endpoint.admissions.revocations.turn;
    if (healthPaths.includes(http.path))
      return method({ http, reply, caller: undefined, identity: undefined, since });
    if (authenticate === undefined)
      return this.#enter(method, { http, reply, caller: undefined, identity: undefined, since });
    return andThen(settled(authenticate(http.header, http)), (known) =>
      this.#enterAs(known, method, http, reply, since),
    );
  }

  #enterAs(known: Authenticated, method: Route, http: HttpRequest, reply: Reply, since: number): Routed {
    const identity = toCaller(known);
    if (identity === undefined && known !== anybody) return refuseCaller(reply, known, http);
    const caller = identity?.name;
    reply.caller = caller;
    if (!this.#endpoint.admissions.revocations.holds(caller, since)) return refuseKey(reply, true);
    const bound = caller === undefined ? undefined : this.#options.mounts?.boundTo?.(caller);
    if (bound !== undefined && (http.path === this.#path || http.path === "/sse"))
      return refuse(reply, 403, boundElsewhere(bound, http.path));
    return this.#enter(method, { http, reply, caller, identity, since });
  }

  /** Serves a request, at the replica where its session lives. */
  #enter(method: Route, admission: Admission): Routed {
    const { http, caller } = admission;
    const { seal, elsewhere } = this.#options;
    if (seal === undefined || elsewhere?.isAbout(http) !== true) return method(admission);
    const base = `${this.#path}/`;
    const mount = http.path.startsWith(base) ? nameIn(http.path, base) : undefined;
    return elsewhere.pass(admission, {
      maxBytes: this.#endpoint.maxBodyBytes,
      isGood: () => openSessionId(http.header(sessionHeader) ?? "", seal, { caller, mount }).ok,
      serve: () => method(admission),
    });
  }

  #sendDocument(http: HttpRequest, reply: Reply): boolean {
    return sendDocument(http, reply, (path) =>
      this.#options.authenticate?.documentAt?.(path, (at) => this.#methodsAt(at) !== undefined),
    );
  }
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
    const warn = (error: unknown): void => onWarning("The events of a stream were not dropped", error);
    void recover(() => stream.close("forgotten"), warn);
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

/** The methods of an endpoint's path, or of the paths of its mounts. If `endpointFor` returns undefined, it has answered the request. */
function endpointMethods(
  serves: Server["serves"],
  endpointFor: (admission: Admission) => Endpoint | undefined,
): Methods {
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

function httpSseRoutes(endpoint: Endpoint, httpSse: HttpSse): { readonly [path: string]: Methods } {
  return {
    "/sse": { GET: (admission) => httpSse.open(admission, endpoint.server) },
    "/messages": {
      POST: (admission) => wantJson(admission, endpoint, (body) => httpSse.post(body, admission)),
    },
  };
}

/** The paths that report the health of the process. They need no key, and reveal nothing secret. */
export const healthPaths: readonly string[] = ["/health", "/live", "/ready"];

const words = {
  ok: RawJson.fromText('{"status":"ok"}'),
  starting: RawJson.fromText('{"status":"starting"}'),
  draining: RawJson.fromText('{"status":"draining"}'),
  overloaded: RawJson.fromText('{"status":"overloaded"}'),
} as const;

/**
 * The routes `/live` (the process serves), `/ready` (it takes new calls) and `/health` (it is not stopping). `isReady` says whether the
 * servers behind the endpoint have started.
 */
function createHealthRoutes(
  endpoint: Endpoint,
  isReady: () => boolean = () => true,
): { readonly [path: string]: Methods } {
  const answer: Route = ({ http: { path }, reply }) => {
    const word = path === "/live" ? "ok" : wordOf(path === "/ready", endpoint, isReady);
    sendJson(reply, word === "ok" ? 200 : 503, words[word]);
  };
  return Object.fromEntries(healthPaths.map((path) => [path, { GET: answer, HEAD: answer }]));
}

function wordOf(isAboutNew: boolean, endpoint: Endpoint, isReady: () => boolean): keyof typeof words {
  if (endpoint.isDraining) return "draining";
  if (!isAboutNew) return "ok";
  if (!isReady()) return "starting";
  return endpoint.shortage > 1 ? "overloaded" : "ok";
}

const catalogPath = "/.well-known/ai-catalog.json";

/** A document, ready to be sent. */
interface Page {
  readonly body: string;
  readonly type: string;
  readonly etag: string;
}

/**
 * Serves the card at `PATH/server-card`, and a catalog with it at `/.well-known/ai-catalog.json`, to everyone: without a key, and to pages of
 * every origin. The returned function says whether it answered the request.
 */
function createServerCard(
  server: Server,
  options: HttpOptions,
): ((http: HttpRequest, reply: Reply) => boolean) | undefined {
  const { serverCard, publicUrl, path = "/mcp" } = options;
  if (serverCard === undefined) return undefined;
  if (publicUrl === undefined) throw new TypeError("serverCard: publicUrl must say where the endpoint is");
  const { card, catalog } = toCardPages(serverCard, publicUrl, [
    ...(server.serves === "legacy" ? [] : modernRevisions),
    ...(server.serves === "modern" ? [] : legacyRevisions.toReversed()),
  ]);
  const pages: ReadonlyMap<string, Page> = new Map([
    [`${path}/server-card`, toPage(card, cardType)],
    [catalogPath, toPage(catalog, "application/json")],
  ]);
  const guard = createGuard(options);
  const serve = (page: Page, http: HttpRequest, reply: Reply): void => {
    const origin = { "access-control-allow-origin": "*" };
    if (http.method !== "GET" && http.method !== "HEAD")
      return refuse(reply, 405, `${http.path} takes GET, HEAD`, {
        headers: { allow: "GET, HEAD", ...origin },
      });
    // Pages of every origin may read it, so `Origin` is not checked. `Host` is, against DNS rebinding.
    const header = (key: string): string | undefined => (key === "origin" ? undefined : http.header(key));
    const { method, path: at, query, hostCount, localPort } = http;
    const refusal = guard({ method, path: at, query, hostCount, localPort, header });
    if (refusal !== undefined) return refuse(reply, 403, refusal);
    const headers = { ...origin, etag: page.etag, "cache-control": "public, max-age=300" };
    if (http.header("if-none-match") === page.etag) return reply.send(304, headers);
    return reply.send(
      200,
      { ...headers, "content-type": page.type },
      http.method === "HEAD" ? undefined : page.body,
    );
  };
  return (http, reply) => {
    const page = pages.get(http.path);
    if (page !== undefined) serve(page, http, reply);
    return page !== undefined;
  };
}

const cardType = "application/mcp-server-card+json";
const cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

/** The card of a server, and a catalog with only that card. They name no tools, no extensions and no servers behind a gateway. */
function toCardPages(
  { name, title, description, version = packageVersion }: ServerCard,
  url: string,
  supportedProtocolVersions: readonly string[],
): { readonly card: object; readonly catalog: object } {
  const [, domain, short] = cardNamePattern.exec(name) ?? [];
  if (domain === undefined || typeof description !== "string")
    throw new TypeError('serverCard: write { name: "com.example/gateway", description: "…" }');
  const card = {
    $schema: cardSchema,
    name,
    version,
    ...(title === undefined ? {} : { title }),
    description,
    remotes: [{ type: "streamable-http", url, supportedProtocolVersions }],
    _meta: { "dev.junctor/draft": "SEP-2127" },
  };
  const identifier = `urn:air:${domain.split(".").toReversed().join(".")}:mcp:${short}`;
  const entry = { identifier, type: cardType, url: `${url.replace(/\/$/, "")}/server-card` };
  return { card, catalog: { specVersion: "1.0", entries: [entry] } };
}

function toPage(value: object, type: string): Page {
  const body = JSON.stringify(value);
  return { body, type, etag: `"${createHash("sha256").update(body).digest("hex").slice(0, 32)}"` };
}
