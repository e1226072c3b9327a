import { createBackoff } from "../async/backoff.ts";
import { fromSignal } from "../async/cancellation.ts";
import { type Clock, sleep } from "../async/clock.ts";
import { createDeferred, type Deferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
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
  /** The server told what it will send. Rejects when the request ended before. */
  readonly agreed: Deferred<void>;
  readonly ended: Promise<unknown>;
  readonly stop: () => void;
}

/** How long the server may take to agree. */
const agreeMs = 30_000;

/** How long a stream must have lasted to count as working. */
const stableMs = 5000;

/**
 * Keeps a stream of changes of a modern server open. When other things are to be heard of, the new stream is agreed on
 * before the old one is closed, so nothing falls between; when a stream breaks, it is opened again, later and later.
 */
export class Listening {
  readonly #conversation: Conversation;
  readonly #options: ListeningOptions;
  readonly #stopping = new AbortController();
  readonly #backoff = createBackoff();
  #current: Stream | undefined;
  /** The one whose agreement is waited for; they are opened one after the other, so the next to come is its. */
  #opening: Stream | undefined;
  #turn: Promise<void> = Promise.resolve();
  /** A renewal that is not begun yet. */
  #renewal: Promise<void> | undefined;

  constructor(conversation: Conversation, options: ListeningOptions) {
    this.#conversation = conversation;
    this.#options = options;
  }

  /** Opens the stream unless it is open, and keeps trying where that may help. */
  start(): void {
    const started = this.#turn.then(() => (this.#current === undefined ? this.#replace() : undefined));
    this.#turn = started.catch((error: unknown) => void this.#reopen(undefined, error));
  }

  /** Asks for what is wanted now. Resolves when the server has agreed to it. */
  renew(): Promise<void> {
    // Those who ask before it was begun are served by the same one.
    if (this.#renewal !== undefined) return this.#renewal;
    const renewed = this.#turn.then(() => {
      this.#renewal = undefined;
      return this.#replace();
    });
    this.#renewal = renewed;
    this.#turn = renewed.catch(() => {});
    return renewed;
  }

  /** Whether the server agreed to tell of this resource. */
  honours(uri: string): boolean {
    return this.#current?.honoured.has(uri) === true;
  }

  /** The server agreed, to these resources; the subscription has the id of its request. */
  acknowledged(id: string | undefined, honoured: readonly unknown[]): void {
    if (this.#opening === undefined) return;
    this.#opening.id = id;
    this.#opening.honoured = new Set(honoured);
    this.#opening.agreed.resolve();
  }

  /** The server ends a stream by cancelling it, where it cannot close a connection. */
  cancelled(id: string | undefined): void {
    const stream = this.#current;
    if (stream !== undefined && id !== undefined && stream.id === id) stream.stop();
  }

  stop(): void {
    this.#stopping.abort(new ClosedError("not_sent", "nobody listens any more"));
    this.#current?.stop();
    this.#opening?.stop();
  }

  async #replace(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const stream = this.#open();
    if (stream !== undefined) {
      this.#opening = stream;
      const stopWaiting = this.#options.clock.timer(agreeMs, stream.stop);
      try {
        await stream.agreed.promise;
      } finally {
        stopWaiting();
        this.#opening = undefined;
      }
      void this.#keep(stream);
    }
    this.#current?.stop();
    this.#current = stream;
  }

  /** Opens a stream again when it breaks. */
  async #keep(stream: Stream): Promise<void> {
    const { clock } = this.#options;
    const openedAt = clock.now();
    const error = await stream.ended;
    // One that lasted may be opened again soon; one that ended at once, later and later.
    if (clock.now() - openedAt >= stableMs) this.#backoff.reset();
    await this.#reopen(stream, error);
  }

  /** Goes on until it succeeds, another took its place, or the server does not know such a thing. */
  async #reopen(broken: Stream | undefined, cause: unknown): Promise<void> {
    const { clock, onReopened } = this.#options;
    const { signal } = this.#stopping;
    for (let error = cause; this.#current === broken && !signal.aborted;) {
      this.#warn(error);
      if (error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"]) return;
      await sleep(this.#backoff.next(), clock, signal).catch(() => {});
      if (this.#current !== broken || signal.aborted) return;
      try {
        await this.renew();
        return onReopened();
      } catch (failure) {
        error = failure;
      }
    }
  }

  #open(): Stream | undefined {
    const { tools, prompts, resources } = this.#conversation.agreement.capabilities;
    const uris = this.#options.uris();
    const notifications = {
      ...(tools?.listChanged === true ? { toolsListChanged: true } : {}),
      ...(prompts?.listChanged === true ? { promptsListChanged: true } : {}),
      ...(resources?.listChanged === true ? { resourcesListChanged: true } : {}),
      ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }),
    };
    if (Object.keys(notifications).length === 0) return undefined;
    const controller = new AbortController();
    const agreed = createDeferred<void>();
    const params = RawJson.fromValue({ notifications });
    const request = this.#conversation.request("subscriptions/listen", params, {
      stop: fromSignal(controller.signal),
    });
    const ended = request.then(
      () => new ClosedError("outcome_unknown", "the server ended the stream of changes"),
      (error: unknown) => error,
    );
    void ended.then((error) => agreed.reject(error));
    agreed.promise.catch(() => {}); // Whoever waits for it hears of it.
    return {
      id: undefined,
      honoured: new Set(),
      agreed,
      ended,
      stop: () => controller.abort(new ClosedError("not_sent", "the stream of changes was given up")),
    };
  }

  #warn(error: unknown): void {
    if (!this.#stopping.signal.aborted)
      this.#options.onWarning(`The stream of changes broke: ${String(error)}`);
  }
}
