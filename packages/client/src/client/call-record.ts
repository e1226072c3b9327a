import { randomUUID } from "node:crypto";
import { type Awaitable, type Clock, dateOf } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import { type Audit, bounded, describeEnd, type CallEnd, type Outcome } from "@junctor/core/provider";
import type { Agreement } from "./conversation.ts";

/** A call, as far as it is known before it is made. */
interface CallSubject {
  readonly tool: string;
  readonly args: RawJson;
  readonly caller: string | undefined;
  /** Looked up only for those who write it down. */
  readonly trace?: () => string | undefined;
}

/** What the work on a call notes for its record. */
export interface Tally {
  bytesSent: number;
  bytesReceived: number;
}

/** Runs a call and writes it down, whichever way it ends. */
export type Recorded = (subject: CallSubject, work: (tally: Tally) => Promise<Outcome>) => Promise<Outcome>;

interface RecordedOptions {
  readonly audit: Audit;
  readonly target: string;
  readonly clock: Clock;
  /** The last agreement with the server. */
  readonly agreement: () => Agreement | undefined;
}

export function newTally(): Tally {
  return { bytesSent: 0, bytesReceived: 0 };
}

export function createRecorded({ audit, target, clock, agreement }: RecordedOptions): Recorded {
  return async ({ tool, args, caller, trace }, work) => {
    const startedAt = clock.now();
    const tally = newTally();
    const finish = (end: CallEnd): Awaitable<boolean> => {
      const mode = agreement()?.mode;
      return audit.record({
        time: dateOf(startedAt, clock),
        call: randomUUID(),
        trace: trace?.(),
        caller: caller === undefined ? undefined : bounded(caller),
        server: bounded(target),
        tool: bounded(tool),
        era: mode?.kind,
        revision: mode?.revision,
        ...audit.describeArguments(args, tool),
        ...describeEnd(end),
        ...tally,
        durationMs: clock.now() - startedAt,
      });
    };
    const outcome = await work(tally).catch(async (error: unknown) => {
      await finish({ kind: "failed", error });
      throw error;
    });
    await finish(outcome);
    return outcome;
  };
}
