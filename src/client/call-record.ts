import { randomUUID } from "node:crypto";
import type { Clock } from "../async/clock.ts";
import type { Delivery } from "../errors/delivery.ts";
import type { RawJson } from "../json/raw.ts";
import type { ToolOutcome } from "../tools/provider.ts";
import type { Agreement } from "./agreement.ts";
import { type Audit, digestOf } from "./audit.ts";

/** A call, as far as it is known before it is made. */
export interface CallSubject {
  readonly tool: string;
  readonly args: RawJson;
  readonly caller: string | undefined;
  readonly trace?: string | undefined;
}

/** What the work on a call notes for its record. */
export interface Tally {
  bytesSent: number;
  bytesReceived: number;
}

/** Runs a call and writes it down, whichever way it ends. */
export type Recorded = (
  subject: CallSubject,
  work: (tally: Tally) => Promise<ToolOutcome>,
) => Promise<ToolOutcome>;

export interface RecordedOptions {
  readonly audit: Audit | undefined;
  readonly target: string;
  readonly clock: Clock;
  /** What was settled with the server last. */
  readonly agreement: () => Agreement | undefined;
}

export function createRecorded({ audit, target, clock, agreement }: RecordedOptions): Recorded {
  if (audit === undefined) return (_, work) => work({ bytesSent: 0, bytesReceived: 0 });
  return async ({ tool, args, caller, trace }, work) => {
    const startedAt = clock.now();
    const tally: Tally = { bytesSent: 0, bytesReceived: 0 };
    const finish = (outcome: string, delivery: Delivery | undefined): Promise<void> => {
      const mode = agreement()?.mode;
      return audit.record({
        time: new Date(startedAt).toISOString(),
        call: randomUUID(),
        trace,
        caller,
        server: target,
        tool,
        era: mode?.kind,
        revision: mode?.revision,
        argumentsDigest: digestOf(args),
        ...redacted(audit, args, tool),
        outcome,
        delivery,
        ...tally,
        durationMs: clock.now() - startedAt,
      });
    };
    let outcome: ToolOutcome;
    try {
      outcome = await work(tally);
    } catch (error) {
      const { code, delivery } = error as { readonly code?: unknown; readonly delivery?: Delivery };
      await finish(typeof code === "string" ? code : "unknown", delivery);
      throw error;
    }
    const isError = outcome.kind === "complete" && outcome.result.at("isError")?.value === true;
    await finish(isError ? "tool_error" : outcome.kind === "complete" ? "ok" : outcome.kind, undefined);
    return outcome;
  };
}

/** A redaction that fails says so in the record: it must neither leak the arguments nor fail the call. */
function redacted({ redact }: Audit, args: RawJson, tool: string): { readonly arguments?: unknown } {
  if (redact === undefined) return {};
  try {
    return { arguments: redact(args.value, tool) };
  } catch {
    return { arguments: "[redaction failed]" };
  }
}
