import { createHash } from "node:crypto";
import { connect as connectSocket, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { systemClock } from "../async/clock.ts";
import { ConnectError } from "../errors/connect-error.ts";
import { HttpError } from "../errors/http-error.ts";
import type { Channel } from "../jsonrpc/channel.ts";
import type { Link, LinkEvents } from "../mcp/link.ts";
import type { Server } from "../mcp/server.ts";
import { createChannelLink } from "../transports/channel-link.ts";
import { type ChildCommand, describeCommand, spawnChild } from "../transports/child.ts";
import { type HeaderSource, HttpLink } from "../transports/http/client-link.ts";
import { connectHttpSse } from "../transports/http/client-sse.ts";
import { connectInMemory } from "../transports/memory.ts";
import { createStreamChannel } from "../transports/stream-channel.ts";
import { type Client, type ClientOptions, type ClientWays, createClient } from "./client.ts";

/**
 * Where a server is: an `http(s)://` URL, a `tcp://host:port` address, a command to start, two byte streams, or a server
 * in this process.
 */
export type Target =
  | string
  | URL
  | ChildCommand
  | { readonly readable: Readable; readonly writable: Writable }
  | { readonly server: Server };

export interface ConnectOptions extends ClientOptions {
  /** Headers for HTTP servers, such as `authorization`; a function is asked before every request. */
  readonly headers?: HeaderSource;
  /** Takes what a child writes to its standard error stream. */
  readonly onStderr?: (chunk: Uint8Array) => void;
  /** Most bytes of one answer; 64 MiB. */
  readonly maxResponseBytes?: number;
}

/**
 * Connects to an MCP server of any age. Rejects with a `ConnectError`, `HttpError` or `ClosedError` that says what was
 * wrong and what to do.
 *
 * @example
 * await using client = await connect("https://example.com/mcp");
 * const { content } = await client.callTool("search", { query: "junctor" });
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const url = toUrl(target);
  if (url?.protocol === "http:" || url?.protocol === "https:") return connectHttp(url, options);
  return createClient(toWays(target, url, options), options);
}

function toUrl(target: Target): URL | undefined {
  if (target instanceof URL) return target;
  if (typeof target !== "string") return undefined;
  try {
    return new URL(target);
  } catch (error) {
    const hint =
      "write a URL such as http://127.0.0.1:7780/mcp or tcp://127.0.0.1:7780, or { command, args } to start a server";
    throw new ConnectError(target, hint, { cause: error });
  }
}

function toWays(target: Target, url: URL | undefined, options: ConnectOptions): ClientWays {
  if (url !== undefined) {
    if (url.protocol !== "tcp:")
      throw new ConnectError(url.href, `${url.protocol}// is not spoken here; use http, https or tcp`);
    return pipeWays(url.href, () => openTcp(url));
  }
  if (typeof target !== "object" || target instanceof URL)
    throw new ConnectError(String(target), "it is no target");
  if ("command" in target) return childWays(target, options);
  if ("server" in target)
    return pipeWays("a server in this process", () => Promise.resolve(connectInMemory(target.server)));
  let isUsed = false;
  return pipeWays("a pair of streams", () => {
    if (isUsed)
      return Promise.reject(
        new ConnectError("a pair of streams", "it ended, and streams cannot be opened again"),
      );
    isUsed = true;
    return Promise.resolve(createStreamChannel(target.readable, target.writable));
  });
}

function pipeWays(target: string, openChannel: () => Promise<Channel>): ClientWays {
  return {
    target,
    cacheKey: target,
    isHttp: false,
    open: async (events) => createChannelLink(await openChannel(), { target, events }),
  };
}

function childWays(command: ChildCommand, options: ConnectOptions): ClientWays {
  const target = describeCommand(command);
  const { onStderr } = options;
  return {
    target,
    cacheKey: JSON.stringify([command.command, command.args ?? [], command.cwd ?? ""]),
    isHttp: false,
    open: async (events) => {
      const child = await spawnChild(command, onStderr === undefined ? {} : { onStderr });
      const link = createChannelLink(child.channel, { target, events });
      return {
        ...link,
        request: async (request) => {
          try {
            return await link.request(request);
          } catch (error) {
            // Why a child does not start is on its standard error; nobody else will tell.
            if (request.method !== "initialize" || request.signal.aborted) throw error;
            const reason = await Promise.race([
              child.exited,
              Promise.resolve(String((error as Error).message)),
            ]);
            throw new ConnectError(target, reason, { stderr: child.stderr, cause: error });
          }
        },
      };
    },
  };
}

function openTcp(url: URL): Promise<Channel> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connectSocket({ host: url.hostname, port: Number(url.port), noDelay: true });
    socket.once("connect", () => resolve(createStreamChannel(socket, socket)));
    socket.once("error", (error) => reject(new ConnectError(url.href, error.message, { cause: error })));
  });
}

/** Streamable HTTP of either era; when the server wants neither, the two routes of 2024-11-05. */
async function connectHttp(url: URL, options: ConnectOptions): Promise<Client> {
  const {
    headers,
    maxResponseBytes,
    clock = systemClock,
    onWarning,
    connectTimeoutMs: timeoutMs = 30_000,
  } = options;
  const target = `${url.origin}${url.pathname}`;
  const credential = typeof headers === "function" ? "dynamic" : JSON.stringify(headers ?? {});
  const cacheKey = `${url.href} ${createHash("sha256").update(credential).digest("hex")}`;
  const ways: ClientWays = {
    target,
    cacheKey,
    isHttp: true,
    open: (events: LinkEvents): Promise<Link> =>
      Promise.resolve(new HttpLink(url, { events, headers, maxResponseBytes, clock, onWarning })),
  };
  try {
    return await createClient(ways, options);
  } catch (error) {
    const isUnknown = error instanceof HttpError && [400, 404, 405].includes(error.status);
    if (!isUnknown || options.revision !== undefined) throw error;
    const sse = pipeWays(target, () =>
      connectHttpSse(url, { headers, clock, timeoutMs, maxEventBytes: maxResponseBytes }),
    );
    const eras = { get: () => "legacy" as const, set: () => {}, delete: () => {} };
    return createClient(sse, { ...options, eras }).catch(() => {
      throw error; // What the server said to the newer ways is the better explanation.
    });
  }
}
