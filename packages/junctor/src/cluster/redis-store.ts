import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { type Clock, createBackoff, sleep, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import {
  assertKey,
  assertKeys,
  assertLimit,
  assertTtl,
  assertValue,
  type ClusterStore,
  storeBounds,
} from "./store.ts";

interface RedisStoreOptions {
  /** `redis://…`, `rediss://…` or `unix://…`; see {@link parseStoreUrl}. */
  readonly url: string;
  /** The secrets that all replicas have: values, registrations and news are signed with the first, and accepted with any of them. */
  readonly secrets: readonly string[];
  /** The start of all keys and channels, so that several gateways can share an engine. `junctor:` by default. */
  readonly prefix?: string;
  readonly clock?: Clock;
  /** The time of limits. The engine's own by default, because the clocks of replicas differ. */
  readonly limitClock?: Pick<Clock, "now">;
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/** How long an operation may take before the engine counts as gone. */
const operationMs = 5_000;

/**
 * Keeps the facts of replicas in Valkey or Redis, over two connections: one for commands, one for news. A lost connection is
 * opened again; until then operations reject. The engine must not evict keys (`noeviction`).
 *
 * Values, registrations and news that are not signed with a secret of the replicas count as absent. Leases and limits are not signed:
 * a program that may write to the engine could also delete them.
 *
 * @throws StoreError when the URL is wrong, `@redis/client` is missing, or the engine cannot be reached for 10 s
 */
export async function connectRedisStore(options: RedisStoreOptions): Promise<ClusterStore> {
  const { url, secrets, prefix = "junctor:", clock = systemClock, limitClock, onWarning } = options;
  const address = parseStoreUrl(url);
  const createClient = await loadClient();
  const listeners = new Set<(news: string) => void>();
  // Channels are of the whole engine, not of a database.
  const channel = address.database === 0 ? `${prefix}news` : `${prefix}news:${address.database}`;
  const signer = createFactSigner(secrets);
  /** The kinds of facts that were ignored: one warning for each, because whatever writes them could fill the log. */
  const ignored = new Set<string>();
  const ignore = (what: string): void => {
    if (!ignored.has(what)) onWarning?.(`${what} in the store is ignored: ${notSigned}`);
    ignored.add(what);
  };
  const receive = (signed: string): void => {
    const isShort = signed.length <= storeBounds.value + signatureLength;
    const news = isShort ? signer.open(channel, signed) : undefined;
    if (news === undefined) return ignore("news");
    for (const listener of listeners) {
      try {
        listener(news);
      } catch (error) {
        onWarning?.("news from another replica could not be used", error);
      }
    }
  };
  const age = new EngineAge(clock);
  const shared = { address, createClient, clock, operationMs };
  const commands = new RedisConnection({ ...shared, prepare: (client) => age.learn(client) });
  const news = new RedisConnection({
    ...shared,
    prepare: async (client) => void (await client.subscribe(channel, receive)),
  });
  try {
    await commands.open();
    await news.open();
  } catch (error) {
    await commands[Symbol.asyncDispose]();
    throw error;
  }
  const store = createOperations(commands, { prefix, channel, age, signer, limitClock, ignore });
  return {
    ...store,
    onNews: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.asyncDispose]: async () => {
      listeners.clear();
      await Promise.all([commands[Symbol.asyncDispose](), news[Symbol.asyncDispose]()]);
    },
  };
}

interface OperationParts {
  readonly prefix: string;
  readonly channel: string;
  readonly age: EngineAge;
  readonly signer: FactSigner;
  readonly limitClock: RedisStoreOptions["limitClock"] | undefined;
  /** Reports a fact that was not signed. */
  readonly ignore: (what: string) => void;
}

const notSigned =
  "it is not signed with JUNCTOR_SECRET. Another program writes to the store, or a replica has another secret: set the same for all";

function createOperations(
  connection: RedisConnection,
  { prefix, channel, age, signer, limitClock, ignore }: OperationParts,
): Omit<ClusterStore, "onNews" | typeof Symbol.asyncDispose> {
  const run = (script: EngineScript, keys: readonly string[], args: readonly unknown[]): Promise<unknown> =>
    runScript(
      connection,
      script,
      keys.map((key) => prefix + key),
      args.map(String),
    );
  return {
    claim: async (key, holder, ttlMs) => {
      assertKey(key);
      assertKey(holder, "The holder");
      assertTtl(ttlMs);
      age.assertOlder(ttlMs);
      return String(await run(claimScript, [key], [holder, ttlMs]));
    },
    renew: async (keys, holder, ttlMs) => {
      assertKeys(keys);
      assertKey(holder, "The holder");
      assertTtl(ttlMs);
      if (keys.length === 0) return [];
      const kept = (await run(renewScript, keys, [holder, ttlMs])) as readonly unknown[];
      return kept.map((one) => one === 1);
    },
    release: async (key, holder) => void (await run(releaseScript, [key], [holder])),
    read: async (key) => {
      const value = (await connection.send(["GET", prefix + key])) as string | null;
      return value === null ? undefined : signer.open(prefix + key, value);
    },
    write: async (key, value, ttlMs) => {
      assertKey(key);
      assertValue(value);
      assertTtl(ttlMs);
      const signed = signer.sign(prefix + key, value);
      await connection.send(["SET", prefix + key, signed, "PX", String(ttlMs)]);
    },
    register: async (id, facts, ttlMs) => {
      assertKey(id, "The id of the replica");
      assertValue(facts, "The facts of the replica");
      assertTtl(ttlMs);
      const start = `${prefix}replica:`;
      const args = [id, signer.sign(start + id, facts), ttlMs, start];
      const found = (await run(registerScript, ["replicas"], args)) as readonly string[];
      const replicas = new Map<string, string>();
      for (let at = 0; at + 1 < found.length; at += 2) {
        const [other = "", signed = ""] = found.slice(at, at + 2);
        const known = signer.open(start + other, signed);
        if (known === undefined) ignore("the registration of a replica");
        else replicas.set(other, known);
      }
      return replicas;
    },
    isYoung: (ms) => age.leftMs(ms) > 0,
    unregister: async (id) => void (await connection.send(["DEL", `${prefix}replica:${id}`])),
    take: async (limit, count) => {
      assertLimit(limit, count);
      const { key, everyMs, burst } = limit;
      const time = limitClock === undefined ? [] : [limitClock.now()];
      const args = [everyMs, burst, count, ...time];
      const [granted, waitMs] = (await run(takeScript, [key], args)) as readonly number[];
      return { count: granted ?? 0, waitMs: waitMs ?? 0 };
    },
    publish: async (news) => {
      assertValue(news, "News");
      await connection.send(["PUBLISH", channel, signer.sign(channel, news)]);
    },
  };
}

/**
 * How long the engine has been running. An engine that was restarted has lost leases, or has those of an old copy. Their holders count
 * themselves in until they notice, so no other replica may have them before that.
 */
class EngineAge {
  readonly #clock: Clock;
  /** The latest moment at which it can have been started. */
  #startedAt = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async learn(client: EngineClient): Promise<void> {
    const asked = this.#clock.now();
    const info = String(await client.sendCommand(["INFO", "server"]));
    const seconds = Number(/^uptime_in_seconds:(\d+)/mu.exec(info)?.[1] ?? 0);
    // The engine counts whole seconds of its wall clock.
    this.#startedAt = asked - Math.max(0, seconds - 1) * 1000;
  }

  /** How long it takes until the engine is as old as this; 0 or less when it is. */
  leftMs(ms: number): number {
    return this.#startedAt + ms - this.#clock.now();
  }

  assertOlder(ms: number): void {
    const leftMs = this.leftMs(ms);
    if (leftMs <= 0) return;
    const seconds = Math.ceil(leftMs / 1000);
    throw new StoreError(
      "store.starting",
      `The store was started a moment ago and gives leases again in ${seconds} s`,
    );
  }
}

