import { type Clock, systemClock, waitFor, createDeferred, LazyAbort } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import {
  type Caller,
  decideEra,
  isLegalBatch,
  type Server,
  type WireContext,
  type Announce,
  type Handshake,
  type Session,
  createSession,
} from "../mcp/index.ts";
import { keys, type KeysOf } from "../options/index.ts";
import { type Channel, type Handler, type PeerContext, Peer } from "../rpc/index.ts";

export interface ServeOptions {
  /** Who is at the other end, where the transport knows. */
  readonly caller?: string;
  /** The same caller with all that is known of it; `caller` is its name. */
  readonly identity?: Caller | undefined;
  /** The owner that quotas count its requests for; the caller, else the channel itself. */
  readonly owner?: unknown;
  /** Aborting stops serving: requests in flight have `stopMs` to end, then they are aborted and answered with an error. */
  readonly signal?: AbortSignal;
  /** Aborting refuses requests from now on, and stops serving when those in flight are answered. */
  readonly drain?: AbortSignal;
  /**
   * How long requests in flight may still run when the input ends, before they are aborted. 250 ms by default; 10 minutes
   * on byte streams, where a client may end its requests and still read the answers; 10 s on TCP.
   */
  readonly lingerMs?: number;
  /** How long requests in flight may still run when `signal` aborts; 250 ms by default. */
  readonly stopMs?: number;
  /** How long aborted requests may take to wind down before the channel is closed under them. */
  readonly graceMs?: number;
  readonly maxInFlight?: number;
  readonly clock?: Clock;
  /** Called for input that was dropped. */
  readonly onDropped?: (what: string) => void;
}

export const serveOptionKeys: KeysOf<ServeOptions> = keys(
  "caller identity owner signal drain lingerMs stopMs graceMs maxInFlight clock onDropped",
);

/**
 * Serves one channel until the other side leaves or a signal aborts; resolves when the channel is closed.
 * Every message is judged by itself, so clients of both eras may share a channel.
 */
export async function serveChannel(
  server: Server,
  channel: Channel,
  options: ServeOptions = {},
): Promise<void> {
  const { signal, drain, lingerMs = 250, stopMs = 250, graceMs = 2000, clock = systemClock } = options;
  const inputEnd = new LazyAbort();
  const { peer, detach } = connectPeer(server, channel, inputEnd, { ...options, clock });
  const stopped = createDeferred<void>();
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    stopped.resolve();
  };
  const stopWhenIdle = (): void => {
    peer.stop();
    void peer.idle().then(stop);
  };
  signal?.addEventListener("abort", stop, { once: true });
  drain?.addEventListener("abort", stopWhenIdle, { once: true });
  if (signal?.aborted === true) stop();
  if (drain?.aborted === true) stopWhenIdle();
  try {
    await Promise.race([peer.run(), stopped.promise]);
    peer.stop();
    inputEnd.abort(new ClosedError("not_sent", "the client sends nothing more"));
    const idle = peer.idle();
    await waitFor(Promise.race([idle, stopped.promise]), { ms: lingerMs, clock });
    if (isStopped) await waitFor(idle, { ms: stopMs, clock });
    peer.abort(givenUp());
    await waitFor(idle, { ms: graceMs, clock });
  } finally {
    signal?.removeEventListener("abort", stop);
    drain?.removeEventListener("abort", stopWhenIdle);
    detach();
    await channel[Symbol.asyncDispose]();
  }
}

/**
 * Has the server answer the messages of a channel. A legacy client gets its announcements
 * until `detach` is called.
 */
function connectPeer(
  server: Server,
  channel: Channel,
  inputEnd: LazyAbort,
  options: ServeOptions & { readonly clock: Clock },
): { readonly peer: Peer; readonly detach: () => void } {
  const { caller, identity, maxInFlight, clock, onDropped } = options;
  const owner = options.owner ?? caller ?? channel;
  let session: Session | undefined;
  let detach: (() => void) | undefined;

  const beginSession = (handshake: Handshake): void => {
    detach?.();
    session = createSession(handshake);
    session.identity = identity;
    const announce = createAnnouncer((method, params) => peer.notify(method, params));
    detach = server.attach(session, announce, caller);
  };
  const ask: NonNullable<WireContext["ask"]> = (method, params, askSignal) =>
    peer.request(method, params, { signal: askSignal });

  const handle: Handler = (request, context) => {
    const era = decideEra(request, { session, serves: server.serves });
    if (era.kind === "refused") throw era.error;
    const { cancellation } = context;
    const notify: PeerContext["notify"] = (method, params) => context.notify(method, params);
    return server.handle(request, {
      caller,
      identity,
      owner,
      ask,
      beginSession,
      inputEnd,
      era,
      cancellation,
      notify,
    });
  };

  const peer = new Peer(channel, {
    handle,
    acceptsBatch: (batch) => isLegalBatch(batch, session),
    parseErrorCode: server.parseErrorCode,
    requestIds: "random",
    clock,
    ...(maxInFlight === undefined ? {} : { maxInFlight }),
    ...(onDropped === undefined ? {} : { dropped: onDropped }),
  });
  return { peer, detach: () => detach?.() };
}

/** The error for a request that was still running when serving ended. */
export function givenUp(): RpcError {
  const { code, delivery } = new ClosedError("outcome_unknown", "the server stopped");
  const message = "The server stopped before the request was answered; it may have been carried out";
  return new RpcError("rpc.internal", message, { data: { code, delivery } });
}

/**
 * Sends announcements as they come. An announcement that is repeated while a slow reader has not taken it is sent once more, however
 * often it was repeated, so that a stalled reader costs next to nothing.
 */
export function createAnnouncer(
  send: (method: string, params: RawJson | undefined) => Promise<void>,
): Announce {
  /** The announcements that were not taken yet, and whether each was repeated since. */
  const untaken = new Map<string, boolean>();
  const sendUntilTaken = async (key: string, method: string, params: RawJson | undefined): Promise<void> => {
    do {
      untaken.set(key, false);
      // A closed channel has no reader left.
      await send(method, params).catch(() => {});
    } while (untaken.get(key) === true);
    untaken.delete(key);
  };
  return (method, params) => {
    const key = `${method} ${params?.text ?? ""}`;
    if (untaken.has(key)) untaken.set(key, true);
    else void sendUntilTaken(key, method, params);
  };
}
