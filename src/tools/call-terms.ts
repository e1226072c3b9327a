import { type Awaitable, isPromise, settled } from "../async/awaitable.ts";
import { fromSignal } from "../async/cancellation.ts";
import type { Clock } from "../async/clock.ts";
import { waitFor } from "../async/clock.ts";
import { type AskCaller, type CallContext, withContext } from "./context.ts";
import type { Provider, ToolCall, ToolOutcome } from "./provider.ts";
import { TimeLimit } from "./time-limit.ts";

/** What middlewares asked for a call besides what is called. The provider does not get to see it. */
export type CallTerms = Pick<ToolCall, "timeoutMs" | "mapEvent">;

/** Nothing was asked for. */
export const noTerms: CallTerms = {};

/** The terms of outer middlewares together with those of a call. */
export function addTerms(outer: CallTerms, call: ToolCall): CallTerms {
  if (!hasTerms(call)) return outer;
  const { timeoutMs = Infinity, mapEvent } = call;
  if (!(timeoutMs >= 0)) throw new RangeError(`timeoutMs must be a number of milliseconds, not ${timeoutMs}`);
  return {
    timeoutMs: Math.min(timeoutMs, outer.timeoutMs ?? Infinity),
    mapEvent: inTurn(mapEvent, outer.mapEvent),
  };
}

/** The call as the next one in the chain gets it. */
export function withoutTerms(call: ToolCall): ToolCall {
  if (!hasTerms(call)) return call;
  const { timeoutMs: _, mapEvent: __, ...bare } = call;
  return bare;
}

/** Calls a tool under terms. No timer and no listener is left when it settles. */
export function callUnder(
  { timeoutMs = Infinity, mapEvent }: CallTerms,
  { provider, clock }: { readonly provider: Provider; readonly clock: Clock },
  call: ToolCall,
  context: CallContext,
): Awaitable<ToolOutcome> {
  const mapped = mapEvent === undefined ? context : withMappedEvents(context, mapEvent);
  if (timeoutMs === Infinity) return settled(provider.callTool(call, mapped));
  const limit = new TimeLimit(timeoutMs, context.cancellation ?? fromSignal(context.signal), clock);
  const outcome = settled(provider.callTool(call, withLimit(mapped, limit)));
  if (!isPromise(outcome)) return outcome;
  limit.watch();
  return waitFor(outcome, limit.cancellation).finally(() => limit.stop());
}

function hasTerms({ timeoutMs, mapEvent }: ToolCall): boolean {
  return timeoutMs !== undefined || mapEvent !== undefined;
}

type MapEvent = NonNullable<CallTerms["mapEvent"]>;

function inTurn(inner: MapEvent | undefined, outer: MapEvent | undefined): MapEvent | undefined {
  if (inner === undefined || outer === undefined) return inner ?? outer;
  return (event) => {
    const mapped = inner(event);
    return mapped === undefined ? undefined : outer(mapped);
  };
}

function withMappedEvents(context: CallContext, mapEvent: MapEvent): CallContext {
  const tell: CallContext["emit"] = async (event) => {
    const mapped = mapEvent(event);
    if (mapped !== undefined) await context.emit(mapped);
  };
  return withContext(context, { emit: handled(tell) });
}

/** The same context, stopped by the limit: what a provider that does not heed its signal says later is dropped. */
function withLimit(context: CallContext, limit: TimeLimit): CallContext {
  const { cancellation } = limit;
  return withContext(context, {
    cancellation,
    emit: handled(async (event) => (cancellation.isAborted ? undefined : context.emit(event))),
    ask: context.ask === undefined ? undefined : withoutTime(context.ask, limit),
  });
}

/** The time that people take to answer is not the tool's. */
function withoutTime(ask: AskCaller, limit: TimeLimit): AskCaller {
  return async (question, signal) => {
    const release = limit.hold();
    try {
      return await ask(question, signal);
    } finally {
      release();
    }
  };
}

/** A tool that does not wait for what it emits must not end the process when that fails; one that waits hears of it. */
function handled(emit: CallContext["emit"]): CallContext["emit"] {
  return (event) => {
    const told = emit(event);
    told.catch(() => {});
    return told;
  };
}
