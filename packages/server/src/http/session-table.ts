import { randomBytes } from "node:crypto";
import {
  type Clock,
  type LazyAbort,
  Quota,
  setNewest,
  andThen,
  type Awaitable,
  isPromise,
  settled,
} from "@junctor/core/async";
import { ClosedError, RpcError } from "@junctor/core/errors";
import {
  type Seal,
  type Unsealed,
  createSession,
  type Handshake,
  type Session,
  type Implementation,
  type Caller,
} from "@junctor/core/mcp";
import { type RequestId, Outbound } from "@junctor/core/rpc";
import type { EventStore } from "./event-store.ts";
import type { Admission } from "./guard.ts";
import { type FrameSink, toFrame, toPrimingFrame, type HttpRequest, type Routed } from "./reply.ts";

/** The state of one legacy session in this process. It can be dropped and made again from the session id. */
export interface LiveSession {
  /** The session id as clients present it. */
  readonly token: string;
  readonly caller: string | undefined;
  /** The owner whose share of the sessions it counts towards. */
  readonly owner: string | undefined;
  /** The mount it began at; undefined for the path of the endpoint itself. */
  readonly mount: string | undefined;
  readonly session: Session;
  /** Running requests, by id for `notifications/cancelled`. */
  readonly running: Map<RequestId, Pick<LazyAbort, "abort">>;
  /** Questions to the client that wait for an answer. */
  readonly asks: Outbound;
  readonly streams: Map<string, ResumableStream>;
  /** Announcements that wait for a stream of the client, merged. */
  readonly unannounced: Map<string, string>;
  /** The stream for messages that belong to no call. */
  standalone: ResumableStream | undefined;
  /** Stops announcements and ends subscriptions. */
  detach: () => void;
  /** When it was created in this process. */
  readonly bornAt: number;
  /** When the last request came in or the last call ended. */
  usedAt: number;
}

export interface SessionTableOptions {
  readonly seal: Seal;
  readonly clock: Clock;
  /** How long a session id is valid. */
  readonly ttlMs: number;
  /** How long an unused session, or a stream that ended, is kept in memory. */
  readonly idleMs: number;
  readonly maxLive: number;
  /** The most live sessions of one owner. */
  readonly maxPerOwner?: number | (() => number | undefined) | undefined;
  /** The most deleted ids that are remembered; beyond that the oldest is forgotten, and valid again until it expires. 100,000 by default. */
  readonly maxDeleted?: number;
  /** The other processes of the same gateway, if there are any. */
  readonly elsewhere?: Pick<Elsewhere, "address" | "ended" | "left" | "watch"> | undefined;
  /** Called when a session is created in this process, or created again from its id. */
  readonly onLive: (live: LiveSession) => void;
  /** Ends a stream and drops its stored events. */
  readonly forget: (stream: ResumableStream) => void;
}

interface Sealed extends Handshake {
  readonly nonce: string;
}

const maxTokenLength = 4096;
const sweepEveryMs = 30_000;

/** The legacy sessions of one endpoint. Ids are sealed, so a session can be created again from its id alone. */
export class SessionTable {
  readonly #options: SessionTableOptions;
  /** By the ends of their ids: hashing a whole id for every request would take longer than everything else here. */
  readonly #live = new Map<string, LiveSession>();
  /** The ends of deleted ids, and when they would have expired. */
  readonly #deleted = new Map<string, number>();
  readonly #quota: Quota<string | undefined>;
  #sweptAt = 0;

  constructor(options: SessionTableOptions) {
    this.#options = options;
    const { maxLive: total, maxPerOwner: each } = options;
    this.#quota = new Quota({ what: "sessions in use", total, each });
    options.elsewhere?.watch({
      busy: () => this.live.filter((live) => !isIdle(live)).map(({ token }) => token),
      handOver: (token) => {
        const live = this.#live.get(endOf(token));
        if (live?.token === token) this.#drop(live, "the session goes on at another replica");
      },
    });
  }

