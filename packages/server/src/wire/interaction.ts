import { andThen, type Awaitable, recover, settled, type Clock, sleep } from "@junctor/core/async";
import {
  ClosedError,
  RpcError,
  ToolError,
  UpstreamError,
  type UpstreamReason,
  SealError,
} from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type CacheHints,
  closedForm,
  isAcceptable,
  lacking,
  lackingAny,
  missingCapability,
  notOffered,
  toLegacyQuestion,
  visitedMethod,
  isAtLeast,
  toRelayable,
  type Seal,
  type WireContext,
  type Question,
} from "@junctor/core/mcp";
import type { AskCaller, CallContext, Answers, InputRequired, Outcome, Round } from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import { toCreatedTask } from "./tasks.ts";

export interface InteractionOptions {
  readonly seal: Seal;
  readonly clock: Clock;
  /** How long a caller may take to come back with its answers. */
  readonly stateTtlMs: number;
  /** The most rounds of questions in one legacy call. */
  readonly maxRounds: number;
  /** How long a legacy client may take to answer. */
  readonly askTimeoutMs: number;
}

/** Makes one attempt at a request, with the answers and the state of earlier rounds. */
type RoundAttempt = (round: Round | undefined) => Awaitable<Outcome>;

/** How an interactive request ends on the wire: with the provider's result, a request for input, or a task. */
interface Interacted {
  readonly kind: "complete" | "input_required" | "task";
  readonly result: RawJson;
  readonly hints?: CacheHints | undefined;
}

/** Runs a request that may ask its caller something, by the means of the caller's era. `name` is the tool, prompt or resource. */
export function interact(
  request: Request,
  wire: WireContext,
  options: InteractionOptions,
  name: string,
  attempt: RoundAttempt,
): Awaitable<Interacted> {
  if (wire.era.kind === "modern") return interactModern(request, wire, options, name, attempt);
  return andThen(settled(attempt(undefined)), (outcome) => {
    assertNoTask(outcome);
    return outcome.kind === "complete" ? outcome : interactLegacy(outcome, wire, options, attempt);
  });
}

/** One round: the answers come in the request, the next questions go out in the result, the state goes with them. */
function interactModern(
  request: Request,
  wire: WireContext,
  { seal, stateTtlMs }: InteractionOptions,
  name: string,
  attempt: RoundAttempt,
): Awaitable<Interacted> {
  const toOwnBinding = (): string => toBinding(wire.caller, request.method, request.params);
  const { observation } = wire;
  const round = readRetry(request, wire, seal, toOwnBinding);
  return andThen(settled(attempt(round)), (outcome) => {
    const { task } = outcome;
    if (task !== undefined)
      return { kind: "task", result: toCreatedTask({ ...outcome, task }, name, seal, wire.caller) };
    assertNoTask(outcome);
    if (outcome.kind === "complete") return outcome;
    const { asks, state, keepsAnswers = true } = outcome;
    const missing = lackingAny(asks, wire.era.kind === "modern" ? wire.era.capabilities : {});
    if (missing !== undefined) throw missingCapability(missing);
    const given = keepsAnswers ? Object.entries(round?.answers ?? {}) : [];
    const answers = given.map(([key, raw]) => [key, raw.text] as const);
    const questions = Object.keys(asks).length;
    const hasAsks = questions > 0;
    const seen = observation?.carried();
    observation?.asked(questions);
    const needsState = state !== undefined || answers.length > 0 || !hasAsks || seen !== undefined;
    const result = {
      resultType: "input_required",
      ...(hasAsks ? { inputRequests: asks } : {}),
      ...(needsState
        ? { requestState: sealState({ answers, state, seen }, seal, toOwnBinding(), stateTtlMs) }
        : {}),
    };
    return { kind: "input_required", result: RawJson.fromValue(result) };
  });
}

function readRetry(
  request: Request,
  { observation }: WireContext,
  seal: Seal,
  toOwnBinding: () => string,
): Round | undefined {
  const given = request.params?.at("inputResponses");
  const token = request.params?.at("requestState");
  if (given === undefined && token === undefined) return undefined;
  if (given !== undefined && given.kind !== "object") {
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: inputResponses must be an object of answers by key",
    );
  }
  const sealed = token === undefined ? undefined : openState(token, seal, toOwnBinding());
  if (sealed?.seen !== undefined) observation?.resumed(sealed.seen);
  // A map made by `fromEntries` has own properties only, whatever the keys are called.
  const kept = (sealed?.answers ?? []).map(([key, text]) => [key, RawJson.fromText(text, true)] as const);
  const fresh = Object.keys(given?.value ?? {}).map((key) => [key, given?.at(key)] as const);
  const latest = Object.fromEntries(fresh) as Answers;
  const answers = Object.fromEntries([...kept, ...fresh]) as Answers;
  return { answers, latest, state: sealed?.state };
}

