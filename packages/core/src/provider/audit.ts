import {
  andThen,
  type Awaitable,
  isPromise,
  recover,
  settled,
  type Clock,
  timedOut,
  waitFor,
} from "../async/index.ts";
import {
  type Delivery,
  NotFoundError,
  ScopeError,
  TimeoutError,
  ToolError,
  ValidationError,
} from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { CallKind } from "../mcp/index.ts";
import type { CallEnd } from "./middleware.ts";
import type { Operation } from "./provider.ts";

/** One call, as it is recorded. */
export interface AuditRecord {
  /** When it began, ISO 8601. */
  readonly time: string;
  /** Names this call and no other. */
  readonly call: string;
  /** The `traceparent` the call came with, which ties it to the records of other systems. */
  readonly trace: string | undefined;
  readonly caller: string | undefined;
  /** The issuer that vouched for the caller, and the OAuth client that acts for it. */
  readonly issuer?: string | undefined;
  readonly clientId?: string | undefined;
  /** What was decided about the call, and the rule of the config that decided. */
  readonly decision?: "allow" | "deny" | "step_up" | "connect" | undefined;
  readonly rule?: string | undefined;
  /** Whose credential the server saw: one for all callers, or the caller's own. */
  readonly credential?: "shared" | "own" | undefined;
  readonly server: string;
  /** What was called; a tool when left out. An `event` is not a call: `tool` names it. */
  readonly kind?: Exclude<CallKind, "tool"> | "event" | undefined;
  /** The name it was called by; of a resource, its URI. */
  readonly tool: string;
  /** What its server calls it, where that is known. */
  readonly ownName?: string | undefined;
  readonly era: "modern" | "legacy" | undefined;
  readonly revision: string | undefined;
  /** SHA-256 of the arguments as they were sent. */
  readonly argumentsDigest: string;
  /** The arguments themselves, redacted, where that was asked for. */
  readonly arguments?: unknown;
  /**
   * `begun` in the record at the start of a call, which has another at its end under the same `call`. Else `ok`, `tool_error`,
   * `input_required`, `refused` when the tool was not called at all, or the code of the error.
   */
  readonly outcome: string;
  /** Of an event: why it happened, and the first 8 hex digits of the token's hash. */
  readonly reason?: string | undefined;
  readonly token?: string | undefined;
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
  /**
   * When given, the arguments are recorded too, as this function returns them. `text` is their JSON as it
   * came, with exact numbers; `server` is the one that a gateway sends them to.
   */
  readonly redact?: (args: unknown, tool: string, text: string, server?: string) => unknown;
  /** Arguments with more bytes are not recorded, only how many there were; 16 KiB. */
  readonly maxArgumentBytes?: number;
  /**
   * What happens to a call whose record cannot be written: `open` (the default) lets it continue, `closed`
   * refuses it before anything is sent, and withholds the result of one that only reads.
   */
  readonly onFailure?: "open" | "closed";
  /** Rejects while no record of a caller can be written, such as `ready` of an audit file. Asked before each call. */
  readonly ready?: (caller: string | undefined) => void | Promise<void>;
  /** How long a call may wait for the sink; 50, and 5000 if it is `closed`. */
  readonly maxWaitMs?: number;
  /** The most records that wait for a slow sink; more are dropped and counted. */
  readonly maxWaiting?: number;
  readonly onDropped?: (count: number) => void;
  /** Called for each record that the sink could not take. */
  readonly onFailed?: (error: unknown) => void;
  /** Called when the sink takes records again. */
  readonly onRecovered?: () => void;
}

/** Hands records to a sink without ever delaying a call for long. Never throws, never rejects. */
export interface Audit {
  /** Whether the sink took it in time. Returns without a promise if the sink does. */
  record(record: AuditRecord): Awaitable<boolean>;
  /** Whether records of a caller can be written. Always true, without a check, when `onFailure` is `open`. */
  isReady(caller: string | undefined): Awaitable<boolean>;
  /** The members of a record about the arguments of a call. `isWanted`: whether the arguments themselves are recorded too. */
  describeArguments(
    args: RawJson,
    tool: string,
    isWanted?: boolean,
    server?: string,
  ): Pick<AuditRecord, "argumentsDigest" | "arguments">;
}

