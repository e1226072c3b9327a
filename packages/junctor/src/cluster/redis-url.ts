import { StoreError } from "@junctor/core/errors";

/** Where an engine listens, and who we are there. */
export interface EngineAddress {
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
