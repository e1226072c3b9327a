import { type Clock, settlesWithin, systemClock } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import type { Channel } from "../jsonrpc/channel.ts";
import type { Handler } from "../jsonrpc/inbound.ts";
import { Peer } from "../jsonrpc/peer.ts";
import { decideEra } from "../mcp/era.ts";
import type { Server } from "../mcp/server.ts";
import { createSession, type Session } from "../mcp/session.ts";

export interface ServeOptions {
  /** Who is at the other end, where the transport knows. */
  readonly caller?: string;
  /** Aborting stops serving, as if the other side had left. */
  readonly signal?: AbortSignal;
  /** How long requests in flight may still run when the input ends, before they are aborted. */
  readonly lingerMs?: number;
  /** How long aborted requests may take to wind down before the channel is closed under them. */
  readonly graceMs?: number;
  readonly maxInFlight?: number;
  readonly clock?: Clock;
  /** Told about input that was dropped. */
  readonly onDropped?: (what: string) => void;
}

/**
 * Serves one channel until the other side leaves or the signal aborts; resolves when the channel is closed. Every
 * message is judged by itself, so clients of both eras may share a pipe.
 */
export async function serveChannel(
  server: Server,
  channel: Channel,
  options: ServeOptions = {},
): Promise<void> {
  const {
    caller,
    signal,
    lingerMs = 250,
    graceMs = 2000,
    maxInFlight,
    clock = systemClock,
    onDropped,
  } = options;
  let session: Session | undefined;
  let detach: (() => void) | undefined;

  const handle: Handler = (request, context) => {
    const era = decideEra(request, { session, serves: server.serves });
    if (era.kind === "refused") return Promise.reject(era.error);
    return server.handle(request, {
      ...context,
      era,
      caller,
      ask: (method, params, askSignal) => peer.request(method, params, { signal: askSignal }),
      beginSession: (handshake) => {
        detach?.();
        session = createSession(handshake);
        detach = server.attach(session, (method, params) => void peer.notify(method, params).catch(() => {}));
      },
    });
  };

  const peer = new Peer(channel, {
    handle,
    acceptsBatch: () => session?.handshake.revision === "2025-03-26",
    parseErrorCode: server.parseErrorCode,
    ...(maxInFlight === undefined ? {} : { maxInFlight }),
    ...(onDropped === undefined ? {} : { dropped: onDropped }),
  });
  const stopped = createDeferred<void>();
  const stop = (): void => stopped.resolve();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    await Promise.race([peer.run(), stopped.promise]);
    await settlesWithin(peer.idle(), lingerMs, clock);
    peer.abort();
    await settlesWithin(peer.idle(), graceMs, clock);
  } finally {
    signal?.removeEventListener("abort", stop);
    detach?.();
    await channel[Symbol.asyncDispose]();
  }
}
