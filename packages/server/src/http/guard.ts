import { Numbered, type CallerLimits, Quota } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { type RpcError, ScopeError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Caller } from "@junctor/core/mcp";
import { type Authenticated, type Authenticate, toChallenge } from "./authenticate.ts";
import { type HttpHeaders, type HttpRequest, type Reply, refuse, refuseKey, sendJson } from "./reply.ts";

export interface GuardOptions {
  /** The address that was bound, where the runtime knows it. */
  readonly host?: string;
  /**
   * More values of `Host` to serve, such as `mcp.example.com` or `mcp.example.com:8443`. `*` serves every host: only where pages of
   * other sites cannot reach the endpoint, or cannot use it without a token.
   */
  readonly allowedHosts?: readonly string[];
  /** More values of `Origin` to serve, such as `https://app.example.com`. */
  readonly allowedOrigins?: readonly string[];
  /** The URL under which clients know the endpoint, such as that of a proxy. Its host and its origin are served. */
  readonly publicUrl?: string;
}

/** Returns why a request must not be served; undefined if it may be. */
type Guard = (request: HttpRequest) => string | undefined;

/**
 * Refuses requests that a web page on another site could have made (DNS rebinding: CVE-2025-66414 and its kin). A page
 * that tricks a browser into talking to us cannot forge `Host` and `Origin`. Names are compared exactly, with their port.
 */
export function createGuard(options: GuardOptions): Guard {
  const { host, allowedHosts = [], allowedOrigins = [], publicUrl } = options;
  const known = publicUrl === undefined ? undefined : new URL(publicUrl);
  const ownOrigins = known === undefined ? [] : [known.origin];
  const origins = new Set([...allowedOrigins, ...ownOrigins].map((origin) => origin.toLowerCase()));
  const hosts = new Set([...allowedHosts, ...hostsOf(known)].map((name) => name.toLowerCase()));
  const isOwn = host === undefined || isLoopback(host) || host === "0.0.0.0" || host === "::";
  const ownNames = new Set(isOwn ? ["localhost", "127.0.0.1", "[::1]"] : []);
  if (host !== undefined) ownNames.add((host.includes(":") ? `[${host}]` : host).toLowerCase());

  // Nothing is cached by port: some runtimes take the port from the URL of the request, which the client chose.
  const isServed = (name: string, port: number | undefined): boolean => {
    if (hosts.has(name)) return true;
    if (port === undefined) return false;
    if ((port === 80 || port === 443) && ownNames.has(name)) return true;
    const end = `:${port}`;
    return name.endsWith(end) && ownNames.has(name.slice(0, -end.length));
  };

  const isAnyServed = hosts.has("*");
  const isOwnOrigin = (name: string, asked: string, port: number | undefined): boolean =>
    isAnyServed ? name === asked : isServed(name, port);

  return ({ header, hostCount, localPort }) => {
    const asked = header("host")?.toLowerCase() ?? "";
    if (hostCount !== 1 || !(isAnyServed || isServed(asked, localPort))) {
      return `The Host ${JSON.stringify(asked)} is not served here; add it to allowedHosts if it should be.`;
    }
    const origin = header("origin")?.toLowerCase();
    if (origin === undefined || origins.has(origin)) return undefined;
    const isOwn =
      (origin.startsWith("http://") || origin.startsWith("https://")) &&
      isOwnOrigin(origin.slice(origin.indexOf("//") + 2), asked, localPort);
    return isOwn
      ? undefined
      : `The Origin ${JSON.stringify(origin)} is not served here; add it to allowedOrigins if it should be.`;
  };
}

/** How the header `Host` may spell the host of a URL: the usual port may be left out. */
function hostsOf(url: URL | undefined): readonly string[] {
  if (url === undefined) return [];
  return url.port === "" ? [url.host, `${url.host}:${url.protocol === "https:" ? 443 : 80}`] : [url.host];
}

/**
 * Headers that let a page of a listed origin read the answer. For other pages they only say that the answer depends on the
 * origin, so that no cache gives it to a page of a listed origin.
 */
