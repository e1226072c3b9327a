import type { Awaitable } from "@junctor/core/async";
import type { Server, HeaderLookup } from "@junctor/core/mcp";
import type { ClientCertificate } from "./authenticate.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Admission } from "./guard.ts";
import { refuse, type HttpHeaders, type HttpRequest, type Reply, type WantedBody } from "./reply.ts";

/** Further servers of one HTTP endpoint, each at a path of its own: `/mcp/NAME` beside `/mcp`. */
export interface Mounts {
  /** The server at a name; undefined, which answers 404, if there is none or the caller must not know of it. */
  at(name: string, caller: string | undefined): Server | undefined;
  /** The names a caller is bound to: it is refused at the path of the endpoint itself. Undefined for callers that are not bound. */
  boundTo?(caller: string): readonly string[] | undefined;
  /** Calls back, until the returned function is called, when a name is gone: its sessions end. */
  onGone?(listener: (name: string) => void): () => void;
}

/** No further servers. */
export const noMounts: Mounts = { at: () => undefined };

/** The text for a caller that is bound to mounts and asks at another path. */
export function boundElsewhere(names: readonly string[], path: string): string {
  const all = names.map((name) => `${path}/${encodeURIComponent(name)}`);
  return `This key is for ${all.join(" and ")} only`;
}

/** The mounts of one endpoint that were used so far. */
export class MountedEndpoints {
  readonly #endpoint: Endpoint;
  readonly #mounts: Mounts;
  readonly #byName = new Map<string, Endpoint>();
  readonly #stopHearing: (() => void) | undefined;

  /** `endpoint` is the one whose limits and settings all mounts share. `onGone` is called with a server whose name is gone. */
  constructor(endpoint: Endpoint, mounts: Mounts, onGone: (server: Server) => void) {
    this.#endpoint = endpoint;
    this.#mounts = mounts;
    this.#stopHearing = mounts.onGone?.((name) => {
      endpoint.sessions.endWhere(({ mount: at }) => at === name);
      const server = this.#byName.get(name)?.server;
      if (server !== undefined) onGone(server);
      this.#byName.delete(name);
    });
  }

  /** The endpoint whose name follows `base` in the path of a request. Answers 404 where there is none. */
  find({ http, reply, caller }: Admission, base: string): Endpoint | undefined {
    const name = nameIn(http.path, base);
    const server = this.#mounts.at(name, caller);
    if (server === undefined) {
      refuse(reply, 404, `Nothing is at ${http.path}`);
      return undefined;
    }
    let mounted = this.#byName.get(name);
    if (mounted?.server !== server) this.#byName.set(name, (mounted = mount(this.#endpoint, server, name)));
    return mounted;
  }

  /** The server at a name that was used before, or that of the endpoint itself. */
  serverAt(name: string | undefined): Server {
    return (name === undefined ? undefined : this.#byName.get(name)?.server) ?? this.#endpoint.server;
  }

  /** Ends what would never end by itself, at every mount. */
  drain(): void {
    for (const { server } of this.#byName.values()) server.drain();
  }

  close(): void {
    this.#stopHearing?.();
  }
}

/** An endpoint for another server. Its calls, streams and sessions are counted together with those of `endpoint`. */
function mount(endpoint: Endpoint, server: Server, name: string): Endpoint {
  return {
    ...endpoint,
    server,
    mount: name,
    get isDraining() {
      return endpoint.isDraining;
    },
    get shortage() {
      return endpoint.shortage;
    },
  };
}

/** The name in the path of a mount; not decoded if its `%` escapes are not valid. */
export function nameIn(path: string, base: string): string {
  const name = path.slice(base.length);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** A request for a page. Its `Host` and `Origin` were checked. */
export interface PageRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly header: HeaderLookup;
  readonly remoteAddress: string | undefined;
  readonly certificate: ClientCertificate | undefined;
  /** The fields of a form that was sent; empty for a GET. */
  readonly form: URLSearchParams;
}

export interface PageAnswer {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: string;
}

/** Pages for people beside an endpoint. They need no key: each page authenticates its visitors itself. */
export interface Pages {
  /** The methods that the page at a path takes; undefined where there is none. */
  methodsAt(path: string): readonly string[] | undefined;
  serve(request: PageRequest): Promise<PageAnswer>;
  /** Called with the URL of the endpoint as soon as it listens. */
  listensAt?(url: string): void;
}

/** The most bytes of a form. */
const maxFormBytes = 16 * 1024;

/** Answers a request for a page; false if there is none at its path. */
export function servePage(
  pages: Pages | undefined,
  http: HttpRequest,
  reply: Reply,
): Awaitable<WantedBody | void> | false {
  const { path, method } = http;
  const methods = pages?.methodsAt(path);
  if (pages === undefined || methods === undefined) return false;
  if (!methods.includes(method)) {
    const allow = methods.join(", ");
    return refuse(reply, 405, `${path.split("/", 2).join("/")} takes ${allow}`, { headers: { allow } });
  }
  const answer = async (form: URLSearchParams): Promise<void> => {
    const { query, header, remoteAddress, certificate } = http;
    const request = { method, path, query, header, remoteAddress, certificate, form };
    const { status, headers, body } = await pages.serve(request);
    reply.send(status, headers, method === "HEAD" ? undefined : body);
  };
  if (method !== "POST") return answer(new URLSearchParams());
  const type = http.header("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded") return refuse(reply, 415, "Send a form");
  return {
    maxBytes: maxFormBytes,
    take: (body) => {
      if (body === "aborted") return undefined;
      if (body === "too_large") return refuse(reply, 413, `A form has at most ${maxFormBytes} bytes`);
      return answer(new URLSearchParams(new TextDecoder().decode(body)));
    },
  };
}
