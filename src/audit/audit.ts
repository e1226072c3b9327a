import { createHash } from "node:crypto";
import { type Awaitable, isPromise, recover, settled } from "../async/awaitable.ts";
import { type Clock, waitFor } from "../async/clock.ts";
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
  /** The name it was called by. */
  readonly tool: string;
  /** What its server calls it, where that is known. */
  readonly ownName?: string | undefined;
  readonly era: "modern" | "legacy" | undefined;
  readonly revision: string | undefined;
  /** SHA-256 of the arguments as they were sent. */
  readonly argumentsDigest: string;
  /** The arguments themselves, redacted, where that was asked for. */
  readonly arguments?: unknown;
  /** `ok`, `tool_error`, `input_required`, `refused` when the tool was not called at all, or the code of the error. */
  readonly outcome: string;
  /** The code of the error a call failed with or was refused by. */
  readonly code: string | undefined;
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
  /** Given, the arguments are recorded too, after this changed them. `text` is their JSON as it came, with exact numbers. */
  readonly redact?: (args: unknown, tool: string, text: string) => unknown;
  /** Arguments with more bytes are not recorded, only how many there were; 16 KiB. */
  readonly maxArgumentBytes?: number;
  /** How long a call may wait for the sink. */
  readonly maxWaitMs?: number;
  /** Most records that wait for a slow sink; more are dropped and counted. */
  readonly maxWaiting?: number;
  readonly onDropped?: (count: number) => void;
  /** Told of a record the sink could not take; the call is not failed for it. */
  readonly onFailed?: (error: unknown) => void;
}

/** Hands records to a sink without ever holding a call up for long, and without ever failing it. */
export interface Audit {
  /** Done at once when the sink is. Never throws, never rejects. */
  record(record: AuditRecord): Awaitable<void>;
  /** What a record says about the arguments of a call. `isWanted`: whether they are recorded themselves; as far as they are. */
  describeArguments(
    args: RawJson,
    tool: string,
    isWanted?: boolean,
  ): Pick<AuditRecord, "argumentsDigest" | "arguments">;
}

export function createAudit(options: AuditOptions, clock: Clock): Audit {
  const { sink, redact, maxWaitMs = 50, maxWaiting = 1000, onDropped, onFailed } = options;
  const { maxArgumentBytes = 16 * 1024 } = options;
  let waiting = 0;
  let dropped = 0;
  return {
    record: (record) => {
      if (waiting >= maxWaiting) return tell(onDropped, ++dropped);
      const taken = recover(
        () => settled(sink(record)),
        (error) => tell(onFailed, error),
      );
      if (!isPromise(taken)) return;
      waiting++;
      const noted = taken.finally(() => waiting--);
      return waitFor(noted, { ms: maxWaitMs, clock }).then(() => {});
    },
    describeArguments: (args, tool, isWanted = true) => {
      const argumentsDigest = digestOf(args);
      if (redact === undefined || !isWanted) return { argumentsDigest };
      const size = args.byteLength;
      if (size > maxArgumentBytes) return { argumentsDigest, arguments: `[${size} bytes, not recorded]` };
      return { argumentsDigest, arguments: redacted(redact, args, tool) };
    },
  };
}

/** The digest under which arguments are known. */
function digestOf(args: RawJson): string {
  return createHash("sha256").update(args.bytes).digest("hex");
}

/** A listener that throws must not fail the call. */
function tell<T>(listener: ((told: T) => void) | undefined, told: T): void {
  try {
    listener?.(told);
  } catch {
    // There is no other listener to tell.
  }
}

/** A redaction that fails says so in the record: it must neither leak the arguments nor fail the call. */
function redacted(redact: NonNullable<AuditOptions["redact"]>, args: RawJson, tool: string): unknown {
  try {
    return redact(args.value, tool, args.text);
  } catch {
    return "[redaction failed]";
  }
}
