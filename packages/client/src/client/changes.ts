import {
  type Clock,
  createBackoff,
  createDeferred,
  type Deferred,
  LazyAbort,
  sleep,
} from "@junctor/core/async";
import { ClosedError, NotFoundError, RpcError, rpcCodes } from "@junctor/core/errors";
import { RawJson, withoutMembers } from "@junctor/core/json";
import { metaKeys, type Part } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import { type Change, createSource, type Notice } from "@junctor/core/provider";
import type { Notification } from "@junctor/core/rpc";
import type { Conversation, Conversations } from "./conversation.ts";
import type { PlainRequest } from "./lists.ts";

type Updated = Extract<Notice, { readonly kind: "updated" }>;

/** A change that a server announces: of a list, or of a resource. */
type News = Change | Updated;

interface ServerChangesOptions {
  readonly conversations: Conversations;
  readonly request: PlainRequest;
  readonly onChanged: (part: Part) => void;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

/** A watched resource. */
interface WatchedResource {
  count: number;
  /** Settles when the server has agreed or refused. */
  readonly agreed: Promise<void>;
}

const lists: readonly Change[] = [{ part: "tools" }, { part: "prompts" }, { part: "resources" }];

/** Watches for changes on the server, by the means of its era. */
export class ServerChanges {
  readonly #options: ServerChangesOptions;
  readonly #source = createSource<News>((news) => ("part" in news ? news.part : `updated ${news.uri}`));
  readonly #watched = new Map<string, WatchedResource>();
  /** Requests `resources/unsubscribe` that are underway, by URI. */
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  /** The stream of a modern server, once it was asked for. */
  #stream: ChangeStream | undefined;
  #starting: Promise<void> | undefined;

  constructor(options: ServerChangesOptions) {
    this.#options = options;
    options.conversations.hear({
      take: (notification) => this.#take(notification),
      renewed: () => this.#renew(),
    });
  }

  onNews(listener: (news: News) => void): () => void {
    this.#startQuietly();
    return this.#source.onChange(listener);
  }

  /** Reports changes of a resource, and of what lies below it, until the returned function is called. Several callers may watch one resource. */
  async watch(uri: string, listener: (notice: Updated) => void): Promise<() => void> {
    let entry = this.#watched.get(uri);
    if (entry === undefined) {
      // It is in the map before the server is asked, because the request is made from the map.
      const agreed = Promise.resolve().then(() => this.#agree(uri));
      entry = { count: 0, agreed };
      this.#watched.set(uri, entry);
    }
    entry.count++;
    // The server may report a change before its agreement has arrived.
    const stopListening = this.#source.onChange((news) => {
      if ("uri" in news && covers(uri, news.uri)) listener(news);
    });
    try {
      await entry.agreed;
    } catch (error) {
      stopListening();
      if (this.#watched.get(uri) === entry) this.#watched.delete(uri);
      throw error;
    }
    let isWatching = true;
    return () => {
      stopListening();
      if (isWatching) this.#release(uri);
      isWatching = false;
    };
  }

  stop(): void {
    this.#stopping.abort();
    this.#stream?.stop();
  }

  #report(news: News): void {
    if ("part" in news) this.#options.onChanged(news.part);
    this.#source.report(news);
  }

  #reportAll(): void {
    for (const change of lists) this.#report(change);
    for (const uri of this.#watched.keys()) this.#report({ kind: "updated", uri });
  }

