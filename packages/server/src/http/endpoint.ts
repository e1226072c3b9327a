import { type Clock, Numbered } from "@junctor/core/async";
import { RpcError, toStatus } from "@junctor/core/errors";
import type { Caller, Server, Implementation } from "@junctor/core/mcp";
import { encodeMessage, type RequestId } from "@junctor/core/rpc";
import type { Authenticate } from "./authenticate.ts";
import type { EventStore } from "./event-store.ts";
import { type Admission, type Admissions, ownerOf } from "./guard.ts";
import type { Shortage } from "./memory-watch.ts";
import {
  type FrameSink,
  type HttpHeaders,
  keepAliveFrame,
  refuseStopping,
  type Reply,
  sendJson,
  toErrorResponse,
} from "./reply.ts";
import type { ResumableStream, LiveSession, SessionTable } from "./session-table.ts";

/** Whether the answers are JSON or event streams: `auto` depends on what the call does. */
export type Responses = "auto" | "json" | "sse";

/** The parts and settings that all requests to one HTTP endpoint share. */
export interface Endpoint {
  readonly server: Server;
  /** The name of a mount; undefined for the path of the endpoint itself. */
  readonly mount: string | undefined;
  readonly admissions: Admissions;
  readonly sessions: SessionTable;
  readonly clock: Clock;
  readonly events: EventStore;
  readonly responses: Responses;
  /** How long a client that was sent away should wait before it comes back. */
  readonly retryMs: number;
  readonly maxBodyBytes: number;
  /** Whether the endpoint is stopping: running calls may finish, and no call begins. */
  readonly isDraining: boolean;
  /** Whether memory is short, and for whom. */
  readonly shortage: Shortage;
  /** Starts an event stream and keeps it alive. Calls back when it has ended, was cut, or the client is gone. */
  openSink(reply: Reply, headers: HttpHeaders, onClosed?: () => void): FrameSink;
  /** Ends a stream and drops its stored events. */
  forget(stream: ResumableStream): void;
  /** The challenge for a caller that lacks scopes, if callers have tokens. */
  readonly challengeFor: Authenticate["challengeFor"];
  readonly onWarning: OnWarning;
  /** Warns about a caller that was refused because it holds too much; repetitions are counted. */
  onRefused(owner: string | undefined, error: RpcError): void;
}

/** A session, for administrators. */
interface SessionFacts {
  readonly caller: string | undefined;
  readonly client: Implementation;
  readonly revision: string;
  readonly ageMs: number;
  readonly idleMs: number;
  readonly calls: number;
  readonly streams: number;
  readonly subscriptions: number;
  /** Questions to its client that are not answered yet. */
  readonly questions: number;
}

/** The calls, streams and sessions that callers of an endpoint have open. */
export interface HttpLoad {
  readonly calls: number;
  readonly streams: number;
  /** Legacy sessions in memory. */
  readonly sessions: readonly SessionFacts[];
  /** Whether the endpoint is stopping, so that no call begins. */
  readonly isDraining: boolean;
  /** Whether memory is so short that no call begins. */
  readonly isOverloaded: boolean;
}

export function toLoad(endpoint: Endpoint): HttpLoad {
  const { admissions, sessions, clock, isDraining, shortage } = endpoint;
  const { calls, streams } = admissions;
  const now = clock.now();
  return {
    isDraining,
    isOverloaded: shortage > 1,
    calls: calls.held,
    streams: streams.held,
    sessions: sessions.live.map((live) => toFacts(live, now)),
  };
}

function toFacts(live: LiveSession, now: number): SessionFacts {
  const { clientInfo, revision } = live.session.handshake;
  return {
    caller: live.caller,
    client: clientInfo,
    revision,
    ageMs: now - live.bornAt,
    idleMs: now - live.usedAt,
    calls: live.running.size,
    streams: (live.standalone?.isConnected === true ? 1 : 0) + live.streams.size,
    subscriptions: live.session.subscriptions.size,
    questions: live.asks.size,
  };
}

/** Refuses a request that would begin something, while the endpoint stops or memory is short; false when it may begin. */
export function refuseNew(admission: Admission, endpoint: Endpoint, id?: RequestId): boolean {
  // Piped requests belong to a session that lives here, and no other replica can serve them.
  if (endpoint.isDraining && admission.piped === undefined) {
    refuseStopping(admission.reply, id);
    return true;
  }
  if (endpoint.shortage === 0) return false;
  if (endpoint.shortage === 1 && !endpoint.admissions.isGreedy(ownerOf(admission))) return false;
  const data = { code: "rpc.overloaded", delivery: "not_sent", retryAfterMs: 1000 };
  const text = "The server has too little memory left; try again later, or elsewhere";
  refuseGreedy(admission, new RpcError("rpc.overloaded", text, { data }), endpoint, id);
  return true;
}

/** Refuses a request because its caller, or all callers, hold too much already. */
export function refuseGreedy(
  admission: Admission,
  error: RpcError,
  endpoint: Pick<Endpoint, "onRefused">,
  id?: RequestId,
): void {
  endpoint.onRefused(ownerOf(admission), error);
  admission.reply.refused?.(toStatus(error), error.code);
  sendJson(admission.reply, toStatus(error), encodeMessage(toErrorResponse(error, id)));
}

/** Calls back when the credential of a caller expires, unless the returned function is called first. */
export function atExpiry(caller: Caller | undefined, clock: Clock, end: () => void): () => void {
  const { expiresAt } = caller ?? {};
  if (expiresAt === undefined) return () => {};
  let stop = (): void => {};
  // A timer may be too short for a distant date, and the wall clock may be set meanwhile.
  const look = (): void => {
    const leftMs = expiresAt - clock.date();
    if (leftMs <= 0) end();
    else stop = clock.timer(leftMs, look);
  };
  stop = clock.timer(Math.max(0, expiresAt - clock.date()), look);
  return () => stop();
}

/** Called for failures that are not answers to a request: clients that were cut, faults of our own. */
export type OnWarning = (text: string, error?: unknown) => void;

/** Writes a warning to the standard error stream. */
export function writeWarning(text: string, error?: unknown): void {
  console.error(error === undefined ? text : `${text}:`, ...(error === undefined ? [] : [error]));
}

/**
 * Writes a comment to every open stream at intervals, so that no proxy takes a silent stream for dead. All share one timer, because
 * thousands of idle streams must cost next to nothing.
 */
export class KeepAlive {
  readonly #intervalMs: number;
  readonly #sinks = new Numbered<FrameSink>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** Adds a stream, and returns the number to remove it by. */
  add(sink: FrameSink): number {
    this.#timer ??= setInterval(() => this.#tick(), this.#intervalMs);
    this.#timer.unref?.();
    return this.#sinks.add(sink);
  }

  remove(number: number): void {
    this.#sinks.delete(number);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    for (const sink of this.#sinks.values()) if (sink.isOpen) void sink.write(keepAliveFrame);
    if (this.#sinks.size === 0) this.stop();
  }
}
