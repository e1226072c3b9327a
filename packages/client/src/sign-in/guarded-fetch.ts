import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { type Clock, systemClock } from "@junctor/core/async";
import { AuthorizationError } from "@junctor/core/errors";
import type ipaddr from "ipaddr.js";

/** One request to an authorization server, or for metadata. */
interface GuardedRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Fetches a small text from a host that a server named, which may be any host at all. Only HTTPS, except on this machine and at the
 * server's own origin; no redirects; no private addresses; little time, and few bytes. Rejects with a `ForbiddenAddress` for an
 * address that must not be asked, or with the network's error.
 */
export type GuardedFetch = (url: URL, request?: GuardedRequest) => Promise<Response>;

interface GuardedFetchOptions {
  /** The server that needs authorization. */
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
      import("undici/index.js"),
      import("ipaddr.js"),
    ]);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    // A literal address is never looked up, so check it here.
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

/** A request to an API. Redirects are followed for `GET` and `HEAD` only. */
interface ApiRequest {
  readonly method: string;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string | Uint8Array | undefined;
  readonly signal: AbortSignal;
}

/** The answer of an API: all of its body. */
export interface ApiAnswer {
  /** Where it came from, after redirects. */
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

interface ApiFetchOptions {
  /** Hosts that the user wrote, as in `URL.host` or `URL.hostname`: they may be private, and reached without TLS. */
  readonly named: readonly string[];
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly clock?: Clock;
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
}

const maxRedirects = 5;

/**
 * Asks an API. Hosts that the user did not write must have public addresses and HTTPS. A `GET` follows redirects, to another origin
 * without the `secret` headers. Rejects with a `ForbiddenAddress`, for a body over `maxBytes`, or with the network's error.
 */
export async function createApiFetch({
  named,
  maxBytes,
  timeoutMs,
  clock = systemClock,
  resolve = lookupAll,
}: ApiFetchOptions): Promise<
  (url: URL, request: ApiRequest, secret: { readonly [name: string]: string }) => Promise<ApiAnswer>
> {
  const [{ Agent, request }, { default: addresses }] = await Promise.all([
    import("undici/index.js"),
    import("ipaddr.js"),
  ]);
  const hosts: ReachableHosts = {
    isLoopbackAllowed: false,
    named: new Set(named.map((host) => host.toLowerCase())),
  };
  const dispatcher = new Agent({ connect: { lookup: createGuardedLookup(addresses, resolve, hosts) } });
  const assertReachable = (url: URL): void => {
    const isNamed = hosts.named.has(url.hostname) || hosts.named.has(url.host);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && isNamed))
      throw new ForbiddenAddress(url.host, `${url.protocol}// is not https://`);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const problem = isIP(host) === 0 || isNamed ? undefined : findAddressProblem(addresses, host, hosts);
    if (problem !== undefined) throw new ForbiddenAddress(url.host, problem);
  };
  return async (from, { method, headers = {}, body, signal }, secret) => {
    const late = new AbortController();
    const stopTimer = clock.timer(timeoutMs, () =>
      late.abort(new DOMException(`${from.host} took more than ${timeoutMs} ms`, "TimeoutError")),
    );
    try {
      let url = from;
      for (let hops = 0; ; hops++) {
        assertReachable(url);
        const own = url.origin === from.origin ? secret : {};
        const reply = await request(url, {
          dispatcher,
          method: method as "GET",
          headers: { ...headers, ...own },
          body: body ?? null,
          signal: AbortSignal.any([signal, late.signal]),
        });
        const answered = toHeaders(reply.headers);
        const location = reply.statusCode >= 300 && reply.statusCode < 400 ? answered.get("location") : null;
        if (location === null || (method !== "GET" && method !== "HEAD")) {
          const bytes = await readBounded(reply.body as AsyncIterable<Uint8Array>, maxBytes, url.host);
          return { url, status: reply.statusCode, headers: answered, body: bytes };
        }
        await reply.body.dump({ limit: 64 * 1024 });
        if (hops === maxRedirects) throw new Error(`${from.host} redirects more than ${maxRedirects} times`);
        url = new URL(location, url);
      }
    } finally {
      stopTimer();
    }
  };
}

/** The text of an answer. Rejects if it has more than `maxBytes`; `where` names its sender in the error. */
export async function readBoundedText(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  where: string,
): Promise<string> {
  return new TextDecoder().decode(await readBounded(body, maxBytes, where));
}