  #start(): Promise<void> {
    if (this.#stopping.signal.aborted) return Promise.resolve();
    this.#starting ??= this.#begin().catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  #startQuietly(): void {
    const started = this.#start().then(() => this.#stream?.start());
    started.catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) this.#warnOfSilence(error);
    });
  }

  async #begin(): Promise<void> {
    const { conversations, clock, onWarning } = this.#options;
    const conversation = await conversations.get();
    const { link, agreement } = conversation;
    if (agreement.mode.kind === "modern") {
      const uris = (): readonly string[] => [...this.#watched.keys()];
      const onReopened = (): void => this.#reportAll();
      this.#stream = new ChangeStream(conversation, { uris, onReopened, clock, onWarning });
      return;
    }
    if (link.listen === undefined) return;
    const ended = link.listen((mayHaveMissed) => {
      conversation.isHearing = true;
      if (mayHaveMissed) this.#reportAll();
    });
    ended
      .catch((error: unknown) => this.#warnOfSilence(error))
      .finally(() => {
        conversation.isHearing = false;
      });
  }

  #warnOfSilence(error: unknown): void {
    this.#options.onWarning(`Changes cannot be heard of: ${String(error)}`);
  }

  async #agree(uri: string): Promise<void> {
    await this.#start();
    if (this.#stream === undefined) {
      // Two requests over HTTP may arrive in any order.
      await this.#leaving.get(uri);
      await this.#subscribe(uri);
    } else {
      await this.#stream.renew();
      if (!this.#stream.honours(uri)) throw new NotFoundError("resource", uri);
    }
  }

  async #subscribe(uri: string): Promise<void> {
    await this.#options.request("resources/subscribe", RawJson.fromValue({ uri }));
  }

  #release(uri: string): void {
    const entry = this.#watched.get(uri);
    if (entry === undefined || --entry.count > 0) return;
    this.#watched.delete(uri);
    if (this.#stream !== undefined) return void this.#stream.renew().catch(() => {});
    const left = this.#options.request("resources/unsubscribe", RawJson.fromValue({ uri })).then(
      () => void this.#leaving.delete(uri),
      () => void this.#leaving.delete(uri), // A server that is gone has forgotten it.
    );
    this.#leaving.set(uri, left);
  }

  #take(notification: Notification): boolean {
    const { method, params } = notification;
    if (method === "notifications/subscriptions/acknowledged") {
      const honoured = params?.at("notifications")?.at("resourceSubscriptions")?.value;
      const id = params?.at("_meta")?.at(metaKeys.subscriptionId)?.text;
      this.#stream?.takeAgreement(id, Array.isArray(honoured) ? honoured : []);
      return true;
    }
    if (method === "notifications/cancelled") {
      this.#stream?.takeEnd(params?.at("requestId")?.text);
      return true;
    }
    const news = toNews(notification);
    if (news !== undefined) this.#report(news);
    return news !== undefined;
  }

  /** After a new conversation began: subscribes again, and reports everything as changed. */
  #renew(): void {
    this.#reportAll();
    if (this.#starting === undefined) return;
    this.#stream?.stop();
    this.#stream = undefined;
    this.#starting = undefined;
    this.#startQuietly();
    void this.#resubscribe();
  }

  async #resubscribe(): Promise<void> {
    try {
      await this.#start();
      if (this.#stream !== undefined) return;
      for (const uri of this.#watched.keys()) await this.#subscribe(uri);
    } catch (error) {
      this.#options.onWarning(`A resource is no longer watched: ${String(error)}`);
    }
  }
}

function toNews({ method, params }: Notification): News | undefined {
  if (method !== "notifications/resources/updated")
    return lists.find(({ part }) => method === `notifications/${part}/list_changed`);
  const uri = params?.at("uri")?.value;
  if (params === undefined || typeof uri !== "string") return undefined;
  return { kind: "updated", uri, params: withoutMembers(params, ["_meta"]) };
}

/** A watch covers its URI and what lies below it. */
function covers(watched: string, uri: string): boolean {
  return uri === watched || uri.startsWith(watched.endsWith("/") ? watched : `${watched}/`);
}

interface ChangeStreamOptions {
  /** The resources that are watched now. */
  readonly uris: () => readonly string[];
  /** The stream was down and is up again: anything may have changed. */
  readonly onReopened: () => void;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

/** One `subscriptions/listen` request. */
interface Subscription {
  id: string | undefined;
  /** The resources whose changes the server agreed to report. */
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

/**
 * Keeps a stream of changes of a modern server open. When the watched resources change, the new stream is agreed on before
 * the old one is closed, so that no change is missed. A stream that breaks is opened again, after growing delays.
 */
class ChangeStream {
  readonly #conversation: Conversation;
  readonly #options: ChangeStreamOptions;
  readonly #stopping = new AbortController();
  readonly #backoff = createBackoff();
  #current: Subscription | undefined;
  /** The subscription that waits for its agreement. Only one is opened at a time, so the next agreement is for it. */
  #opening: Subscription | undefined;
  #turn: Promise<void> = Promise.resolve();
  /** A renewal that has not begun yet. */
  #renewal: Promise<void> | undefined;

