import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { type Clock, systemClock } from "@junctor/core/async";
import { createGuardedLookup, findAddressProblem, ForbiddenAddress, isLoopbackHost } from "./addresses.ts";
import type { ReachableHosts } from "./addresses.ts";

/** One request to an authorization server, or for metadata. */
interface GuardedRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Fetches a small text from a host that a server named, which may be any host at all. Only HTTPS, but for this machine and the
 * server's own origin; no redirects; no private addresses; little time, and few bytes. Rejects with a `ForbiddenAddress` for an
 * address that must not be asked, and with the network's error.
 */
export type GuardedFetch = (url: URL, request?: GuardedRequest) => Promise<Response>;

interface GuardedFetchOptions {
  /** The server whose authorization it is about. */
  readonly server: URL;
  /** Hosts the user wrote into the config. */
  readonly named?: readonly string[];
  readonly clock?: Clock;
  /** Resolves a name; the system's when left out. */
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
}

const maxBytes = 64 * 1024;
const timeoutMs = 5000;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { server, named = [], clock = systemClock, resolve = lookupAll } = options;
  const hosts: ReachableHosts = {
    isLoopbackAllowed: isLoopbackHost(server.hostname),
    named: new Set([server.hostname, ...named].map((host) => host.toLowerCase())),
  };
  return async (url, { method = "GET", headers = {}, body, signal } = {}) => {
    const isPlain = url.protocol === "http:";
    const mayBePlain =
      url.origin === server.origin || (hosts.isLoopbackAllowed && isLoopbackHost(url.hostname));
    if (url.protocol !== "https:" && !(isPlain && mayBePlain))
      throw new ForbiddenAddress(url.host, `${url.protocol}// is not https://`);
    const [{ Agent, request }, { default: addresses }] = await Promise.all([
      import("undici"),
      import("ipaddr.js"),
    ]);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    // A literal address is not looked up.
    const problem =
      isIP(host) === 0 || hosts.named.has(url.hostname)
        ? undefined
        : findAddressProblem(addresses, host, hosts);
    if (problem !== undefined) throw new ForbiddenAddress(url.host, problem);
    const dispatcher = new Agent({ connect: { lookup: createGuardedLookup(addresses, resolve, hosts) } });
    const late = new AbortController();
    const stopTimer = clock.timer(timeoutMs, () =>
      late.abort(new DOMException(`${url.host} took more than ${timeoutMs} ms`, "TimeoutError")),
    );
    try {
      const reply = await request(url, {
        dispatcher,
        method,
        headers: { accept: "application/json", ...headers },
        ...(body === undefined ? {} : { body }),
        signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
      });
      const text = await readBoundedText(reply.body as AsyncIterable<Uint8Array>, maxBytes, url.host);
      return new Response(hasNoBody(reply.statusCode) ? null : text, {
        status: reply.statusCode,
        headers: toHeaders(reply.headers),
      });
    } finally {
      stopTimer();
      await dispatcher.destroy();
    }
  };
}

/** The text of an answer. Rejects when it has more bytes; `where` names its sender. */
export async function readBoundedText(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  where: string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`${where} answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function toHeaders(given: { readonly [name: string]: string | string[] | undefined }): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(given))
    for (const value of typeof values === "string" ? [values] : values) headers.append(name, value);
  return headers;
}

async function lookupAll(hostname: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return lookup(hostname, { all: true });
}