export function corsHeaders(http: HttpRequest, origins: readonly string[]): HttpHeaders {
  const origin = http.header("origin");
  if (origin === undefined || !origins.includes(origin)) return { vary: "origin" };
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, POST, DELETE",
    // A page may mirror any argument in a header of its own, so every header that it asks for is allowed.
    "access-control-allow-headers": http.header("access-control-request-headers") ?? "content-type",
    "access-control-expose-headers": "mcp-session-id, www-authenticate",
    vary: "origin",
  };
}

/** A reply with more headers. */
export function withHeaders(reply: Reply, extra: HttpHeaders): Reply {
  return {
    set caller(caller: string | undefined) {
      reply.caller = caller;
    },
    send: (status, headers, body) => reply.send(status, { ...headers, ...extra }, body),
    stream: (status, headers, onClosed) => reply.stream(status, { ...headers, ...extra }, onClosed),
    onHangUp: (callback) => reply.onHangUp(callback),
    refused: (status, code) => reply.refused?.(status, code),
  };
}

/** Whether it is a CORS preflight request. */
export function isPreflight(http: HttpRequest, origins: readonly string[]): boolean {
  if (http.method !== "OPTIONS" || origins.length === 0) return false;
  return http.header("access-control-request-method") !== undefined;
}

/** A request that passed the guard and authentication. */
export interface Admission {
  readonly http: HttpRequest;
  readonly reply: Reply;
  /** The name of the caller. */
  readonly caller: string | undefined;
  readonly identity: Caller | undefined;
  /** {@link Revocations.turn} when the caller was authenticated. */
  readonly since: number;
  /** Set when another replica let it in: the address it came from, how often it was passed on, and see {@link PipedFrom}. */
  readonly piped?: {
    readonly from: string | undefined;
    readonly hops: number;
    readonly isMending?: boolean | undefined;
  };
}

/** The owner whose share a request counts towards: its caller, or its address if the caller has no name. */
export function ownerOf({ caller, http, piped }: Admission): string | undefined {
  return caller ?? (piped === undefined ? http.remoteAddress : piped.from);
}

/** A call or a stream that is open for a caller. It ends when the caller's key is revoked. */
export interface Admitted {
  readonly caller: string | undefined;
  readonly owner: string | undefined;
  /** Whether it is a stream that stays open instead of a call. */
  readonly isStream?: boolean;
  /** Ends the work with an answer that says why. Missing for work that ends with its session. */
  revoke?(): void;
  /** Answers a call that is still underway, because the server stops. Streams and sessions end by themselves. */
  giveUp?(): void;
  /** Ends a stream without a proper end, so that its client comes back later. */
  cut?(reason: string): void;
}

/** Memory is also checked after this many calls and streams, because each may take much of it. */
const checkEvery = 16;

/** The most calls underway, and most streams that stay open, for all callers. */
const maxCalls = 16_384;
const maxStreams = 16_384;

/** Which callers had their key revoked, and when. */
class Revocations {
  /** The logical time of each caller's last key revocation. Grows with the number of revoked keys. */
  readonly #last = new Map<string | undefined, number>();
  /** Logical time: the number of revocations so far. Read before a caller is authenticated. */
  turn = 0;

  /** Whether a caller that was authenticated at a logical time still has its key. */
  holds(caller: string | undefined, since: number): boolean {
    return this.turn === since || (this.#last.get(caller) ?? 0) <= since;
  }

  note(caller: string | undefined): void {
    this.#last.set(caller, ++this.turn);
  }
}

/** The calls and streams that are open for callers, and their limits. */
export class Admissions {
  readonly revocations: Revocations = new Revocations();
  readonly calls: Quota<string | undefined>;
  readonly streams: Quota<string | undefined>;
  readonly #open = new Numbered<Admitted>();
  #added = 0;
  /** Called each time a few more calls and streams were added. */
  onMany: () => void = () => {};

  constructor(limits: CallerLimits = {}) {
    this.calls = new Quota({ what: "calls underway", total: maxCalls, each: () => limits.calls ?? 4096 });
    this.streams = new Quota({ what: "open streams", total: maxStreams, each: () => limits.streams });
  }