/** All rounds: the client is asked by requests on the call's own stream, and the call stays open meanwhile. */
async function interactLegacy(
  first: InputRequired,
  wire: WireContext,
  options: InteractionOptions,
  attempt: RoundAttempt,
): Promise<Interacted> {
  let outcome: InputRequired = first;
  let answers: Answers = {};
  for (let round = 0; round < options.maxRounds; round++) {
    const latest = await askAll(outcome, wire, options);
    answers = { ...answers, ...latest };
    let next: Outcome;
    try {
      next = await attempt({ answers, latest, state: outcome.state });
    } catch (error) {
      throw ofLaterRound(error);
    }
    assertNoTask(next);
    if (next.kind === "complete") return next;
    outcome = next;
  }
  throw new ToolError(`Gave up after ${options.maxRounds} rounds of questions.`);
}

function assertNoTask(
  outcome: Outcome,
): asserts outcome is Extract<Outcome, { readonly kind: "complete" | "input_required" }> {
  const isOver = outcome.kind === "complete" || outcome.kind === "input_required";
  if (!isOver || outcome.task !== undefined)
    throw new TypeError("The provider started a task for a caller that knows none");
}

/** For a legacy caller all rounds are one call: if a later round was not sent, the server still got an earlier one. */
function ofLaterRound(error: unknown): unknown {
  if (!(error instanceof UpstreamError) || error.delivery !== "not_sent") return error;
  const { server, code } = error;
  const text = `${server} asked something for this call, and did not get the answers: ${error.message}`;
  const reason = code.slice("upstream.".length) as UpstreamReason;
  return new UpstreamError(reason, text, { server, delivery: "outcome_unknown", cause: error });
}

/** The pause before the next round, if the outcome has no questions. */
const pauseMs = 250;

async function askAll(
  { asks }: InputRequired,
  wire: WireContext,
  { clock, askTimeoutMs }: InteractionOptions,
): Promise<Answers> {
  // Checks all questions before the first one is sent.
  const entries = Object.entries(asks).map(([key, ask]) => [key, toAskable(ask, wire)] as const);
  if (entries.length === 0) await sleep(pauseMs, clock, wire.cancellation.signal);
  const stopping = new AbortController();
  const late = new RpcError("rpc.internal", `it did not answer within ${askTimeoutMs / 1000} s`);
  const stopTimer = clock.timer(askTimeoutMs, () => stopping.abort(late));
  const stop = (): void => stopping.abort(wire.cancellation.signal.reason);
  wire.cancellation.signal.addEventListener("abort", stop, { once: true });
  try {
    const answers = entries.map(
      async ([key, ask]) => [key, await askOne(ask, wire, stopping.signal)] as const,
    );
    return Object.fromEntries(await Promise.all(answers));
  } finally {
    stopTimer();
    // If one question could not be answered, the answers to the others are not needed.
    stopping.abort(new DOMException("The questions are no longer asked", "AbortError"));
    wire.cancellation.signal.removeEventListener("abort", stop);
  }
}

/**
 * Asks one question. If a client refuses a form with an error, the provider gets a form that the user closed. Other refused questions
 * fail. An answer that does not fit is neither consent nor refusal, so the provider does not get it.
 */
async function askOne(ask: Question, wire: WireContext, signal: AbortSignal): Promise<RawJson> {
  try {
    const answer = await askClient(ask, wire, signal);
    if (answer !== undefined && isAcceptable(ask, answer)) return answer;
    if (answer !== undefined)
      throw new ToolError(`The client's answer to ${ask.method} does not fit the question.`);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const closed = closedForm(ask);
    if (closed !== undefined) return closed;
    throw new ToolError(`The client refused ${ask.method}: ${error.message}`, { cause: error });
  }
  throw cannotAsk(ask);
}

/** A function that asks a legacy caller during a call; undefined for callers that cannot be asked. */
export function createAsk(wire: WireContext): AskCaller | undefined {
  const { era } = wire;
  if (era.kind === "modern" || era.session === undefined || wire.ask === undefined) return undefined;
  return async (ask, signal) => {
    const askable = toAskable(ask, wire);
    const answer = await askClient(askable, wire, signal);
    if (answer === undefined)
      throw new RpcError("rpc.method_not_found", `The client does not offer ${askable.method}`);
    return answer;
  };
}

