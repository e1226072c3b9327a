import { keys, type KeysOf } from "@junctor/core/options";
import { httpOptionKeys, type HttpOptions } from "./http-options.ts";
import type { SinkLimits } from "./reply.ts";
import type { TlsOptions } from "./tls.ts";

/** Where `listenHttp` listens, and how it answers. */
export interface ListenHttpOptions extends HttpOptions {
  /** The port to listen on; 7780. 0 picks a free one. */
  readonly port?: number;
  /** Beyond loopback, `authenticate` must be given. */
  readonly host?: string;
  /** Files for TLS; without them the endpoint speaks plain HTTP. Authenticators see client certificates as `request.certificate`. */
  readonly tls?: TlsOptions;
  /** Most bytes that wait for one reader that is behind; 1 MiB. */
  readonly maxBufferBytes?: number;
  /** Most bytes that wait for all readers; 256 MiB. */
  readonly maxUnreadBytes?: number;
  /** How long a reader may take nothing; 60 s. */
  readonly stallMs?: number;
  /** How long a client may take to send its headers. */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send its whole request. */
  readonly requestTimeoutMs?: number;
  /** Most sockets that are open at once; 16,384. */
  readonly maxConnections?: number;
  /**
   * How much memory this process may have, in bytes. Above 80 % of it, or of V8's limit for the heap, callers with many calls
   * are refused with 503 and streams are cut; above 90 % every call is refused. The limit of the container, if there is one.
   */
  readonly maxMemoryBytes?: number;
  /** How long calls in flight may take when the listener is disposed. */
  readonly graceMs?: number;
  /** Called for requests that were refused before they were served. */
  readonly onRefused?: SinkLimits["onRefused"];
}

export const listenHttpOptionKeys: KeysOf<ListenHttpOptions> = {
  ...httpOptionKeys,
  ...keys(
    "port tls maxBufferBytes maxUnreadBytes stallMs headersTimeoutMs requestTimeoutMs maxConnections maxMemoryBytes graceMs onRefused",
  ),
};
