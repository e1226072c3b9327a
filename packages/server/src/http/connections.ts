import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import { Quota } from "@junctor/core/async";

/** One connection of a listener. */
interface Connection {
  readonly address: string | undefined;
  /** The response to its newest request; undefined before the first one. */
  newest: ServerResponse | undefined;
  close(): void;
}

/** Node's settings for how long a client may take to send the headers, and the whole request. 0 means no limit. */
export function toTimeouts(
  headersTimeout: number,
  requestTimeout: number,
): {
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly connectionsCheckingInterval: number;
} {
  const limits = [headersTimeout, requestTimeout].filter((ms) => ms > 0);
  // By default Node looks for late clients every 30 s, so a limit of 10 s would become one of 40 s.
  return { headersTimeout, requestTimeout, connectionsCheckingInterval: Math.min(...limits, 1000) };
}

/**
 * Limits the connections of a listener, fairly by address. At the limit, a new connection replaces the oldest one with an unfinished
 * request, or else the oldest idle one, of the address that holds most or of its own. So a client that sends incomplete requests locks
 * out nobody, not even others at its address. If all of those are busy, the new connection is refused. Call it after adding all other
 * handlers.
 */
export function limitConnections(listener: Server, total: number): void {
  const quota = new Quota<string | undefined>({ what: "connections", total });
  /** Oldest first. */
  const open = new Set<Connection>();
  /** By the socket that requests come from, which with TLS is not the one that was accepted. */
  const bySocket = new WeakMap<object, Connection>();
  /** By address and port: connections whose TLS handshake is not complete. */
  const shakingHands = new Map<string, Connection>();
  const isTls = listener instanceof TlsServer;

  const hasRoom = (address: string | undefined): boolean => quota.refusal(address) === undefined;
  const makeRoom = (address: string | undefined): void => {
    for (const owner of [quota.greediest(), address]) if (!hasRoom(address)) findUnused(open, owner)?.close();
  };

  listener.on("connection", (socket: Socket) => {
    const { remoteAddress: address } = socket;
    const name = nameOf(socket);
    if (!hasRoom(address)) makeRoom(address);
    if (!hasRoom(address)) return void socket.destroy();
    const forget = (): void => {
      if (!open.delete(connection)) return;
      quota.give(address);
      if (shakingHands.get(name) === connection) shakingHands.delete(name);
    };
    const close = (): void => {
      // Frees its place now: the event `close` comes too late for the new connection.
      forget();
      socket.destroy();
    };
    const connection: Connection = { address, newest: undefined, close };
    quota.add(address);
    open.add(connection);
    if (isTls) shakingHands.set(name, connection);
    else bySocket.set(socket, connection);
    socket.once("close", forget);
  });
  listener.on("secureConnection", (socket: Socket) => {
    const name = nameOf(socket);
    const connection = shakingHands.get(name);
    shakingHands.delete(name);
    if (connection !== undefined) bySocket.set(socket, connection);
  });
  for (const event of ["request", "checkContinue"]) {
    // Adding the first handler of `checkContinue` would switch off what Node does by default.
    if (listener.listenerCount(event) === 0) continue;
    listener.prependListener(event, ({ socket }: IncomingMessage, response: ServerResponse) => {
      const connection = bySocket.get(socket);
      if (connection !== undefined) connection.newest = response;
    });
  }
}

/** The oldest connection of an address whose request is unfinished, or else its oldest idle one. */
function findUnused(open: Iterable<Connection>, address: string | undefined): Connection | undefined {
  let idle: Connection | undefined;
  for (const connection of open) {
    if (connection.address !== address) continue;
    const state = stateOf(connection);
    if (state === "unfinished") return connection;
    if (state === "idle") idle ??= connection;
  }
  return idle;
}

function stateOf({ newest }: Connection): "unfinished" | "busy" | "idle" {
  if (newest === undefined || !newest.req.complete) return "unfinished";
  return newest.writableFinished || newest.destroyed ? "idle" : "busy";
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
