import { createHash, timingSafeEqual } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, extname, join, relative, sep } from "node:path";
import { isLoopback } from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import { limitConnections, toTimeouts, createGuard, NodeRequest } from "@junctor/server/internal";
import { junctor } from "../invocation/index.ts";
import type { AdminSource } from "./admin-source.ts";
import { EventHub } from "./event-hub.ts";
import { readinessOf } from "./reports.ts";
import { AdminError, readBody, readQuery } from "./request.ts";
import { type AdminParts, type Route, routes } from "./routes.ts";
import { Tries } from "./try-it.ts";

interface AdminOptions {
  readonly source: AdminSource;
  /** Where it listens on TCP; nowhere without it. */
  readonly tcp?: AdminAddress | undefined;
  /** The path of a Unix socket; none without it. */
  readonly socket?: string | undefined;
  /** The folder of the page. Without an `index.html` in it there is no page. */
  readonly pageFolder: string;
  /** The address of the page, with its key if that is known. It is given on the socket only. */
  readonly toPage?: (url: string) => string | undefined;
  readonly onWarning: (text: string, error?: unknown) => void;
}

interface AdminAddress {
  readonly host: string;
  readonly port: number;
  /** Takes a free port when this one is taken. */
  readonly isFlexible: boolean;
  /** SHA-256 of the key, in lower-case hex. */
  readonly keyHash: string;
  /** Whether the key is one that the config names. Beyond loopback it must be. */
  readonly isOwnKey: boolean;
  readonly allowedHosts: readonly string[];
}

/** The admin API, up. Disposing it closes it. */
export interface AdminListener extends AsyncDisposable {
  /** Undefined when it does not listen on TCP. */
  readonly url: string | undefined;
  readonly hasPage: boolean;
  /** A server's health or lists changed. */
  serverChanged(server: string): void;
}

/**
 * Headers of every answer. Nothing but our own files runs in the page, no other page may frame it, read it or learn its
 * address as a referrer, and no answer is cached.
 */
const headers: { readonly [name: string]: string } = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
    "font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

/** Opens the admin API on TCP, on a Unix socket, or on both. */
export async function listenAdmin(options: AdminOptions): Promise<AdminListener> {
  const { source, tcp, socket, onWarning } = options;
  if (tcp !== undefined && !isLoopback(tcp.host) && !tcp.isOwnKey)
    throw new BindError(
      tcp.host,
      'the admin API needs a key: write "junctor": { "admin": { "key": { "env": "VARIABLE" } } }',
    );
  const hub = new EventHub(source);
  const tries = new Tries({ server: source.gateway.server, clock: source.clock });
  const page = readPage(options.pageFolder);
  let url: string | undefined;
  const parts: AdminParts = { source, hub, tries, headers, adminUrl: () => url };
  const answer = createAnswer(parts, page, onWarning);
  const servers: Server[] = [];
  if (tcp !== undefined) {
    const admits = createAdmission(tcp);
    const server = createServer(limits, (incoming, response) => void answer(incoming, response, admits));
    const port = await listenTcp(server, tcp);
    const name = tcp.host.includes(":") ? `[${tcp.host}]` : tcp.host;
    url = `http://${name}:${port}`;
    servers.push(server);
  }
  if (socket !== undefined) {
    // Only the user of the gateway can open it, so no key is asked for, and no browser can reach it.
    const pageUrl = (): string | undefined =>
      page === undefined || url === undefined ? undefined : options.toPage?.(url);
    const own = createAnswer({ ...parts, pageUrl }, page, onWarning);
    const server = createServer(limits, (incoming, response) => void own(incoming, response, () => {}));
    try {
      await listenSocket(server, socket);
      servers.push(server);
    } catch (error) {
      onWarning(`${junctor("status")}, logs and restart cannot reach this gateway: ${socket}`, error);
    }
  }
  const close = async (): Promise<void> => {
    tries[Symbol.dispose]();
    hub[Symbol.dispose]();
    await Promise.all(
      servers.map(async (server) => {
        const closed = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        await closed;
      }),
    );
  };
  return {
    get url() {
      return url;
    },
    hasPage: page !== undefined,
    serverChanged: (server) => hub.serverChanged(server),
    [Symbol.asyncDispose]: close,
  };
}

const limits = {
  ...toTimeouts(10_000, 30_000),
  keepAliveTimeout: 10_000,
  maxHeaderSize: 16 * 1024,
};
const maxConnections = 256;
const maxBodyBytes = 1024 * 1024;

/** Refuses a request by throwing; `isOpen` says that its path needs no key. */
type Admit = (incoming: IncomingMessage, isOpen: boolean, isMetrics: boolean) => void;

/** Applies the guard of the MCP endpoint, then checks the key. */
function createAdmission({ host, keyHash, isOwnKey, allowedHosts }: AdminAddress): Admit {
  const guard = createGuard({ host, allowedHosts });
  const wanted = Buffer.from(keyHash, "hex");
  return (incoming, isOpen, isMetrics) => {
    const refusal = guard(new NodeRequest(incoming));
    if (refusal !== undefined) throw new AdminError("admin.forbidden", refusal);
    if (isOpen || (isMetrics && !isOwnKey)) return;
    const key = /^Bearer +(\S+) *$/i.exec(incoming.headers.authorization ?? "")?.[1] ?? "";
    if (timingSafeEqual(createHash("sha256").update(key).digest(), wanted)) return;
    throw new AdminError(
      "admin.no_key",
      "Send the key of the admin API in the header Authorization: Bearer KEY",
    );
  };
}

type Answer = (incoming: IncomingMessage, response: ServerResponse, admit: Admit) => Promise<void>;