  constructor(conversation: Conversation, options: ChangeStreamOptions) {
    this.#conversation = conversation;
    this.#options = options;
  }

  /** Opens the stream unless it is open, and tries again where that may help. */
  start(): void {
    const started = this.#turn.then(() => (this.#current === undefined ? this.#replace() : undefined));
    this.#turn = started.catch((error: unknown) => void this.#reopen(undefined, error));
  }

  /** Subscribes to what is wanted now. Resolves when the server has agreed. */
  renew(): Promise<void> {
    // Callers that ask before it begins share it.
    if (this.#renewal !== undefined) return this.#renewal;
    const renewed = this.#turn.then(() => {
      this.#renewal = undefined;
      return this.#replace();
    });
    this.#renewal = renewed;
    this.#turn = renewed.catch(() => {});
    return renewed;
  }

  /** Whether the server agreed to report changes of this resource. */
  honours(uri: string): boolean {
    return this.#current?.honoured.has(uri) === true;
  }

  /** Takes the resources that the server agreed to report. `id` is that of the request. */
  takeAgreement(id: string | undefined, honoured: readonly unknown[]): void {
    if (this.#opening === undefined) return;
    this.#opening.id = id;
    this.#opening.honoured = new Set(honoured);
    this.#opening.agreed.resolve();
  }

  /** Takes the end of a stream: the server cancels it where it cannot close a connection. */
  takeEnd(id: string | undefined): void {
    if (id !== undefined && this.#current?.id === id) this.#current.stop();
  }

  stop(): void {
    this.#stopping.abort(new ClosedError("not_sent", "all listeners are gone"));
    this.#current?.stop();
    this.#opening?.stop();
  }

  #open(): Subscription | undefined {
    const { tools, prompts, resources } = this.#conversation.agreement.capabilities;
    const uris = this.#options.uris();
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
    const ended = this.#conversation.request("subscriptions/listen", params, { stop }).then(
      () => new ClosedError("outcome_unknown", "the server ended the stream of changes"),
      (error: unknown) => error,
    );
    void ended.then((error) => agreed.reject(error));
    agreed.promise.catch(() => {}); // `#replace` reports it.
    return {
      id: undefined,
      honoured: new Set(),
      agreed,
      ended,
      stop: () => stop.abort(new ClosedError("not_sent", "the stream of changes was given up")),
    };
  }

  async #replace(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const subscription = this.#open();
    if (subscription !== undefined) {
      this.#opening = subscription;
      const stopWaiting = this.#options.clock.timer(agreeMs, subscription.stop);
      try {
        await subscription.agreed.promise;
      } finally {
        stopWaiting();
        this.#opening = undefined;
      }
      void this.#keep(subscription);
    }
    this.#current?.stop();
    this.#current = subscription;
  }

  /** Opens a stream again when it breaks. */
  async #keep(subscription: Subscription): Promise<void> {
    const { clock } = this.#options;
    const openedAt = clock.now();
    const error = await subscription.ended;
    // A stream that lasted is opened again soon; one that ended at once, after growing delays.
    if (clock.now() - openedAt >= stableMs) this.#backoff.reset();
    await this.#reopen(subscription, error);
  }

  /** Tries again until it succeeds, another stream took its place, or the server does not know the method. */
  async #reopen(broken: Subscription | undefined, cause: unknown): Promise<void> {
    const { clock, onReopened, onWarning } = this.#options;
    const { signal } = this.#stopping;
    const isWanted = (): boolean => this.#current === broken && !signal.aborted;
    for (let error = cause; isWanted();) {
      onWarning(`The stream of changes broke: ${String(error)}`);
      if (error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"]) return;
      await sleep(this.#backoff.next(), clock, signal).catch(() => {});
      if (!isWanted()) return;
      try {
        await this.renew();
        return onReopened();
      } catch (failure) {
        error = failure;
      }
    }
  }
}
