import { type Clock, createBackoff, sleep, timedOut, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";

/** The part of `@redis/client` that is used. */
export interface EngineClient {
  connect(): Promise<unknown>;
  sendCommand(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** Closes the socket and rejects all that waits. */
  destroy(): void;
  readonly isOpen: boolean;
  on(event: "error" | "end", listener: (error?: Error) => void): unknown;
}

interface RedisConnectionOptions {
  readonly address: EngineAddress;
  readonly createClient: (options: object) => EngineClient;
  /** Runs on each new connection before it is used. */
  readonly prepare: (client: EngineClient) => Promise<void>;
  readonly clock: Clock;
  /** How long an operation may take. */
  readonly operationMs: number;
}

/** How long a first connection is tried, so that a gateway and its engine may be started together. */
const firstMs = 10_000;

/** One connection to an engine, which is opened anew whenever it is lost. */
export class RedisConnection implements AsyncDisposable {
  readonly #options: RedisConnectionOptions;
  readonly #closing = new AbortController();
  #client: EngineClient | undefined;
  #trouble: StoreError;
  #kept: Promise<void> | undefined;
  #inFlight = 0;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#trouble = this.#unreachable("is not connected yet");
  }

  /** Opens the first connection, and keeps one open from then on. Rejects when the engine refuses us or is not there. */
  async open(): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + firstMs;
    for (;;) {
      try {
        const first = await this.#connect();
        this.#kept = this.#keep(first);
        return;
      } catch (error) {
        const isHopeless = !(error instanceof StoreError) || error.code !== "store.unreachable";
        if (isHopeless || clock.now() >= until) throw error;
        await sleep(250, clock);
      }
    }
  }

  /**
   * Sends one command.
   *
   * @throws StoreError `store.unreachable` when it is not known whether it was done, `store.refused` when the engine says no
   */
  async send(args: readonly string[]): Promise<unknown> {
    const { clock, operationMs } = this.#options;
    const client = this.#client;
    if (client === undefined) throw this.#trouble;
    if (this.#inFlight >= maxInFlight)
      throw new StoreError("store.full", `${maxInFlight} operations wait for the store, which is the most`);
    let reply: unknown;
    this.#inFlight += 1;
    try {
      reply = await waitFor(client.sendCommand(args), { ms: operationMs, clock });
    } catch (error) {
      // A copy takes no writes. The name of the engine may mean another machine by now, which only a new connection reaches.
      if (error instanceof Error && error.message.startsWith("READONLY")) close(client);
      throw this.#toStoreError(error);
    } finally {
      this.#inFlight -= 1;
    }
    if (reply !== timedOut) return reply;
    // The machine may be gone without a word; only another connection can tell.
    close(client);
    throw this.#unreachable(`did not answer within ${operationMs / 1000} s`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#trouble = this.#unreachable("was left: the store is closed");
    close(this.#client);
    this.#client = undefined;
    await this.#kept;
  }

  async #keep(first: Connected): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    const backoff = createBackoff({ minMs: 100, maxMs: 2_000 });
    let connected: Connected | undefined = first;
    while (!signal.aborted) {
      if (connected !== undefined) {
        this.#client = connected.client;
        backoff.reset();
        const error = await connected.lost;
        close(connected.client);
        this.#client = undefined;
        if (signal.aborted) return;
        this.#trouble = error;
      }
      await sleep(backoff.next(), clock, signal).catch(() => {});
      if (signal.aborted) return;
      connected = await this.#connect().catch((error: unknown) => {
        this.#trouble = this.#toStoreError(error);
        return undefined;
      });
    }
    close(connected?.client);
  }

  async #connect(): Promise<Connected> {
    const { address, createClient, prepare, clock, operationMs } = this.#options;
    const { username, password, database } = address;
    const client = createClient({
      RESP: 2,
      socket: { ...address.socket, connectTimeout: operationMs, reconnectStrategy: false },
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      database,
      // With it, the client makes an AbortSignal for every command.
      commandOptions: { timeout: 0 },
      disableOfflineQueue: true,
      disableClientInfo: true,
      maintNotifications: "disabled",
    });
    const lost = new Promise<StoreError>((resolve) => {
      client.on("error", (error) => resolve(this.#toStoreError(error)));
      client.on("end", () => resolve(this.#unreachable("does not answer")));
    });
    const work = client.connect().then(() => prepare(client));
    try {
      const done = await waitFor(work, { ms: operationMs, clock, signal: this.#closing.signal });
      if (done === timedOut) throw this.#unreachable(`did not answer within ${operationMs / 1000} s`);
      return { client, lost };
    } catch (error) {
      close(client);
      throw this.#closing.signal.aborted ? this.#trouble : this.#toStoreError(error);
    }
  }

  /** No cause is kept: the engine may repeat what it was sent, the password included. */
  #toStoreError(error: unknown): StoreError {
    if (error instanceof StoreError) return error;
    const { message, code } = Object(error) as { message?: unknown; code?: unknown };
    const text = this.#hide(typeof message === "string" ? message : "it failed");
    if (typeof code === "string" && /CERT|TLS|SSL|SIGNATURE/u.test(code))
      return new StoreError(
        "store.refused",
        `The store at ${describeEngine(this.#options.address)} is not trusted: ${code}`,
      );
    if (typeof code !== "string" && /^[A-Z]{2,}\b/u.test(text))
      return new StoreError(
        "store.refused",
        `The store at ${describeEngine(this.#options.address)} refused: ${text}`,
      );
    return this.#unreachable(`cannot be reached: ${typeof code === "string" ? code : text}`);
  }

  #hide(text: string): string {
    const { password, username } = this.#options.address;
    const short = text.replace(/,? with args beginning with.*$/su, "").slice(0, 200);
    return [password, username].reduce<string>(
      (hidden, secret) => (secret === undefined ? hidden : hidden.replaceAll(secret, "…")),
      short,
    );
  }

  #unreachable(why: string): StoreError {
    return new StoreError(
      "store.unreachable",
      `The store at ${describeEngine(this.#options.address)} ${why}`,
    );
  }
}

interface Connected {
  readonly client: EngineClient;
  /** Resolves when the connection is lost. */
  readonly lost: Promise<StoreError>;
}

const maxInFlight = 1024;

function close(client: EngineClient | undefined): void {
  if (client?.isOpen === true) client.destroy();
}

/** Where an engine listens, and who we are there. */
interface EngineAddress {
  readonly socket:
    | { readonly host: string; readonly port: number; readonly tls: boolean }
    | { readonly path: string; readonly tls: false };
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

const schemes = ["redis:", "rediss:", "valkey:", "valkeys:", "unix:"];

/**
 * Reads the URL of a store: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, `valkey` instead of `redis`,
 * or `unix:///path/of/socket[?db=database]`. It may have a password in it, so no error repeats it.
 *
 * @throws StoreError `store.invalid`
 */
export function parseStoreUrl(text: string): EngineAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !schemes.includes(url.protocol) || url.hash !== "")
    throw invalid(
      "must be a URL such as redis://host:6379, rediss://user:password@host:6380/0 or unix:///run/redis.sock",
    );
  const username = url.username === "" ? undefined : decode(url.username, "user");
  const password = url.password === "" ? undefined : decode(url.password, "password");
  const isSocket = url.protocol === "unix:";
  const database = toDatabase(isSocket ? (url.searchParams.get("db") ?? "") : url.pathname.slice(1));
  if (isSocket) {
    if (url.pathname === "" || url.pathname === "/")
      throw invalid("has no path of a socket: write unix:///run/redis.sock");
    return { socket: { path: decode(url.pathname, "path"), tls: false }, username, password, database };
  }
  if (url.search !== "") throw invalid("must have no part after ?");
  const host = url.hostname.replace(/^\[(.*)\]$/u, "$1");
  if (host === "") throw invalid("names no host: write redis://host:6379");
  const tls = url.protocol === "rediss:" || url.protocol === "valkeys:";
  const port = url.port === "" ? 6379 : Number(url.port);
  return { socket: { host, port, tls }, username, password, database };
}

/** The address without anything secret, for people. */
export function describeEngine({ socket }: EngineAddress): string {
  if ("path" in socket) return socket.path;
  return `${socket.host.includes(":") ? `[${socket.host}]` : socket.host}:${socket.port}`;
}

function toDatabase(text: string): number {
  if (text === "") return 0;
  if (/^\d{1,5}$/u.test(text)) return Number(text);
  throw invalid("must have the number of a database at its end, or nothing");
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(`has a % in its ${what} that begins no escape: write %25`);
  }
}

function invalid(why: string): StoreError {
  return new StoreError("store.invalid", `The URL of the store ${why}`);
}
