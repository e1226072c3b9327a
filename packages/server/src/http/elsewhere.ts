import type { Caller } from "@junctor/core/mcp";
import type { Admission } from "./guard.ts";
import type { HttpRequest, Routed } from "./reply.ts";

/** Reaches the legacy sessions that live at other replicas of the same gateway. */
export interface Elsewhere {
  /** The id of this replica. It stands before the ids of sessions that begin here. */
  readonly address: string;
  /** Whether a request names a session that lives at another replica. */
  isAbout(http: HttpRequest): boolean;
  /** Has such a request answered where its session lives. */
  pass(admission: Admission, local: LocalService): Routed;
  /** A session ended here for good. */
  ended(token: string): void;
  /** A session is no longer in the memory of this replica. */
  left(token: string): void;
  /** Called once with the sessions in the memory of this replica, so that it can end those that another replica adopted. */
  watch(sessions: LocalSessions): void;
}

/** The legacy sessions in the memory of this replica. */
export interface LocalSessions {
  /** The ids of those with a call underway or a stream open. */
  busy(): readonly string[];
  /** Ends the calls and streams of a session that another replica serves now. The id of the session stays valid. */
  handOver(token: string): void;
}

/** This replica, for a session whose home is gone. */
export interface LocalService {
  /** Most bytes of a body. */
  readonly maxBytes: number;
  /** Whether the session id of the request is one of ours, made for this caller and path. */
  isGood(): boolean;
  /** Serves the request here. */
  serve(): Routed;
}

/** A request that another replica of the same gateway let in and passed on: all that is known of its sender. */
export interface PipedFrom {
  readonly identity: Caller | undefined;
  /** The address it came from. */
  readonly address: string | undefined;
  /** How often it was passed on. */
  readonly hops?: number;
  /** Whether it asks for the rest of a stream that broke between two replicas. Its client did not ask, and has not left. */
  readonly isMending?: boolean | undefined;
}

/** An id with the id of the replica that it lives at. */
export function toAddressed(id: string, address: string | undefined): string {
  return address === undefined ? id : `${address}.${id}`;
}

/** The address in an id; undefined for one that has none. */
export function addressOf(id: string): string | undefined {
  return id[addressLength] === "." ? id.slice(0, addressLength) : undefined;
}

/** An address is 12 hexadecimal digits. */
const addressLength = 12;
