import { createHash, hkdfSync } from "node:crypto";
import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type RequestOptions,
  type Server as NodeServer,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect as connectSocket, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls, type TlsOptions as NodeTlsOptions, type TLSSocket } from "node:tls";
import type { JsonObject } from "@junctor/core/json";
import type { Caller, Server } from "@junctor/core/mcp";
import { serveStream } from "@junctor/server";
import type { PipedFrom } from "@junctor/server/internal";
import type { Replica, TrunkAddress } from "./membership.ts";

/** Where a trunk is to listen. */
export type TrunkListen =
  | { readonly kind: "socket"; readonly path: string }
  | ({ readonly kind: "tls" } & TrunkConfig);

/** Where a trunk listens for replicas on other machines. */
export interface TrunkConfig {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** The host that other replicas reach it by, if it is not `host`. */
  readonly advertise?: string;
}

/** The work that this replica does for others. */
interface TrunkWork {
  /** Serves a request of a client that another replica let in. */
  readonly pipe: (incoming: IncomingMessage, response: ServerResponse, from: PipedFrom) => void;
  /** A server of this replica, for connections to it; undefined when no server has that name. */
  readonly serverNamed: (name: string) => Server | undefined;
}

/** The connections between this replica and the others. Disposing it ends all of them. */
export interface Trunk extends AsyncDisposable {
  readonly address: TrunkAddress;
  /** Begins to work for other replicas. Until then their requests get 503, and their connections are refused. */
  serve(work: Partial<TrunkWork>): void;
  /** Begins an HTTP request to another replica. Rejects when the replica cannot be reached: nothing was sent then. */
  request(replica: Replica, options: RequestOptions): Promise<ClientRequest>;
  /** Ends all connections to replicas that are gone: those of a stopped process would never end. */
  cutGone(isGone: (id: string) => Promise<boolean>): Promise<void>;
  /** Opens a connection to a server of another replica. */
  openConnection(replica: Replica, server: string, signal: AbortSignal): Promise<Duplex>;
}

interface TrunkOptions {
  readonly listen: TrunkListen;
  /** The id of this replica: a connection that is meant for another one is refused. */
  readonly id?: string;
  /** Needed for TLS; a Unix socket is guarded by its folder. */
  readonly keys: readonly TrunkKey[];
  readonly onWarning: (text: string) => void;
}

const connectionProtocol = "junctor-connection/1";

const refusal = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/**
 * Names the replica that a connection is for. A replica that took over its address must refuse the connection: it would look for the owner
 * without end.
 */
const replicaHeader = "junctor-replica";

/** The most requests, streams and connections to one other replica at the same time. */
const maxForwards = 16_384;

/** The header with the caller has all its scopes and groups: a thousand of each, of 256 characters. */
const maxHeaderSize = 1024 * 1024;

/** How long another replica may take to accept a connection. */
const connectMs = 3000;

/** How long calls may continue after their connection broke: their caller may come back through another replica. */
const lingerMs = 60_000;