/** Sends a question unchanged. Undefined if the client cannot be asked. Throws a `ToolError` if it can no longer answer. */
async function askClient(
  { method, params }: Question,
  wire: WireContext,
  signal: AbortSignal,
): Promise<RawJson | undefined> {
  const { observation } = wire;
  try {
    observation?.asked(1);
    const answer = await wire.ask?.(
      method,
      params === undefined ? undefined : RawJson.fromValue(params),
      signal,
    );
    observation?.answered();
    return answer;
  } catch (error) {
    if (!(error instanceof ClosedError)) throw error;
    throw new ToolError(`The client left before it answered ${method}.`, { cause: error });
  }
}

/** A function that tells a legacy caller that its user is done with a page; undefined for callers that do not know this notification. */
export function createVisited(wire: WireContext): CallContext["visited"] {
  const session = wire.era.kind === "legacy" ? wire.era.session : undefined;
  if (session === undefined || !isAtLeast(session.handshake.revision, "2025-11-25")) return undefined;
  if (session.handshake.capabilities.elicitation?.url === undefined) return undefined;
  return (elicitationId) => {
    const params = RawJson.fromValue({ elicitationId });
    if (wire.isOver !== false) return session.announce?.(visitedMethod, params);
    // On the stream of the call while there is one: not every client listens to another stream.
    void recover(
      () => wire.notify(visitedMethod, params),
      () => {},
    );
  };
}

/** The question as the client's revision has it. Throws a `ToolError` when it cannot be asked. */
function toAskable(ask: Question, { era, ask: send }: WireContext): Question {
  const handshake = era.kind === "legacy" ? era.session?.handshake : undefined;
  // A declared capability counts only if the revision has it.
  const declared = handshake && toRelayable(handshake.capabilities, handshake.revision).capabilities;
  const canAsk =
    handshake !== undefined && declared !== undefined && send !== undefined && !lacking(ask, declared);
  const projected = canAsk ? toLegacyQuestion(ask, handshake.revision, crypto.randomUUID()) : undefined;
  if (projected === undefined) throw cannotAsk(ask, notOffered(ask, declared ?? {}));
  return projected;
}

/** The error that tells the model that its client cannot be asked. The cause is for a server that asked. */
function cannotAsk(ask: Question, cause?: RpcError): ToolError {
  return new ToolError(`This needs ${ask.method}, which the client does not offer.`, { cause });
}

/** What a modern caller carries between the rounds of a request, inside the seal. */
interface SealedState {
  readonly answers: readonly (readonly [string, string])[];
  readonly state?: unknown;
  /** For the observation of the next round. */
  readonly seen?: unknown;
}

/** Seals state. If it is too large, the caller gets an error that says so, because it is the provider's fault. */
function sealState(state: SealedState, seal: Seal, binding: string, ttlMs: number): string {
  try {
    return seal.seal(state, binding, ttlMs);
  } catch (error) {
    if (!(error instanceof SealError) || error.code !== "seal.too_large") throw error;
    throw new RpcError("rpc.internal", error.message, { cause: error, data: { code: error.code } });
  }
}

/** Opens sealed state. The error does not say why it failed: a forger learns nothing, and an honest client can only start over. */
function openState(token: RawJson, seal: Seal, binding: string): SealedState {
  const opened = token.kind === "string" ? seal.open(token.value as string, binding) : undefined;
  if (opened?.ok === true) return opened.payload as SealedState;
  throw new RpcError(
    "rpc.invalid_params",
    "Invalid params: requestState is invalid or expired; make the request again, without it",
  );
}

/**
 * What sealed state is bound to: the caller, the method, the name or URI, and the arguments. The arguments are bound as the
 * bytes that came, because two spellings of one number can be two numbers to another parser.
 */
function toBinding(caller: string | undefined, method: string, params: RawJson | undefined): string {
  const hash = process.getBuiltinModule("node:crypto").createHash("sha256");
  for (const key of ["name", "uri", "arguments"]) {
    const member = params?.at(key);
    hash.update(member === undefined ? "-" : `${member.byteLength}:`);
    if (member !== undefined) hash.update(member.bytes);
  }
  return JSON.stringify([caller ?? null, method, hash.digest("base64url")]);
}
