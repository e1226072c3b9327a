import type { Awaitable } from "@junctor/core/async";
import type { HeaderLookup } from "@junctor/core/mcp";
import type { ClientCertificate } from "./authenticate.ts";
import { type HttpHeaders, type HttpRequest, refuse, type Reply, type WantedBody } from "./reply.ts";

/** A request for a page. Its `Host` and `Origin` were checked. */
export interface PageRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly header: HeaderLookup;
  readonly remoteAddress: string | undefined;
  readonly certificate: ClientCertificate | undefined;
  /** The fields of a form that was sent; none for a GET. */
  readonly form: URLSearchParams;
}

export interface PageAnswer {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: string;
}

/** Pages for people beside an endpoint. They need no key: each finds out itself who visits it. */
export interface Pages {
  /** The methods that the page at a path takes; undefined where there is none. */
  methodsAt(path: string): readonly string[] | undefined;
  serve(request: PageRequest): Promise<PageAnswer>;
  /** Called with the URL of the endpoint as soon as it listens. */
  listensAt?(url: string): void;
}

/** Longest form that is read. */
const maxFormBytes = 16 * 1024;

/** Answers a request for a page; false where there is none at its path. */
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