/** Answers requests: with a file of the page, a word about health, or by a route. */
function createAnswer(
  parts: AdminParts,
  page: ReadonlyMap<string, PageFile> | undefined,
  onWarning: AdminOptions["onWarning"],
): Answer {
  const table = routes.map((route) => ({ route, pattern: route.path.split("/") }));
  const health: { readonly [path: string]: () => string } = {
    "/live": () => "ok",
    "/health": () => (parts.source.isDraining() ? "draining" : "ok"),
    "/ready": () => readinessOf(parts.source),
  };

  const serve: Answer = async (incoming, response, admit) => {
    const { path, query } = new NodeRequest(incoming);
    const method = incoming.method === "HEAD" ? "GET" : (incoming.method ?? "GET");
    const file = page?.get(path);
    const word = Object.hasOwn(health, path) ? health[path]?.() : undefined;
    admit(incoming, file !== undefined || word !== undefined, path === "/metrics");
    if (method === "GET" && word !== undefined)
      return sendJson(response, word === "ok" ? 200 : 503, { status: word });
    if (method === "GET" && file !== undefined) return sendFile(response, file);
    const segments = path.split("/");
    const matching = table.filter(({ pattern }) => fits(pattern, segments));
    const found = matching.find(({ route }) => route.method === method);
    if (found !== undefined)
      return run(found.route, readAt(found.pattern, segments), { incoming, response, query }, parts);
    if (matching.length === 0) throw new AdminError("admin.not_found", `Nothing is at ${path.slice(0, 200)}`);
    const allow = [...new Set(matching.map(({ route }) => route.method))].join(", ");
    response.setHeader("allow", allow);
    throw new AdminError("admin.bad_method", `${path.slice(0, 200)} takes ${allow}`);
  };

  return async (incoming, response, admit) => {
    try {
      await serve(incoming, response, admit);
    } catch (error) {
      if (error instanceof AdminError) return refuse(incoming, response, error);
      onWarning(`Serving ${incoming.method ?? ""} on the admin API failed`, error);
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: { code: "admin.internal", message: "Internal error" } });
    }
  };
}

/** Checks a request by the description of its route, and answers it. */
async function run(
  route: Route,
  at: { readonly [name: string]: string },
  {
    incoming,
    response,
    query,
  }: {
    readonly incoming: IncomingMessage;
    readonly response: ServerResponse;
    readonly query: URLSearchParams;
  },
  parts: AdminParts,
): Promise<void> {
  const request = {
    at,
    query: route.query && readQuery(route.query, query),
    body: route.body && (await readBody(route.body, incoming, route.maxBodyBytes ?? maxBodyBytes)),
    response,
  };
  const answer = await route.handle(request, parts);
  if (route.events !== undefined) return;
  if (route.type !== undefined) send(response, 200, route.type, String(answer));
  else sendJson(response, route.status ?? 200, answer);
}

function refuse(incoming: IncomingMessage, response: ServerResponse, error: AdminError): void {
  if (response.headersSent) return void response.destroy();
  if (error.status === 401) response.setHeader("www-authenticate", "Bearer");
  // The rest of an unread body would be taken for the next request.
  if (!incoming.complete) response.setHeader("connection", "close");
  sendJson(response, error.status, { error: { code: error.code, message: error.message } });
}

function sendJson(response: ServerResponse, status: number, json: unknown): void {
  send(response, status, "application/json", JSON.stringify(json));
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { ...headers, "content-type": type });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

function sendFile(response: ServerResponse, { type, body, isImmutable }: PageFile): void {
  const cached = isImmutable ? { "cache-control": "max-age=31536000, immutable" } : {};
  response.writeHead(200, { ...headers, ...cached, "content-type": type });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => (part.startsWith(":") ? segments[index] !== "" : part === segments[index]))
  );
}

function readAt(
  pattern: readonly string[],
  segments: readonly string[],
): { readonly [name: string]: string } {
  const named = pattern.flatMap((part, index) =>
    part.startsWith(":") ? [[part.slice(1), decode(segments[index] ?? "")] as const] : [],
  );
  return Object.fromEntries(named);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new AdminError("admin.bad_request", "The path is not percent-encoded UTF-8");
  }
}

async function listenTcp(server: Server, { host, port, isFlexible }: AdminAddress): Promise<number> {
  limitConnections(server, maxConnections);
  try {
    await listening(server, { host, port });
  } catch (error) {
    if (!isFlexible || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    await listening(server, { host, port: 0 });
  }
  return (server.address() as AddressInfo).port;
}

async function listenSocket(server: Server, path: string): Promise<void> {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  rmSync(path, { force: true });
  limitConnections(server, maxConnections);
  await listening(server, { path });
  chmodSync(path, 0o600);
  server.unref();
}

async function listening(
  server: Server,
  where: { host?: string; port?: number; path?: string },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Otherwise the workers of a cluster would share it.
    server.listen({ ...where, exclusive: true }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** A file of the page, ready to be sent. */
interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
  /** Whether its name changes with its content. */
  readonly isImmutable: boolean;
}

const types: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".woff2": "font/woff2",
};

/**
 * The files of the page by their paths, read once: a request is looked up among them and never opens a file. Undefined when
 * there is no page in the folder.
 */
function readPage(folder: string): ReadonlyMap<string, PageFile> | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = new Map<string, PageFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const name = `/${relative(folder, path).split(sep).join("/")}`;
    const file = { type, body: readFileSync(path), isImmutable: name.startsWith("/assets/") };
    files.set(name, file);
    if (name === "/index.html") files.set("/", file);
  }
  return files;
}
