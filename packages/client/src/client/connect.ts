import { createHash } from "node:crypto";
import { connect as connectSocket, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { systemClock, timedOut, waitFor } from "@junctor/core/async";
import { connectInMemory, createStreamChannel } from "@junctor/core/channel";
import { type AuthorizationError, ClosedError, ConnectError, RpcError } from "@junctor/core/errors";
import {
  type Link,
  type LinkEvents,
  type StartProgress,
  isModernRevision,
  type Server,
} from "@junctor/core/mcp";
import { defined, assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { Channel } from "@junctor/core/rpc";
import { type ChildCommand, describeCommand, spawnChild, type Guardian } from "../child/index.ts";
import type { HeaderSource } from "../http/index.ts";
import { createChannelLink } from "../link/index.ts";
import { type AuthorizationOptions, createClientAuthorizer, type Authorizer } from "../sign-in/index.ts";
import { clientOptionKeys, type ClientOptions, type Client, type Connector, createClient } from "./client.ts";
import type { ClientOf } from "./known-server.ts";
import { mayBeHttpSse } from "./negotiate.ts";

/**
 * Where a server is: an `http(s)://` URL, a `tcp://host:port` address, a command to start, two byte streams, or a server
 * in this process.
 */
export type Target =
  | string
  | URL
  | ChildCommand
  | { readonly readable: Readable; readonly writable: Writable }
  | { readonly server: Server; /** Who is calling, as the tools see it. */ readonly caller?: string };

/** How a client connects, and how it behaves once it is connected. */
export interface ConnectOptions extends ClientOptions {
  /** Headers for HTTP servers, such as `authorization`; a function is called before every request. */
  readonly headers?: HeaderSource;
  /**
   * How access is obtained to an HTTP server that wants OAuth: by a sign-in in a browser, or for the program itself. Does
   * nothing for a server that wants no OAuth.
   */
  readonly authorization?: AuthorizationOptions | Authorizer;
  /** Takes what a child writes to its standard error stream. */
  readonly onStderr?: (chunk: Uint8Array) => void;
  /** Called when a child runs, with a function that says how busy it was so far. */
  readonly onSpawned?: (progress: () => StartProgress) => void;
  /** Takes the first line on the standard output of each child that is not a message, cut to 200 characters. */
  readonly onStray?: (line: string) => void;
  /** How long a child may take to exit: after the end of its input, and again after TERM; 2 s. */
  readonly stageMs?: number;
  /** Ends a child and its descendants when we are killed; see `createGuardian`. */
  readonly guardian?: Guardian;
  /** `sse` speaks HTTP+SSE of 2024-11-05, and tries nothing newer first. */
  readonly transport?: "auto" | "sse";
  /** The most bytes of one answer; 64 MiB. */
  readonly maxResponseBytes?: number;
}

const connectOptionKeys: KeysOf<ConnectOptions> = {
  ...clientOptionKeys,
  ...keys("headers authorization onStderr onStray onSpawned stageMs guardian transport maxResponseBytes"),
};

/**
 * Connects to an MCP server of any age. Rejects with a `ConnectError`, `HttpError` or `ClosedError` that says what was
 * wrong and what to do. With the types of its server, which `junctor types` prints, names and arguments are checked by the compiler.
 *
 * @example
 * await using client = await connect("https://example.com/mcp");
 * const result = await client.callTool("search", { query: "junctor" });
 * console.log(textOf(result));
 */
export async function connect<Known = unknown>(
  target: Target,
  options: ConnectOptions = {},
): Promise<ClientOf<Known>> {
  assertKnownKeys("connect", options, connectOptionKeys);
  const url = toUrl(target);
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  const client = isHttp
    ? connectHttp(url, options)
    : createClient(toConnector(target, url, options), options);
  return (await client) as ClientOf<Known>;
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

function toConnector(target: Target, url: URL | undefined, options: ConnectOptions): Connector {
  if (url !== undefined) {
    if (url.protocol !== "tcp:")
      throw new ConnectError(url.href, `${url.protocol}// is not spoken here; use http, https or tcp`);
    return pipeConnector(url.href, url.href, () => openTcp(url, options));
  }
  if (typeof target !== "object" || target instanceof URL)
    throw new ConnectError(String(target), "it is not a target");
  if ("command" in target) return childConnector(target, options);
  if ("server" in target)
    return pipeConnector("a server in this process", undefined, () =>
      Promise.resolve(connectInMemory(target.server, defined({ caller: target.caller }))),
    );
  let isUsed = false;
  return pipeConnector("a pair of streams", undefined, () => {
    if (isUsed)
      return Promise.reject(
        new ConnectError("a pair of streams", "it ended, and streams cannot be opened again"),
      );
    isUsed = true;
    return Promise.resolve(createStreamChannel(target.readable, target.writable));
  });
}

function pipeConnector(
  target: string,
  cacheKey: string | undefined,
  openChannel: () => Promise<Channel>,
): Connector {
  return {
    target,
    cacheKey,
    isHttp: false,
    open: async (events) => createChannelLink(await openChannel(), { target, events }),
  };
}

function childConnector(command: ChildCommand, options: ConnectOptions): Connector {
  const { onStderr, onStray, stageMs, guardian, onWarning, clock = systemClock } = options;
  const target = describeCommand(command);
  return {
    target,
    cacheKey: digestOf([command.command, command.args ?? [], command.cwd ?? "", command.env ?? {}]),
    isHttp: false,
    open: async (events) => {
      const child = await spawnChild(command, { onStderr, onStray, stageMs, guardian });
      options.onSpawned?.(() => child.progress());
      return {
        ...createChannelLink(child.channel, { target, events, gone: child.exited, onWarning }),
        progress: () => child.progress(),
        // Only its standard error says why a child did not start.
        explain: async (failure) => {
          if (failure instanceof RpcError) return failure;
          const isOver =
            failure instanceof ClosedError &&
            (await waitFor(child.ended, { ms: lastWordsMs, clock })) !== timedOut;
          const reason = isOver ? await child.exited : toReason(failure);
          const kind = isOver ? "exited" : failure instanceof ConnectError ? failure.kind : undefined;
          const { stderr, stray } = child;
          return new ConnectError(target, reason, { kind, stderr, stray, cause: failure });
        },
      };
    },
  };
}

/** How long a child may take to end after its output ended. */
const lastWordsMs = 500;

function toReason(failure: unknown): string {
  if (failure instanceof ConnectError) return failure.reason;
  return failure instanceof Error ? failure.message : String(failure);
}

/** A key that reveals nothing of its parts, because they may hold credentials. */
function digestOf(parts: unknown): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

function openTcp(
  url: URL,
  { clock = systemClock, connectTimeoutMs = 30_000 }: ConnectOptions,
): Promise<Channel> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connectSocket({ host: url.hostname, port: Number(url.port), noDelay: true });
    const onError = (error: Error): void =>
      reject(
        error instanceof ConnectError ? error : new ConnectError(url.href, error.message, { cause: error }),
      );
    socket.once("error", onError);
    const stop = clock.timer(connectTimeoutMs, () =>
      socket.destroy(
        new ConnectError(url.href, `no answer within ${connectTimeoutMs} ms`, { kind: "no_answer" }),
      ),
    );
    socket.once("close", stop);
    socket.once("connect", () => {
      stop();
      socket.off("error", onError);
      resolve(createStreamChannel(socket, socket));
    });
  });
}