/** Listens for the other replicas of the gateway. Nothing else can connect: see {@link TrunkKey}. */
export async function listenTrunk({ listen, keys, id, onWarning }: TrunkOptions): Promise<Trunk> {
  let work: Partial<TrunkWork> = {};
  const listener =
    listen.kind === "tls"
      ? createTlsServer({ ...toTlsSettings(keys), maxHeaderSize })
      : createServer({ maxHeaderSize });
  listener.keepAliveTimeout = 65_000;
  // Bodies come as fast as their clients send them, and answers may take as long as a call may.
  listener.requestTimeout = 0;
  listener.on("request", (incoming, response) => {
    const from = fromCallerHeader(incoming.headers);
    if (from === undefined || work.pipe === undefined) response.writeHead(503).end();
    else work.pipe(incoming, response, from);
  });
  listener.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { upgrade, [replicaHeader]: wanted = id } = incoming.headers;
    const server = upgrade === connectionProtocol && wanted === id ? serverAt(incoming.url, work) : undefined;
    // The other replica may have left meanwhile. An error without a listener would end this process.
    if (server === undefined) return void socket.on("error", () => {}).end(refusal);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${connectionProtocol}\r\n\r\n`,
    );
    if (head.length > 0) socket.unshift(head);
    serveStream(server, socket, socket, { lingerMs, stopMs: lingerMs, maxInFlight: 4096 }).catch(
      (error: unknown) => onWarning(`A connection of another replica broke: ${String(error)}`),
    );
  });
  listener.on("tlsClientError", (error) => {
    const code = String((error as NodeJS.ErrnoException).code);
    // A replica that is cut off while it connects may have the secret.
    if (isKeyTrouble(code)) onWarning(`A program without the secret tried to reach the trunk: ${code}`);
  });
  await listenAt(listener, listen);
  const sockets = new Set<Socket>();
  listener.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const agent = createTrunkAgent(keys);
  const open = new Map<string, Set<Socket>>();
  const ask = async (replica: Replica, options: RequestOptions): Promise<ClientRequest> => {
    if ((open.get(replica.id)?.size ?? 0) >= maxForwards)
      throw new Error(`more than ${maxForwards} connections to one replica`);
    const outgoing = request({ ...toDestination(replica.address), ...options, agent });
    let failure: Error | undefined;
    // A kept connection may break at the first write, before the caller can listen.
    outgoing.on("error", (error) => (failure ??= error));
    remember(open, replica.id, await untilConnected(outgoing));
    if (failure !== undefined) throw failure;
    return outgoing;
  };
  return {
    address: toAddress(listen, listener),
    serve: (more) => {
      work = { ...work, ...more };
    },
    request: ask,
    openConnection: async (replica, server, signal) => {
      const path = `/connection/${encodeURIComponent(server)}`;
      const headers = { connection: "Upgrade", upgrade: connectionProtocol, [replicaHeader]: replica.id };
      const outgoing = await ask(replica, { path, headers, signal });
      return untilUpgraded(outgoing, server);
    },
    cutGone: async (isGone) => {
      for (const [id, toReplica] of open)
        if (await isGone(id))
          for (const socket of toReplica) socket.destroy(new Error("the replica is gone"));
    },
    [Symbol.asyncDispose]: async () => {
      agent.destroy();
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function serverAt(url: string | undefined, { serverNamed }: Partial<TrunkWork>): Server | undefined {
  const name = /^\/connection\/([^/?]+)$/.exec(url ?? "")?.[1];
  try {
    return name === undefined ? undefined : serverNamed?.(decodeURIComponent(name));
  } catch {
    return undefined; // Not percent-encoded UTF-8.
  }
}

function listenAt(listener: NodeServer, listen: TrunkListen): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    const { kind: _, ...where } = listen;
    // Otherwise the workers of `node:cluster` would share it.
    listener.listen({ ...where, exclusive: true }, resolve);
  });
}

function toAddress(listen: TrunkListen, listener: NodeServer): TrunkAddress {
  if (listen.kind === "socket") return listen;
  const { port } = listener.address() as AddressInfo;
  return { kind: "tls", host: listen.advertise ?? listen.host, port };
}

function toDestination(address: TrunkAddress): RequestOptions {
  // Node includes the host in the name under which it keeps connections.
  return address.kind === "socket"
    ? { host: "trunk", socketPath: address.path }
    : { host: address.host, port: address.port };
}

/** Makes and keeps connections to other replicas. With several keys, each is tried until the other side has it. */
function createTrunkAgent(keys: readonly TrunkKey[]): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity, timeout: 0 });
  const connect = async ({ socketPath, host, port }: RequestOptions): Promise<Socket> => {
    if (typeof socketPath === "string") return connected(connectSocket(socketPath), "connect");
    let refusal: unknown = new Error("there is no secret to prove who we are");
    for (const key of keys) {
      try {
        return await connected(connectWithKey(String(host), Number(port), key), "secureConnect");
      } catch (error) {
        refusal = error;
        // Only a key that the other side does not have is a reason to try another one.
        if (!isKeyTrouble((error as NodeJS.ErrnoException).code ?? "")) break;
      }
    }
    throw refusal;
  };
  agent.createConnection = ((
    options: RequestOptions,
    done: (error: Error | null, socket?: Socket) => void,
  ) => {
    connect(options).then(
      (socket) => done(null, socket),
      (error: unknown) => done(error as Error),
    );
  }) as typeof agent.createConnection;
  return agent;
}

function connected(socket: Socket, event: "connect" | "secureConnect"): Promise<Socket> {
  socket.setNoDelay(true);
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(connectMs, () => fail(new Error(`no answer within ${connectMs / 1000} s`)));
    const closed = (): void => fail(new Error("the connection was closed while it was made"));
    socket.once("error", fail);
    socket.once("close", closed);
    socket.once(event, () => {
      socket.setTimeout(0);
      socket.off("error", fail);
      socket.off("close", closed);
      resolve(socket);
    });
  });
}

/** Keeps a connection among those to a replica until it is closed. A connection that is used again is known already. */
function remember(open: Map<string, Set<Socket>>, id: string, socket: Socket): void {
  const known = open.get(id) ?? new Set();
  if (known.has(socket)) return;
  open.set(id, known.add(socket));
  socket.once("close", () => {
    known.delete(socket);
    if (known.size === 0) open.delete(id);
  });
}

/** Whether TLS failed because the two sides do not have the same key. */
function isKeyTrouble(code: string): boolean {
  return /^(?:EPROTO$|ERR_SSL_)/.test(code);
}

/** Waits until a request has a connection: before that, nothing of it can have been sent. */
function untilConnected(outgoing: ClientRequest): Promise<Socket> {
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("socket", (socket: Socket) => {
      outgoing.off("error", reject);
      resolve(socket);
    });
    outgoing.flushHeaders();
  });
}

function untilUpgraded(outgoing: ClientRequest, server: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    // A suspended process accepts connections, and never answers.
    outgoing.setTimeout(connectMs, () =>
      outgoing.destroy(new Error(`no answer within ${connectMs / 1000} s`)),
    );
    outgoing.once("upgrade", (_answer, socket, head) => {
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    outgoing.once("response", (answer) => {
      answer.resume();
      reject(new Error(`the other replica has no server ${server} (status ${answer.statusCode})`));
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}

/** A key that two replicas with the same secret share. */
interface TrunkKey {
  /** The name of the key on the wire, which reveals nothing about the key. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The keys of trunks, from the secrets of the gateway: the first is used, all of them are accepted. */
export function toTrunkKeys(secrets: readonly string[]): readonly TrunkKey[] {
  return secrets.map((secret) => {
    const bytes = Buffer.from(hkdfSync("sha256", secret, "", "junctor/trunk/v1", 32));
    return { name: `junctor-${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}`, bytes };
  });
}

/** TLS 1.3 with a shared key proves both sides and has forward secrecy, without certificates. */
const cipher = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const;

/** The settings of a listener that lets in replicas with one of these keys, and nothing else. */
function toTlsSettings(keys: readonly TrunkKey[]): NodeTlsOptions {
  return {
    ...cipher,
    pskCallback: (_socket, name) => keys.find((key) => key.name === name)?.bytes ?? null,
  };
}

/** Connects to the trunk of another replica with one of our keys. Fails when the other side does not have it. */
function connectWithKey(host: string, port: number, key: TrunkKey): TLSSocket {
  return connectTls({
    ...cipher,
    host,
    port,
    pskCallback: () => ({ psk: key.bytes, identity: key.name }),
    // With the key agreed on there is no certificate. A server that shows one does not have the key, whichever authority signed it.
    checkServerIdentity: (_host, certificate) =>
      Object.keys(certificate ?? {}).length === 0
        ? undefined
        : new Error("a certificate in place of the key"),
  });
}

/** The header of a piped request that says who its sender is. Trusted, because nothing but a replica reaches a trunk. */
const callerHeader = "junctor-caller";

export function toCallerHeader(from: PipedFrom): { readonly [name: string]: string } {
  return { [callerHeader]: Buffer.from(JSON.stringify(from)).toString("base64url") };
}

/** Undefined for a request that does not come from a replica. */
function fromCallerHeader(headers: JsonObject): PipedFrom | undefined {
  const text = headers[callerHeader];
  if (typeof text !== "string") return undefined;
  try {
    const {
      identity,
      address,
      hops = 1,
      isMending = false,
    } = JSON.parse(Buffer.from(text, "base64url").toString()) as PipedFrom;
    return { identity: isCaller(identity) ? identity : undefined, address, hops, isMending };
  } catch {
    return undefined;
  }
}

export function isCaller(value: unknown): value is Caller {
  return typeof value === "object" && value !== null && typeof (value as Caller).name === "string";
}
