import { createHash } from "node:crypto";
import { type Clock, settlesWithin } from "../async/clock.ts";
import type { Delivery } from "../errors/delivery.ts";
import type { RawJson } from "../json/raw.ts";

/** One call, as it is written down. */
export interface AuditRecord {
  /** When it began, ISO 8601. */
  readonly time: string;
  /** Names this call and no other. */
  readonly call: string;
  /** The `traceparent` the call came with, which ties it to what others wrote down about it. */
  readonly trace: string | undefined;
  readonly caller: string | undefined;
  readonly server: string;
  readonly tool: string;
  readonly era: "modern" | "legacy" | undefined;
  readonly revision: string | undefined;
  /** SHA-256 of the arguments as they were sent. */
  readonly argumentsDigest: string;
  /** The arguments themselves, redacted, where that was asked for. */
  readonly arguments?: unknown;
  /** `ok`, `tool_error`, `input_required`, or the code of the error. */
  readonly outcome: string;
  /** Of a call that failed: whether it was sent, and answered. */
  readonly delivery: Delivery | undefined;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly durationMs: number;
}

/** Takes records. It may be slow for a while; it is not waited for longer than a bound. */
export type AuditSink = (record: AuditRecord) => void | Promise<void>;

export interface AuditOptions {
  readonly sink: AuditSink;
  /** Given, the arguments are recorded too, after this changed them. */
  readonly redact?: (args: unknown, tool: string) => unknown;
  /** How long a call may wait for the sink. */
  readonly maxWaitMs?: number;
  /** Most records that wait for a slow sink; more are dropped and counted. */
  readonly maxWaiting?: number;
  readonly onDropped?: (count: number) => void;
  /** Told of a record the sink could not take; the call is not failed for it. */
  readonly onFailed?: (error: unknown) => void;
}

/** Hands records to a sink without ever holding a call up for long. */
export interface Audit {
  record(record: AuditRecord): Promise<void>;
  readonly redact: AuditOptions["redact"];
}

export function createAudit(options: AuditOptions, clock: Clock): Audit {
  const { sink, redact, maxWaitMs = 50, maxWaiting = 1000, onDropped, onFailed } = options;
  let waiting = 0;
  let dropped = 0;
  return {
    redact,
    record: async (record) => {
      if (waiting >= maxWaiting) {
        onDropped?.(++dropped);
        return;
      }
      waiting++;
      const taken = (async () => {
        try {
          await sink(record);
        } catch (error) {
          onFailed?.(error);
        } finally {
          waiting--;
        }
      })();
      await settlesWithin(taken, maxWaitMs, clock);
    },
  };
}

/** The digest under which arguments are known. */
export function digestOf(args: RawJson): string {
  return createHash("sha256").update(args.bytes).digest("hex");
}