/** Streamable HTTP of either era, or the two routes of 2024-11-05 if the server speaks neither. */
async function connectHttp(url: URL, options: ConnectOptions): Promise<Client> {
  const {
    headers,
    maxResponseBytes,
    clock = systemClock,
    onWarning,
    connectTimeoutMs: timeoutMs = 30_000,
  } = options;
  const target = `${url.origin}${url.pathname}`;
  const authorizer = toAuthorizer(url, options);
  const signIn =
    authorizer === undefined ? {} : { signIn: (error: AuthorizationError) => authorizer.signIn(error) };
  const connector: Connector = {
    target,
    cacheKey: digestOf([url.href, typeof headers === "function" ? "dynamic" : (headers ?? {})]),
    isHttp: true,
    ...signIn,
    open: async (events: LinkEvents): Promise<Link> => {
      // undici takes 80 ms to load, which a program without HTTP servers should not pay for.
      const { HttpLink } = await import("../http/http-link.ts");
      return new HttpLink(url, { events, headers, authorizer, maxResponseBytes, clock, onWarning });
    },
  };
  try {
    if (options.transport !== "sse") return await createClient(connector, options);
    return await connectSse();
  } catch (error) {
    if (options.transport === "sse" || !mayBeHttpSse(error) || isModernRevision(options.revision))
      throw error;
    return connectSse().catch(() => {
      throw error; // The server's answer to the newer revisions is the better explanation.
    });
  }

  function connectSse(): Promise<Client> {
    const sse = pipeConnector(target, undefined, async () => {
      const { connectHttpSse } = await import("../http/http-sse-channel.ts");
      return connectHttpSse(url, { headers, authorizer, clock, timeoutMs, maxEventBytes: maxResponseBytes });
    });
    // Nothing there speaks the modern revision, so there is nothing to probe for.
    const eras = { get: () => "legacy" as const, set: () => {}, delete: () => {} };
    return createClient({ ...sse, ...signIn, cacheKey: target }, { ...options, eras });
  }
}

function toAuthorizer(url: URL, { authorization, clock }: ConnectOptions): Authorizer | undefined {
  if (authorization === undefined || "refused" in authorization) return authorization;
  return createClientAuthorizer(url, authorization, clock);
}
