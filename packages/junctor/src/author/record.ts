import { RpcError, ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import type { Question } from "@junctor/core/mcp";
import {
  type CallContext,
  type CallEvent,
  createCallContext,
  failure,
  type Operation,
  type Outcome,
  type Provider,
  type Round,
  withContext,
  type Wrapper,
} from "@junctor/core/provider";
import { type CassetteHead, type CassetteWriter, type RecordedCall, recordedParts } from "./cassette.ts";

/** The state of a recorded question: the provider's own, and whether the provider gets all answers again. */
interface RecordedState {
  readonly state: unknown;
  readonly keepsAnswers: boolean;
}

/**
 * Wraps a provider, and writes what it lists and how each call ends. Questions are recorded as rounds, whether a call asks between two
 * rounds or in its middle. Tasks are neither offered nor recorded: callers wait for results.
 */
export async function recordProvider(
  inner: Provider,
  head: CassetteHead,
  writer: CassetteWriter,
): Promise<Provider> {
  const context = createCallContext();
  writer.writeHead(head);
  for (const part of recordedParts) {
    const { items } = await inner.list(part, context);
    for (const item of items) writer.writeItem(part, item);
  }
  const recorded: Wrapper = {
    list: (part, listing) => inner.list(part, listing),
    call: (operation, calling) => recordCall(inner, operation, calling, writer),
    find: inner.find?.bind(inner),
    watch: inner.watch?.bind(inner),
    offers: (caller) => {
      const { serves } = inner.offers(caller);
      return { serves: (method) => !method.startsWith("tasks/") && serves(method) };
    },
    onChange: inner.onChange?.bind(inner),
  };
  return recorded;
}

async function recordCall(
  inner: Provider,
  operation: Operation,
  context: CallContext,
  writer: CassetteWriter,
): Promise<Outcome> {
  const { round } = operation;
  const own = round?.state as RecordedState | undefined;
  const answers: { [key: string]: RawJson } = { ...round?.answers };
  let events: CallEvent[] = [];
  const write = (end: RecordedCall["end"]): void => {
    const { method: call, name, arguments: args } = operation;
    writer.writeCall({ call, name, arguments: args, answers: { ...answers }, events, end });
    events = [];
  };
  const { ask } = context;
  const asking =
    ask &&
    (async (question: Question, signal: AbortSignal): Promise<RawJson> => {
      const key = `question-${Object.keys(answers).length + 1}`;
      write({ kind: "asks", asks: { [key]: question } });
      return (answers[key] = await ask(question, signal));
    });
  const observed = withContext(context, {
    ask: asking,
    emit: (event: CallEvent) => {
      if (events.length < maxEvents) events.push(event);
      return context.emit(event);
    },
  });
  try {
    const outcome = await inner.call({ ...operation, round: round && toInner(round, own) }, observed);
    if (outcome.task !== undefined) return outcome;
    if (outcome.kind === "complete") write({ kind: "result", result: outcome.result });
    if (outcome.kind !== "input_required") return outcome;
    const { asks, state, keepsAnswers = true } = outcome;
    if (Object.keys(asks).length > 0) write({ kind: "asks", asks });
    return { kind: "input_required", asks, state: { state, keepsAnswers } satisfies RecordedState };
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (error instanceof ToolError)
      write({ kind: "result", result: RawJson.fromValue(failure(error.message)) });
    if (error instanceof RpcError) {
      const { rpcCode: code, message, data } = error;
      write({ kind: "error", error: { code, message, ...(data === undefined ? {} : { data }) } });
    }
    throw error;
  }
}

/** The most events that are recorded of one call. */
const maxEvents = 1000;

function toInner(round: Round, own: RecordedState | undefined): Round {
  const { answers, latest = answers } = round;
  return { answers: own?.keepsAnswers === false ? latest : answers, latest, state: own?.state };
}