async function readBounded(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  where: string,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`${where} answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function toHeaders(fields: { readonly [name: string]: string | string[] | undefined }): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(fields))
    for (const value of typeof values === "string" ? [values] : values) headers.append(name, value);
  return headers;
}

async function lookupAll(hostname: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return lookup(hostname, { all: true });
}

export interface JsonMembers {
  readonly [key: string]: unknown;
}

interface FetchJsonOptions {
  readonly server: URL;
  readonly fetch: GuardedFetch;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The JSON object at a URL; undefined when there is none. Rejects with an `AuthorizationError` when the URL must not be asked or does
 * not answer.
 */
export async function fetchJson(
  url: URL,
  { server, fetch, signal }: FetchJsonOptions,
): Promise<JsonMembers | undefined> {
  const response = await fetch(url, { signal }).catch((error: unknown) => {
    throw toAuthorizationError(error, server);
  });
  if (response.status >= 500)
    throw new AuthorizationError("unreachable", nameOf(server), `${url.host} answered ${response.status}`);
  if (response.status !== 200) return undefined;
  return parseObject(await response.text());
}

/** The object of a JSON text; undefined for any other text. */
export function parseObject(text: string): JsonMembers | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as JsonMembers)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The error for a host that was not asked, or did not answer. */
export function toAuthorizationError(error: unknown, server: URL): unknown {
  if (error instanceof AuthorizationError) return error;
  if (error instanceof ForbiddenAddress)
    return new AuthorizationError("metadata", nameOf(server), error.message);
  if (error instanceof DOMException && error.name === "AbortError") return error;
  const cause = findForbidden(error);
  if (cause !== undefined) return new AuthorizationError("metadata", nameOf(server), cause.message);
  const text = `its authorization server does not answer: ${error instanceof Error ? error.message : String(error)}`;
  return new AuthorizationError("unreachable", nameOf(server), text, { cause: error });
}

function findForbidden(error: unknown): ForbiddenAddress | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++)
    if (cause instanceof ForbiddenAddress) return cause;
  return undefined;
}

/** Why an authorization server refused: the error of RFC 6749, section 5.2, or the status. */
export function fetchFailure(status: number, answer: JsonMembers | undefined): string {
  const { error, error_description: description } = answer ?? {};
  const texts = [error, description].filter((part) => typeof part === "string");
  return texts.length === 0
    ? `status ${status}`
    : texts
        .join(": ")
        .replaceAll(/[^\x20-\x7e]/g, " ")
        .slice(0, 300);
}

/** A server's URL without its query, which may hold a key. */
export function nameOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** The hosts that may be asked besides those of the public Internet. */
interface ReachableHosts {
  /** The server is on this machine, so its authorization server may be too. */
  readonly isLoopbackAllowed: boolean;
  /** Names and addresses that the user wrote: they may be private. In lower case, as in `URL.hostname`. */
  readonly named: ReadonlySet<string>;
}

type Addresses = typeof ipaddr;

/** Whether the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Why an address must not be asked; undefined if it may be. An address that maps another one counts as that one. */
function findAddressProblem(
  addresses: Addresses,
  address: string,
  hosts: ReachableHosts,
): string | undefined {
  if (!addresses.isValid(address)) return `${address} is not an address`;
  const range = addresses.process(address).range();
  if (range === "unicast") return undefined;
  if (range === "loopback" && hosts.isLoopbackAllowed) return undefined;
  return `${address} is not an address of the public Internet (${range})`;
}

/**
 * Looks up a host, and fails if one of its addresses must not be asked. The socket is opened to the addresses found here, so it does
 * not matter if the name resolves to another address later.
 */
function createGuardedLookup(
  addresses: Addresses,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
  hosts: ReachableHosts,
): LookupFunction {
  return (hostname, options, callback) => {
    const give = (found: readonly LookupAddress[]): void => {
      const problem = hosts.named.has(hostname.toLowerCase())
        ? undefined
        : found.map(({ address }) => findAddressProblem(addresses, address, hosts)).find(Boolean);
      const [first] = found;
      if (problem !== undefined || first === undefined)
        return callback(new ForbiddenAddress(hostname, problem ?? "it has no address"), "");
      if (options.all === true) callback(null, [...found]);
      else callback(null, first.address, first.family);
    };
    resolve(hostname)
      .then(give)
      .catch((error: unknown) => callback(error as NodeJS.ErrnoException, ""));
  };
}

/** A host that must not be asked. */
class ForbiddenAddress extends Error {
  override readonly name = "ForbiddenAddress";

  constructor(host: string, problem: string) {
    super(`${host} must not be asked: ${problem}`);
  }
}
