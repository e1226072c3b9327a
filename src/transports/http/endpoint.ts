import type { Clock } from "../../async/clock.ts";
import type { Server } from "../../mcp/server.ts";
import type { EventStore } from "./event-store.ts";
import type { FrameSink, HttpHeaders, Reply } from "./reply.ts";

/** What every part of one HTTP endpoint shares. */
export interface Endpoint {
  readonly server: Server;
  readonly clock: Clock;
  readonly events: EventStore;
  /** How long a client that was sent away should wait before it comes back. */
  readonly retryMs: number;
  readonly maxBodyBytes: number;
  /** Starts an event stream and keeps it alive. */
  openSink(reply: Reply, headers: HttpHeaders): FrameSink;
}