  /** The error for work that its owner may not begin now; undefined if it may. */
  refusal(wanted: Pick<Admitted, "owner" | "isStream">): RpcError | undefined {
    // While fewer than this are open, no caller is at a limit.
    if (this.#open.size < Math.min(this.calls.ample, this.streams.ample)) return undefined;
    return (wanted.isStream ? this.streams : this.calls).refusal(wanted.owner);
  }

  /** Adds work, and returns the number to delete it by. */
  add(admitted: Admitted): number {
    if (++this.#added % checkEvery === 0) this.onMany();
    (admitted.isStream ? this.streams : this.calls).add(admitted.owner);
    return this.#open.add(admitted);
  }

  delete(number: number): void {
    const admitted = this.#open.get(number);
    if (admitted === undefined) return;
    this.#open.delete(number);
    (admitted.isStream ? this.streams : this.calls).give(admitted.owner);
  }

  /** Whether an owner has at least as many calls underway as others have on average. */
  isGreedy(owner: string | undefined): boolean {
    return this.calls.isGreedy(owner);
  }

  /** Cuts a tenth of the streams of the owner that has most. */
  cutStreams(reason: string): void {
    const owner = this.streams.greediest();
    const streams = this.#open
      .values()
      .filter((admitted) => admitted.isStream === true && admitted.owner === owner);
    for (const stream of streams.slice(0, Math.ceil(streams.length / 10))) stream.cut?.(reason);
  }

  /** Answers every call that is underway. */
  giveUp(): void {
    for (const admitted of this.#open.values()) admitted.giveUp?.();
  }

  /** Ends the work of a caller. Earlier requests whose body has not arrived are refused by {@link Revocations.holds}. */
  revoke(caller: string | undefined): void {
    this.revocations.note(caller);
    for (const admitted of this.#open.values()) if (admitted.caller === caller) admitted.revoke?.();
  }
}

/** Refuses a request whose sender is not known. */
export function refuseCaller(reply: Reply, known: Authenticated, { header }: HttpRequest): void {
  if (typeof known !== "object" || known === null || !("refused" in known))
    return refuseKey(reply, header("authorization") !== undefined);
  const { refused, text, challenge } = known;
  const headers = {
    ...(challenge === undefined ? {} : { "www-authenticate": challenge }),
    ...(refused === 503 ? { "retry-after": "5" } : {}),
  };
  refuse(reply, refused, text, { headers });
}

/** The headers of the answer to a caller whose token lacks scopes; undefined for any other error. */
export function scopeHeaders(
  error: RpcError,
  path: string,
  { challengeFor }: { readonly challengeFor: Authenticate["challengeFor"] },
): HttpHeaders | undefined {
  if (!(error.cause instanceof ScopeError)) return undefined;
  const { scopes } = error.cause;
  const plain = { error: "insufficient_scope", metadataUrl: undefined, scopes } as const;
  const challenge = challengeFor?.(scopes, path) ?? toChallenge(plain);
  return { "content-type": "application/json", "www-authenticate": challenge };
}

/** The headers of an open document, which pages of any origin may read. */
const openHeaders = {
  "content-type": "application/json",
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET",
  "access-control-allow-headers": "mcp-protocol-version",
  "cache-control": "max-age=300",
} as const;

/**
 * Answers a request for a document that every page may read, whatever its `Host` and `Origin`: the document does not depend on
 * them. False when there is no such document.
 */
export function sendDocument(
  { method, path }: HttpRequest,
  reply: Reply,
  documentAt: (path: string) => RawJson | undefined,
): boolean {
  const document = documentAt(path);
  if (document === undefined) return false;
  if (method === "OPTIONS") reply.send(204, openHeaders);
  else if (method === "GET" || method === "HEAD") sendJson(reply, 200, document, openHeaders);
  else refuse(reply, 405, `${path} takes GET`, { headers: { allow: "GET, HEAD" } });
  return true;
}