  /** The sessions in memory, oldest first. */
  get live(): readonly LiveSession[] {
    return [...this.#live.values()];
  }

  /** Starts a session and gives it an id. Throws an `RpcError` when there are too many, all of them busy. */
  begin(
    handshake: Handshake,
    caller: string | undefined,
    owner: string | undefined = caller,
    mount?: string,
  ): LiveSession {
    const nonce = randomBytes(16).toString("base64url");
    const slim = { ...handshake, clientInfo: toSlim(handshake.clientInfo) };
    const { seal, ttlMs, elsewhere } = this.#options;
    const binding = toBinding({ caller, mount, address: elsewhere?.address });
    const token = toAddressed(seal.seal({ ...slim, nonce }, binding, ttlMs), elsewhere?.address);
    if (token.length > maxTokenLength) {
      throw new RpcError(
        "rpc.invalid_params",
        "Invalid params: the capabilities are too large for a session",
      );
    }
    const live = this.#enliven(token, slim, { caller, owner, mount });
    if (live instanceof RpcError) throw live;
    return live;
  }

  /**
   * The session with this id, if the id is one of ours, is valid, and belongs to this caller and mount. An error means that the
   * session exists, but there is no room for it right now.
   */
  find(
    token: string,
    caller: string | undefined,
    owner: string | undefined = caller,
    mount?: string,
  ): LiveSession | "unknown" | RpcError {
    const known = this.#live.get(endOf(token));
    const live = known?.token === token ? known : undefined;
    if (live !== undefined && (live.caller !== caller || live.mount !== mount)) return "unknown";
    const now = this.#options.clock.now();
    // Before the sweep, which would drop it as idle.
    if (live !== undefined) live.usedAt = now;
    this.#sweep(now);
    if (live !== undefined) return live;
    if (this.#deleted.has(endOf(token))) return "unknown";
    const opened = openSessionId(token, this.#options.seal, { caller, mount });
    if (!opened.ok) return "unknown";
    const { nonce: _, ...handshake } = opened.payload as Sealed;
    return this.#enliven(token, handshake, { caller, owner, mount });
  }

  /** Ends a session for good. */
  delete(live: LiveSession): void {
    const { maxDeleted = 100_000, clock, ttlMs } = this.#options;
    setNewest(this.#deleted, endOf(live.token), clock.now() + ttlMs, maxDeleted);
    this.#options.elsewhere?.ended(live.token);
    this.#drop(live, "the session was deleted");
  }

  /** Ends every session that matches, such as those of a caller whose key was revoked. */
  endWhere(matches: (live: LiveSession) => boolean): void {
    for (const live of this.#live.values()) if (matches(live)) this.delete(live);
  }

  /** Drops all live sessions. Their ids stay valid for another process with the same secret. */
  close(): void {
    for (const live of this.#live.values()) this.#drop(live, "the server is stopping");
  }

  #enliven(
    token: string,
    handshake: Handshake,
    { caller, owner, mount }: Pick<LiveSession, "caller" | "owner" | "mount">,
  ): LiveSession | RpcError {
    if (this.#quota.refusal(owner) !== undefined)
      for (const idle of chooseIdle(this.#live, this.#quota, owner)) this.#drop(idle, "too many sessions");
    const refusal = this.#quota.refusal(owner);
    if (refusal !== undefined) return refusal;
    this.#quota.add(owner);
    const live: LiveSession = {
      token,
      caller,
      owner,
      mount,
      session: createSession(handshake),
      running: new Map(),
      asks: new Outbound(
        {
          send: () =>
            Promise.reject(new ClosedError("not_sent", "a question goes on the stream of its call")),
        },
        "random",
      ),
      streams: new Map(),
      unannounced: new Map(),
      standalone: undefined,
      detach: () => {},
      bornAt: this.#options.clock.now(),
      usedAt: this.#options.clock.now(),
    };
    this.#live.set(endOf(token), live);
    this.#options.onLive(live);
    return live;
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < sweepEveryMs) return;
    this.#sweptAt = now;
    const tooOld = now - this.#options.idleMs;
    for (const live of this.#live.values()) {
      for (const stream of live.streams.values()) {
        if (!stream.isEnded || stream.usedAt >= tooOld) continue;
        live.streams.delete(stream.id);
        this.#options.forget(stream);
      }
      const isForgettable =
        isIdle(live) && live.unannounced.size === 0 && live.session.subscriptions.size === 0;
      if (live.usedAt < tooOld && isForgettable) this.#drop(live, "the session was idle");
    }
    for (const [token, expiresAt] of this.#deleted) if (expiresAt < now) this.#deleted.delete(token);
  }

  #drop(live: LiveSession, reason: string): void {
    if (this.#live.delete(endOf(live.token))) this.#quota.give(live.owner);
    this.#options.elsewhere?.left(live.token);
    const closed = new ClosedError("outcome_unknown", reason);
    for (const controller of live.running.values()) controller.abort(closed);
    live.asks.close(closed);
    live.detach();
    // Later, because the calls that were just aborted are still answered on their streams.
    this.#options.clock.timer(0, () => live.streams.forEach((stream) => this.#options.forget(stream)));
    if (live.standalone !== undefined) this.#options.forget(live.standalone);
  }
}

/**
 * Opens a session id, for its own caller and mount only. The session may have begun in another process, whose address is part of the id
 * and bound to it by the seal.
 */
export function openSessionId(
  token: string,
  seal: Seal,
  { caller, mount }: Pick<LiveSession, "caller" | "mount">,
): Unsealed {
  if (token.length > maxTokenLength) return { ok: false, reason: "malformed" };
  const address = addressOf(token);
  const sealed = address === undefined ? token : token.slice(address.length + 1);
  return seal.open(sealed, toBinding({ caller, mount, address }));
}

/**
 * The sessions to drop when there is no room for one more of an owner: a tenth of the idle ones, those used longest ago first, of
 * the owner itself, or else of the owner that has most if it has more. Their ids stay valid. None if the owner itself has most
 * sessions, all in use: it takes no session from others.
 */
function chooseIdle(
  sessions: ReadonlyMap<string, LiveSession>,
  quota: Quota<string | undefined>,
  owner: string | undefined,
): readonly LiveSession[] {
  const idle = [...sessions.values()].filter(isIdle).toSorted((a, b) => a.usedAt - b.usedAt);
  const greediest = quota.greediest();
  const own = idle.filter((live) => live.owner === owner);
  const hasLess = quota.heldBy(owner) < quota.heldBy(greediest);
  const others = hasLess ? idle.filter((live) => quota.heldBy(live.owner) > quota.heldBy(owner)) : [];
  const most = others.filter((live) => live.owner === greediest);
  const chosen = own.length > 0 ? own : most.length > 0 ? most : others;
  return chosen.slice(0, Math.ceil(chosen.length / 10));
}

/** Identifies a session like its whole id, which may be long: it contains the tag of the seal, which a client cannot choose. */
function endOf(token: string): string {
  return token.slice(-32);
}

/** The part of a client's description that goes into the session id. Icons may be larger than any header. */
function toSlim({ name, version, title }: Implementation): Implementation {
  return title === undefined ? { name, version } : { name, version, title };
}

function isIdle(live: LiveSession): boolean {
  return live.running.size === 0 && live.standalone?.isConnected !== true;
}

interface SessionBinding {
  readonly caller: string | undefined;
  readonly mount: string | undefined;
  readonly address: string | undefined;
}

/** What a session id is bound to: its caller, its mount, and the address of its process, which the client cannot choose. */
function toBinding({ caller, mount, address }: SessionBinding): string {
  const home = address === undefined ? [] : [{ address }];
  return JSON.stringify(["session", caller ?? null, ...(mount === undefined ? [] : [mount]), ...home]);
}

/** The most characters that wait for a slow reader; beyond that it is cut, and may come back. */
const maxQueued = 1024 * 1024;

/** How long a client may be without a connection, and how often we check. */
const awayMs = 30_000;
const lookMs = 1000;

/**
 * A legacy event stream that outlives its connection. Events are stored before they are written, and all acts on a
 * stream run one after the other, so a replay that races with a live event neither repeats nor loses an event.
 */
export class ResumableStream {
  readonly id: string;
  readonly #store: EventStore;
  /** The owner whose share of the store its events count towards. */
  readonly #owner: string | undefined;
  #sink: FrameSink | undefined;
  /** Whether no more events will come. Stored events can still be fetched until the stream is forgotten. */
  isEnded = false;
  /** The last act that runs or waits for its turn; undefined when there is none. */
  #tail: Promise<void> | undefined;
  /** Characters of events that wait for their turn. */
  #queued = 0;
  /** When the last event was sent or a client last connected. */
  usedAt: number;

  constructor(id: string, store: EventStore, now: number, owner?: string) {
    this.id = id;
    this.#store = store;
    this.#owner = owner;
    this.usedAt = now;
  }

  get isConnected(): boolean {
    return this.#sink?.isOpen === true;
  }

  /** Begins on a new connection. With `retryMs`, the client learns an event id to come back with, so the connection may be released. */
  open(sink: FrameSink, retryMs: number | undefined): Awaitable<void> {
    this.#sink = sink; // Not in turn, so that `isConnected` is true from now on.
    if (retryMs === undefined) return;
    return this.#inTurn(() =>
      andThen(settled(this.#store.append(this.id, "", this.#owner)), (id) =>
        writeEvent(this, sink, toPrimingFrame(id, retryMs)),
      ),
    );
  }

  /**
   * Continues over a new connection with the events after `lastEventId`. When they are no longer kept, the connection is cut. Cuts an
   * older connection first: if its reader vanished silently, a write on it may hang.
   */
  resume(sink: FrameSink, lastEventId: string, now: number): Awaitable<void> {
    this.#sink?.cut("it went on over another connection");
    return this.#inTurn(async () => {
      const missed = await this.#store.after(lastEventId);
      if (missed === undefined) return sink.cut("what it missed is no longer kept");
      this.usedAt = now;
      this.#sink?.cut("it went on over another connection");
      this.#sink = sink;
      for (const { id, data } of missed) if (data !== "") await sink.write(toFrame(data, id));
      if (this.isEnded) sink.end();
    });
  }

  /** Stores an event, and writes it if a client is connected. Waits until the client took it. */
  send(data: string, now: number): Awaitable<void> {
    if (this.#queued > maxQueued) this.#sink?.cut(`the reader is slow: ${this.#queued} bytes wait for it`);
    this.#queued += data.length;
    return this.#inTurn(() => {
      this.#queued -= data.length;
      if (this.isEnded) return;
      this.usedAt = now;
      return andThen(settled(this.#store.append(this.id, data, this.#owner)), (id) =>
        writeEvent(this, this.#sink, toFrame(data, id)),
      );
    });
  }

  /**
   * Closes the connection. A stream that is only `released` stays open, and the client comes back for the rest. One that is
   * `ended` gets no more events. The events of one that is `forgotten` are dropped.
   */
  close(how: "released" | "ended" | "forgotten"): Awaitable<void> {
    return this.#inTurn(() => {
      this.isEnded ||= how !== "released";
      this.#sink?.end();
      this.#sink = undefined;
      if (how === "forgotten") return settled(this.#store.forget(this.id));
    });
  }

  /** Acts at once if no act is underway, else after the acts before it. */
  #inTurn(act: () => Awaitable<void>): Awaitable<void> {
    const acted = this.#tail === undefined ? act() : this.#tail.then(act, act);
    if (!isPromise(acted)) return acted;
    this.#tail = acted;
    const isDone = (): void => {
      if (this.#tail === acted) this.#tail = undefined;
    };
    acted.then(isDone, isDone);
    return acted;
  }
}

/** Streams of which a client got an event with an id. Without an id it cannot resume. */
const resumable = new WeakSet<ResumableStream>();

function writeEvent(stream: ResumableStream, sink: FrameSink | undefined, frame: string): Awaitable<void> {
  if (sink?.isOpen === true) resumable.add(stream);
  return sink?.write(frame);
}

/**
 * Calls back once when the client of a stream is given up: it has had no connection for 30 s, or it has none and never got an event id
 * to resume with. The returned function stops the checks.
 */
export function onceGone(stream: ResumableStream, clock: Clock, gone: () => void): () => void {
  let seenAt = clock.now();
  let stop = (): void => {};
  const look = (): void => {
    const { isConnected } = stream;
    if (isConnected) seenAt = clock.now();
    if (!isConnected && (!resumable.has(stream) || clock.now() - seenAt >= awayMs)) return gone();
    stop = clock.timer(lookMs, look);
  };
  stop = clock.timer(lookMs, look);
  return () => stop();
}

/** Reaches the legacy sessions that live at other replicas of the same gateway. */
export interface Elsewhere {
  /** The id of this replica. It stands before the ids of sessions that begin here. */
  readonly address: string;
  /** Whether a request names a session that lives at another replica. */
  isAbout(http: HttpRequest): boolean;
  /** Passes such a request to the replica where its session lives. */
  pass(admission: Admission, local: LocalService): Routed;
  /** A session ended here for good. */
  ended(token: string): void;
  /** A session is no longer in the memory of this replica. */
  left(token: string): void;
  /** Called once with the sessions in the memory of this replica, so that those adopted by another replica can be ended. */
  watch(sessions: LocalSessions): void;
}

/** The legacy sessions in the memory of this replica. */
export interface LocalSessions {
  /** The ids of the sessions with a call underway or a stream open. */
  busy(): readonly string[];
  /** Ends the calls and streams of a session that another replica serves now. The id of the session stays valid. */
  handOver(token: string): void;
}

/** This replica, for a session whose home is gone. */
export interface LocalService {
  /** The most bytes of a body. */
  readonly maxBytes: number;
  /** Whether the session id of the request is one of ours, made for this caller and path. */
  isGood(): boolean;
  /** Serves the request here. */
  serve(): Routed;
}

/** What is known about the sender of a request that another replica accepted and passed on. */
export interface PipedFrom {
  readonly identity: Caller | undefined;
  /** The address it came from. */
  readonly address: string | undefined;
  /** How often it was passed on. */
  readonly hops?: number;
  /** Whether it resumes a stream that broke between two replicas, on behalf of a client that is still connected. */
  readonly isMending?: boolean | undefined;
}

/** An id with the address of its replica. */
export function toAddressed(id: string, address: string | undefined): string {
  return address === undefined ? id : `${address}.${id}`;
}

/** The address in an id; undefined for one that has none. */
export function addressOf(id: string): string | undefined {
  return id[addressLength] === "." ? id.slice(0, addressLength) : undefined;
}

/** An address is 12 hexadecimal digits. */
const addressLength = 12;
