import type { Caller } from "../../../mcp/caller.ts";
import type { Admission } from "./guard.ts";
import type { HttpRequest, Routed } from "./reply.ts";

/** Reaches the legacy sessions that live in other processes of the same gateway. */
export interface Elsewhere {
  /** The address of this process. It stands before the ids of sessions that begin here. */
  readonly address: string;
  /** Whether a request names a session that lives in another process. */
  isAbout(http: HttpRequest): boolean;
  /** Has such a request answered where its session lives. `serve` serves it here, when that process is gone. */
  pass(admission: Admission, serve: () => Routed, maxBytes: number): Routed;
  /** A session ended here for good. */
  ended(token: string): void;
}

/** A request that another process of the same gateway let in and passed on: all that is known of its sender. */
export interface PipedFrom {
  readonly identity: Caller | undefined;
  /** The address it came from. */
  readonly address: string | undefined;
}

/** An id with the address of the process that it lives in. */
export function toAddressed(id: string, address: string | undefined): string {
  return address === undefined ? id : `${address}.${id}`;
}

/** The address in an id; undefined for one that has none. */
export function addressOf(id: string): string | undefined {
  return id[addressLength] === "." ? id.slice(0, addressLength) : undefined;
}

/** An address is 12 hexadecimal digits. */
const addressLength = 12;