export function createAudit(options: AuditOptions, clock: Clock): Audit {
  const { sink, ready, redact, maxWaiting = 1000, onDropped, onFailed, onRecovered } = options;
  const { maxArgumentBytes = 16 * 1024, onFailure = "open" } = options;
  const { maxWaitMs = onFailure === "open" ? 50 : 5000 } = options;
  let waiting = 0;
  let dropped = 0;
  let isFailing = false;
  /** Whether something that may fail or take too long was done in time. */
  const isDone = (work: () => void | Promise<void>): Awaitable<boolean> => {
    const done = recover<boolean>(
      () => andThen(settled(work()), () => true),
      (error) => {
        isFailing = true;
        notify(onFailed, error);
        return false;
      },
    );
    return isPromise(done) ? waitFor(done, { ms: maxWaitMs, clock }).then(inTime) : done;
  };
  const inTime = (done: boolean | typeof timedOut): boolean => {
    if (done === timedOut && onFailure === "closed") {
      isFailing = true;
      notify(onFailed, new Error(`The record was not written within ${maxWaitMs} ms`));
    }
    return done === true;
  };
  const recovered = (isRecorded: boolean): boolean => {
    if (isRecorded && isFailing) {
      isFailing = false;
      notify(onRecovered, undefined);
    }
    return isRecorded;
  };
  return {
    record: (record) => {
      if (waiting >= maxWaiting) {
        notify(onDropped, ++dropped);
        return false;
      }
      return andThen(
        isDone(() => {
          const taken = settled(sink(record));
          if (!isPromise(taken)) return;
          waiting++;
          return taken.finally(() => waiting--);
        }),
        recovered,
      );
    },
    isReady: (caller) => (onFailure === "open" || ready === undefined ? true : isDone(() => ready(caller))),
    describeArguments: (args, tool, isWanted = true, server) => {
      const argumentsDigest = digestOf(args);
      if (redact === undefined || !isWanted) return { argumentsDigest };
      const size = args.byteLength;
      if (size > maxArgumentBytes) return { argumentsDigest, arguments: `[${size} bytes, not recorded]` };
      return { argumentsDigest, arguments: redacted(redact, args, tool, server) };
    },
  };
}

/** The digest that stands for arguments in a record. */
function digestOf(args: RawJson): string {
  return process.getBuiltinModule("node:crypto").createHash("sha256").update(args.bytes).digest("hex");
}

/** A listener that throws must not fail the call. */
function notify<T>(listener: ((value: T) => void) | undefined, value: T): void {
  try {
    listener?.(value);
  } catch {
    // Nothing else can report it.
  }
}

/** A failed redaction is noted in the record: it must neither leak the arguments nor fail the call. */
function redacted(
  redact: NonNullable<AuditOptions["redact"]>,
  args: RawJson,
  tool: string,
  server: string | undefined,
): unknown {
  try {
    return redact(args.value, tool, args.text, server);
  } catch {
    return "[redaction failed]";
  }
}

/** What a record says about how a call ended. */
export function describeEnd(
  end: CallEnd,
  operation?: Pick<Operation, "ref">,
): Pick<AuditRecord, "outcome" | "code" | "delivery"> {
  // The call goes on as a task. Its end is recorded by the first `tasks/get` that sees it.
  if (end.task !== undefined && operation?.ref === undefined)
    return { outcome: "task", code: undefined, delivery: undefined };
  switch (end.kind) {
    case "complete": {
      if (end.refusal !== undefined) return refused(end.refusal);
      const isError = end.result.at("isError")?.value === true;
      return { outcome: isError ? "tool_error" : "ok", code: undefined, delivery: undefined };
    }
    case "input_required":
      return { outcome: end.kind, code: undefined, delivery: undefined };
    case "working":
    case "cancelled":
      return { outcome: "task", code: undefined, delivery: undefined };
    case "failed": {
      const error = causeOf(end.error);
      const { code, delivery } = factsOf(error);
      // A middleware refuses with a plain `ToolError`.
      if ("isRefused" in end && end.isRefused) return refused(code === "tool.failed" ? "tool.refused" : code);
      return isRefusal(error) ? refused(code) : { outcome: code, code, delivery };
    }
  }
}

function refused(code: string): Pick<AuditRecord, "outcome" | "code" | "delivery"> {
  return { outcome: "refused", code, delivery: "not_sent" };
}

/**
 * Errors that mean by themselves that nothing was called: no such tool for this caller, or
 * arguments we would not send.
 */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof NotFoundError ||
    error instanceof ScopeError ||
    (error instanceof ValidationError && error.subject === "arguments")
  );
}

/** A call that was stopped for its time limit ends with a `ToolError` for the model; the record has the real reason. */
function causeOf(error: unknown): unknown {
  return error instanceof ToolError && error.cause instanceof TimeoutError ? error.cause : error;
}

/** Anything can be thrown, even a value that throws when it is read. */
function factsOf(error: unknown): { readonly code: string; readonly delivery: Delivery | undefined } {
  try {
    const { code, delivery } = (error ?? {}) as { readonly code?: unknown; readonly delivery?: Delivery };
    return { code: typeof code === "string" ? bounded(code) : "unknown", delivery };
  } catch {
    return { code: "unknown", delivery: undefined };
  }
}

/** A caller may invent a name as long as a request; only this much of it is recorded. */
const maxLength = 256;

/**
 * A text of a caller or server, as it is recorded or logged: its first 256 characters, and no
 * half of a surrogate pair.
 */
export function bounded(text: string): string {
  return text.length <= maxLength ? text : text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "");
}

/** The `traceparent` of a call as it is recorded; undefined for a value that is not text. */
export function toTrace(traceparent: unknown): string | undefined {
  return typeof traceparent === "string" ? bounded(traceparent) : undefined;
}
