import { setMaxListeners } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { isLoopback } from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import type { Server } from "@junctor/core/mcp";
import { serveStream, type ServeStreamOptions } from "./stream.ts";

export interface ListenTcpOptions extends Omit<ServeStreamOptions, "caller" | "signal"> {
  readonly port: number;
  /** A loopback address; TCP has no authentication, so others are refused. */
  readonly host?: string;
  /** Most clients at once; more are turned away. */
  readonly maxClients?: number;
}

/** A client that hung up looks like one that ended its requests and still reads, so it is not worked for as long. */
const defaultLingerMs = 10_000;

/** A server that accepts clients. Disposing it stops accepting, ends those who are there, and waits for them. */
export interface Listener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The same as disposing it, for those whose JavaScript has no `await using`. */
  close(): Promise<void>;
}

/**
 * Serves MCP to everyone who connects on a TCP port of this machine, one message a line. When a client ends its side, its
 * requests still run for `lingerMs`, 10 s by default.
 */
export async function listenTcp(server: Server, options: ListenTcpOptions): Promise<Listener> {
  const { host = "127.0.0.1", port, maxClients = 256, ...others } = options;
  const serving = { lingerMs: defaultLingerMs, ...others };
  if (!isLoopback(host)) throw new BindError(host, "TCP has no authentication");
  const stopping = new AbortController();
  // Every client listens to it; Node would take more than ten for a leak.
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
 * Whether the first thing a client says can be a message. A web page can make a browser connect and send us a request
 * whose body is one; what begins with `POST` is that, and gets nothing.
 */
function beginsLikeJson(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve(false));
    const look = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return resolve(true); // It said nothing and ended; serving that ends at once.
      socket.unshift(chunk);
      const first = /\S/.exec(chunk.toString("latin1"))?.[0];
      resolve(first === undefined || first === "{" || first === "[");
    };
    socket.once("readable", look);
  });
}
