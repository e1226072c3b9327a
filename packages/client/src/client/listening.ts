import {
  createBackoff,
  type Clock,
  sleep,
  createDeferred,
  type Deferred,
  LazyAbort,
} from "@junctor/core/async";
import { ClosedError, RpcError, rpcCodes } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { defined } from "@junctor/core/options";
import type { Conversation } from "./conversation.ts";

interface ListeningOptions {
  /** The resources to hear of, as of now. */
  readonly uris: () => readonly string[];
  /** The stream was down and is up again: anything may have changed. */
  readonly onReopened: () => void;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

/** One `subscriptions/listen` request. */
interface Stream {
  id: string | undefined;
  /** The resources the server agreed to tell of. */
  honoured: ReadonlySet<unknown>;
  /** Resolves when the server has acknowledged the subscription. Rejects when the request ended before. */
  readonly agreed: Deferred<void>;
  readonly ended: Promise<unknown>;
  readonly stop: () => void;
}

/** How long the server may take to agree. */
const agreeMs = 30_000;

/** How long a stream must have lasted to count as working. */
const stableMs = 5000;

/** A stream of changes that is kept open. */
export interface Listening {
  /** Opens the stream unless it is open, and keeps trying where that may help. */
  start(): void;
  /** Asks for what is wanted now. Resolves when the server has agreed to it. */
  renew(): Promise<void>;
  /** Whether the server agreed to tell of this resource. */
  honours(uri: string): boolean;
  /** The server agreed, to these resources; the subscription has the id of its request. */
  acknowledged(id: string | undefined, honoured: readonly unknown[]): void;
  /** The server ends a stream by cancelling it, where it cannot close a connection. */
  cancelled(id: string | undefined): void;
  stop(): void;
}

/**
 * Keeps a stream of changes of a modern server open. When other things are to be heard of, the new stream is agreed on
 * before the old one is closed, so nothing falls between; when a stream breaks, it is opened again, later and later.
 */
export function createListening(conversation: Conversation, options: ListeningOptions): Listening {
  const { clock, onReopened, onWarning } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const backoff = createBackoff();
  let current: Stream | undefined;
  /** The one whose agreement is waited for; they are opened one after the other, so the next to come is its. */
  let opening: Stream | undefined;
  let turn: Promise<void> = Promise.resolve();
  /** A renewal that is not begun yet. */
  let renewal: Promise<void> | undefined;

  const open = (): Stream | undefined => {
    const { tools, prompts, resources } = conversation.agreement.capabilities;
    const uris = options.uris();
    const notifications = defined({
      toolsListChanged: tools?.listChanged === true || undefined,
      promptsListChanged: prompts?.listChanged === true || undefined,
      resourcesListChanged: resources?.listChanged === true || undefined,
      resourceSubscriptions: uris.length === 0 ? undefined : uris,
    });
    if (Object.keys(notifications).length === 0) return undefined;
    const stop = new LazyAbort();
    const agreed = createDeferred<void>();
    const params = RawJson.fromValue({ notifications });
    const ended = conversation.request("subscriptions/listen", params, { stop }).then(
      () => new ClosedError("outcome_unknown", "the server ended the stream of changes"),
      (error: unknown) => error,
    );
    void ended.then((error) => agreed.reject(error));
    agreed.promise.catch(() => {}); // `replace` reports it.
    return {
      id: undefined,
      honoured: new Set(),
      agreed,
      ended,
      stop: () => stop.abort(new ClosedError("not_sent", "the stream of changes was given up")),
    };
  };
  const replace = async (): Promise<void> => {
    if (signal.aborted) return;
    const stream = open();
    if (stream !== undefined) {
      opening = stream;
      const stopWaiting = clock.timer(agreeMs, stream.stop);
      try {
        await stream.agreed.promise;
      } finally {
        stopWaiting();
        opening = undefined;
      }
      void keep(stream);
    }
    current?.stop();
    current = stream;
  };
  /** Opens a stream again when it breaks. */
  const keep = async (stream: Stream): Promise<void> => {
    const openedAt = clock.now();
    const error = await stream.ended;
    // One that lasted may be opened again soon; one that ended at once, later and later.
    if (clock.now() - openedAt >= stableMs) backoff.reset();
    await reopen(stream, error);
  };
  /** Tries again until it succeeds, another stream took its place, or the server does not know the method. */
  const reopen = async (broken: Stream | undefined, cause: unknown): Promise<void> => {
    const isWanted = (): boolean => current === broken && !signal.aborted;
    for (let error = cause; isWanted();) {
      onWarning(`The stream of changes broke: ${String(error)}`);
      if (error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"]) return;
      await sleep(backoff.next(), clock, signal).catch(() => {});
      if (!isWanted()) return;
      try {
        await renew();
        return onReopened();
      } catch (failure) {
        error = failure;
      }
    }
  };
  const renew = (): Promise<void> => {
    // Those who ask before it was begun are served by the same one.
    if (renewal !== undefined) return renewal;
    const renewed = turn.then(() => {
      renewal = undefined;
      return replace();
    });
    renewal = renewed;
    turn = renewed.catch(() => {});
    return renewed;
  };

  return {
    start: () => {
      const started = turn.then(() => (current === undefined ? replace() : undefined));
      turn = started.catch((error: unknown) => void reopen(undefined, error));
    },
    renew,
    honours: (uri) => current?.honoured.has(uri) === true,
    acknowledged: (id, honoured) => {
      if (opening === undefined) return;
      opening.id = id;
      opening.honoured = new Set(honoured);
      opening.agreed.resolve();
    },
    cancelled: (id) => {
      if (id !== undefined && current?.id === id) current.stop();
    },
    stop: () => {
      stopping.abort(new ClosedError("not_sent", "all listeners are gone"));
      current?.stop();
      opening?.stop();
    },
  };
}
