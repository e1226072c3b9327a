import type { Clock } from "../../../async/clock.ts";
import type { Server } from "../../../mcp/server.ts";
import type { EventStore } from "../legacy/event-store.ts";
import type { ResumableStream } from "../legacy/resumable-stream.ts";
import type { Admissions } from "./admissions.ts";
import type { FrameSink, HttpHeaders, Reply } from "./reply.ts";

/** What every part of one HTTP endpoint shares. */
export interface Endpoint {
  readonly server: Server;
  readonly admissions: Admissions;
  readonly clock: Clock;
  readonly events: EventStore;
  /** How long a client that was sent away should wait before it comes back. */
  readonly retryMs: number;
  readonly maxBodyBytes: number;
  /** Whether we are leaving: what runs may finish, and nothing new begins. */
  readonly isDraining: boolean;
  /** Starts an event stream and keeps it alive. Calls back when it ended, was cut, or the client is gone. */
  openSink(reply: Reply, headers: HttpHeaders, onClosed?: () => void): FrameSink;
  /** Ends a stream and drops what is stored of it. */
  forget(stream: ResumableStream): void;
  /** Tells of what went wrong without anybody to answer. */
  readonly onWarning: OnWarning;
}

/** Told what went wrong without anybody to answer: clients that were cut, faults of our own. */
export type OnWarning = (text: string, error?: unknown) => void;
