import { setMaxListeners } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { type Readable, Writable } from "node:stream";
import { systemClock, waitFor } from "@junctor/core/async";
import {
  type ServeOptions,
  serveChannel,
  serveOptionKeys,
  type StreamChannelOptions,
  createStreamChannel,
  isLoopback,
} from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import type { Server } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { Channel } from "@junctor/core/rpc";

export interface ServeStreamOptions extends ServeOptions, StreamChannelOptions {}

/** For requests without a time limit of their own: a handler that never ends must not keep a process for good. */
const defaultLingerMs = 10 * 60_000;

/**
 * Serves MCP on any pair of byte streams, one message a line. When the input ends, every request that was read is still
 * answered, for `lingerMs` at most, as long as the output is read; questions to the client and streams of change
 * notifications end at once, because the client can no longer answer or cancel them. Resolves when the input has ended or
 * the other side reads no more, what ran has ended or been aborted, and both streams are closed.
 *
 * @example
 * await serveStream(server, socket, socket);
 */
export async function serveStream(
  server: Server,
  readable: Readable,
  writable: Writable,
  options: ServeStreamOptions = {},
): Promise<void> {
  const { signal, lingerMs = defaultLingerMs, clock = systemClock } = options;
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  // The input may stay open after the reader of the output is gone, but then nobody gets the answers.
  writable.once("close", stop);
  writable.once("error", stop);
  try {
    const stream = createStreamChannel(readable, writable, options);
    const channel: Channel = {
      send: stream.send,
      [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: async () => {
        // The last answers are written at the pace of their reader, unless `signal` stops us.
        const limits = { signal: stopping.signal, ms: lingerMs, clock };
        await waitFor(stream.endOutput(), limits).catch(() => {});
        await stream[Symbol.asyncDispose]();
      },
    };
    await serveChannel(server, channel, { ...options, lingerMs, signal: stopping.signal });
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

const optionKeys: KeysOf<ServeStreamOptions> = {
  ...serveOptionKeys,
  ...keys("maxLineBytes maxDepth closeMs onStray"),
};

/**
 * Serves MCP on this process's standard input and output. From then on everything else that is written to the standard
 * output, `console.log` included, goes to standard error, because a stray line there would break the protocol; also
 * after it resolved, because a handler may still run. Resolves when the client has closed our input and every request
 * that was read is answered (see {@link serveStream}), or when the client reads no more; the caller then exits.
 *
 * @example
 * await serveStdio(createServer(registry, { name: "weather", version: "1.0.0" }));
 */
export function serveStdio(server: Server, options: ServeStreamOptions = {}): Promise<void> {
  assertKnownKeys("serveStdio", options, optionKeys);
  return serveStream(server, process.stdin, takeStdout(), options);
}

/** Reserves the standard output for messages. */
function takeStdout(): Writable {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  const messages = new Writable({
    decodeStrings: false,
    // The callback comes when the pipe took the chunk, so a slow reader holds up its own writer only.
    write: (chunk: string | Uint8Array, _encoding, done) => void write(chunk, done),
  });
  stdout.on("error", (error: Error) => void messages.destroy(error));
  stdout.write = stderr.write.bind(stderr);
  return messages;
}

export interface ListenTcpOptions extends Omit<ServeStreamOptions, "caller" | "signal"> {
  readonly port: number;
  /** A loopback address; TCP has no authentication, so others are refused. */
  readonly host?: string;
  /** The most clients at once; more are turned away. */
  readonly maxClients?: number;
}

/** Shorter, because a client that hung up looks like one that sends no more requests and still reads. */
const tcpLingerMs = 10_000;

/** A server that accepts clients. Disposing it stops accepting, ends all connections, and waits for their end. */
interface Listener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The same as disposing it, for JavaScript without `await using`. */
  close(): Promise<void>;
}

/**
 * Serves MCP to everyone who connects on a TCP port of this machine, one message a line. When a client ends its side, its
 * requests still run for `lingerMs`, 10 s by default.
 */
export async function listenTcp(server: Server, options: ListenTcpOptions): Promise<Listener> {
  const { host = "127.0.0.1", port, maxClients = 256, ...others } = options;
  const serving = { lingerMs: tcpLingerMs, ...others };
  if (!isLoopback(host)) throw new BindError(host, "TCP has no authentication");
  const stopping = new AbortController();
  // Every client listens to it; Node takes more than ten listeners for a leak.
  setMaxListeners(0, stopping.signal);
  const running = new Set<Promise<void>>();
  const accept = (socket: Socket): void => {
    socket.setNoDelay(true);
    const serve = async (): Promise<void> => {
      if (await beginsLikeJson(socket)) {
        await serveStream(server, socket, socket, { ...serving, signal: stopping.signal });
      } else socket.destroy();
    };
    const settled = serve().catch(() => void socket.destroy());
    running.add(settled);
    void settled.then(() => running.delete(settled));
  };
  const listener = process.getBuiltinModule("node:net").createServer({ allowHalfOpen: true }, accept);
  listener.maxConnections = maxClients;
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, host, resolve);
  });
  const { port: boundPort } = listener.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    stopping.abort();
    await Promise.all(running);
    await closed;
  };
  return { host, port: boundPort, close, [Symbol.asyncDispose]: close };
}

/**
 * Whether the first bytes of a client can be a message. A web page can make a browser send us an HTTP request whose body is a
 * message; such a request begins with `POST`, and gets no answer.
 */
function beginsLikeJson(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve(false));
    const look = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return resolve(true); // It ended without sending anything; serving it ends at once.
      socket.unshift(chunk);
      const first = /\S/.exec(chunk.toString("latin1"))?.[0];
      resolve(first === undefined || first === "{" || first === "[");
    };
    socket.once("readable", look);
  });
}