async function loadClient(): Promise<(options: object) => EngineClient> {
  try {
    const { createClient } = await import("@redis/client");
    return createClient;
  } catch (error) {
    const text =
      "A store is named, and the package that speaks to it is missing: npm install @redis/client@6";
    throw new StoreError("store.client_missing", text, { cause: error });
  }
}

/** A script that the engine runs as one step. */
interface EngineScript {
  readonly text: string;
  readonly sha: string;
}

function defineScript(text: string): EngineScript {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** KEYS: the lease. ARGV: holder, time to live. Returns the holder. */
const claimScript: EngineScript = defineScript(`
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return ARGV[1]`);

/** KEYS: leases. ARGV: holder, time to live. Returns 1 for each that the holder has, 0 for others. */
const renewScript: EngineScript = defineScript(`
local kept = {}
for index, key in ipairs(KEYS) do
  local holder = redis.call("GET", key)
  if holder and holder ~= ARGV[1] then
    kept[index] = 0
  else
    redis.call("SET", key, ARGV[1], "PX", ARGV[2])
    kept[index] = 1
  end
end
return kept`);

/** KEYS: the lease. ARGV: holder. */
const releaseScript: EngineScript = defineScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("DEL", KEYS[1]) end
return 0`);

/**
 * KEYS: the set of all ids. ARGV: id, facts, time to live, the start of the keys with the facts. Returns ids and facts in turn, and removes
 * ids from the set whose facts have expired.
 */
const registerScript: EngineScript = defineScript(`
redis.call("SET", ARGV[4] .. ARGV[1], ARGV[2], "PX", ARGV[3])
redis.call("SADD", KEYS[1], ARGV[1])
local found = {}
for _, id in ipairs(redis.call("SMEMBERS", KEYS[1])) do
  local facts = redis.call("GET", ARGV[4] .. id)
  if facts then
    found[#found + 1] = id
    found[#found + 1] = facts
  else
    redis.call("SREM", KEYS[1], id)
  end
end
return found`);

/**
 * KEYS: the limit. ARGV: milliseconds a token, burst, count, and the time if it is not the engine's. Does the same as `takeTokens` of the
 * memory store.
 */
const takeScript: EngineScript = defineScript(`
local every, burst, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(ARGV[4])
if not now then
  local time = redis.call("TIME")
  now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
end
local span = every * burst
local start = math.min(math.max(tonumber(redis.call("GET", KEYS[1]) or now), now), now + span)
local there = math.floor((now + span - start) / every + 1e-6)
local given = math.max(0, math.min(count, there))
if given == 0 then return {0, math.max(1, math.ceil(start + every - now - span))} end
local free = start + given * every
redis.call("SET", KEYS[1], string.format("%.17g", free), "PX", math.max(1, math.ceil(free - now)))
return {given, 0}`);

/** Runs a script. The engine is sent its text only when it does not know it yet. */
async function runScript(
  connection: RedisConnection,
  { text, sha }: EngineScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args];
  try {
    return await connection.send(["EVALSHA", sha, ...rest]);
  } catch (error) {
    if (!(error instanceof StoreError && error.message.includes("NOSCRIPT"))) throw error;
    return connection.send(["EVAL", text, ...rest]);
  }
}

/** Signs the facts that replicas write to an engine, so that those of other programs are ignored. */
interface FactSigner {
  /** The text with a signature, which is valid for this place only: a key or a channel. */
  sign(place: string, text: string): string;
  /** The text without its signature; undefined when no process with one of the secrets signed it for this place. */
  open(place: string, signed: string): string | undefined;
}

/** The characters that a signature adds to a text. */
const signatureLength = 44;

/** Signs with the first secret, and accepts the signatures of all of them. */
function createFactSigner(secrets: readonly string[]): FactSigner {
  const keys = secrets.map((secret) => Buffer.from(hkdfSync("sha256", secret, "", "junctor/store/v1", 32)));
  const [first] = keys;
  if (first === undefined) throw new TypeError("a signer needs a secret");
  return {
    sign: (place, text) => `${signatureOf(first, place, text).toString("base64url")}.${text}`,
    open: (place, signed) => {
      if (signed[signatureLength - 1] !== ".") return undefined;
      const signature = Buffer.from(signed.slice(0, signatureLength - 1), "base64url");
      const text = signed.slice(signatureLength);
      const isGood = keys.some((key) => {
        const expected = signatureOf(key, place, text);
        return expected.length === signature.length && timingSafeEqual(expected, signature);
      });
      return isGood ? text : undefined;
    },
  };
}

function signatureOf(key: Buffer, place: string, text: string): Buffer {
  return createHmac("sha256", key)
    .update(JSON.stringify([place, text]))
    .digest();
}

/** The part of `@redis/client` that is used. */
interface EngineClient {
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

/** One connection to an engine, which is opened again whenever it is lost. */
class RedisConnection implements AsyncDisposable {
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
    // The machine may be gone without notice; only another connection can tell.
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
      // With a timeout, the client would make an AbortSignal for every command.
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

/** Where an engine listens, and our account there. */
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
