import { andThen, type Awaitable, settled } from "../async/awaitable.ts";
import { type Clock, sleep } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { SealError } from "../errors/seal-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { isAcceptable } from "../mcp/acceptable.ts";
import { lacking } from "../mcp/project/ask.ts";
import type { Seal } from "../mcp/seal.ts";
import type { WireContext } from "../mcp/server.ts";
import type { Ask, ClientCapabilities } from "../mcp/types.ts";
import type { Answers, InputRequired, Outcome, Resumption } from "../tools/provider.ts";
import { askClient, cannotAsk, toAskable } from "./ask.ts";
import { toBinding } from "./binding.ts";

export interface InteractionOptions {
  readonly seal: Seal;
  readonly clock: Clock;
  /** How long a caller may take to come back with its answers. */
  readonly stateTtlMs: number;
  /** Most rounds of questions in one legacy call. */
  readonly maxRounds: number;
  /** How long a legacy client may take to answer; people think slowly, but not forever. */
  readonly askTimeoutMs: number;
}

/** One attempt at a request, with what is known from earlier rounds. */
export type Attempt = (resumption: Resumption | undefined) => Awaitable<Outcome>;

/** How an interactive request ends on the wire: with the provider's result, or with one that asks for input. */
export type Interacted =
  | { readonly kind: "complete"; readonly result: RawJson }
  | { readonly kind: "input_required"; readonly result: RawJson };

/** Runs a request that may have to ask its caller something, by the means of the caller's era. */
export function interact(
  request: Request,
  wire: WireContext,
  options: InteractionOptions,
  attempt: Attempt,
): Awaitable<Interacted> {
  if (wire.era.kind === "modern") return interactModern(request, wire, options, attempt);
  return andThen(settled(attempt(undefined)), (outcome) =>
    outcome.kind === "complete" ? outcome : interactLegacy(outcome, wire, options, attempt),
  );
}

/** One round: the answers come in the request, the next questions go out in the result, the state goes with them. */
function interactModern(
  request: Request,
  wire: WireContext,
  { seal, stateTtlMs }: InteractionOptions,
  attempt: Attempt,
): Awaitable<Interacted> {
  const toOwnBinding = (): string => toBinding(wire.caller, request.method, request.params);
  const resumption = readRetry(request, seal, toOwnBinding);
  return andThen(settled(attempt(resumption)), (outcome) => {
    if (outcome.kind === "complete") return outcome;
    const { asks, state, keepsAnswers = true } = outcome;
    assertAskable(asks, wire.era.kind === "modern" ? wire.era.capabilities : {});
    const given = keepsAnswers ? Object.entries(resumption?.answers ?? {}) : [];
    const answers = given.map(([key, raw]) => [key, raw.text] as const);
    const hasAsks = Object.keys(asks).length > 0;
    const needsState = state !== undefined || answers.length > 0 || !hasAsks;
    const result = {
      resultType: "input_required",
      ...(hasAsks ? { inputRequests: asks } : {}),
      ...(needsState
        ? { requestState: sealState({ answers, state }, seal, toOwnBinding(), stateTtlMs) }
        : {}),
    };
    return { kind: "input_required", result: RawJson.fromValue(result) };
  });
}

interface SealedState {
  readonly answers: readonly (readonly [string, string])[];
  readonly state?: unknown;
}

/** What is too large to be carried is the fault of whoever made the state, and no secret. */
function sealState(state: SealedState, seal: Seal, binding: string, ttlMs: number): string {
  try {
    return seal.seal(state, binding, ttlMs);
  } catch (error) {
    if (!(error instanceof SealError) || error.code !== "seal.too_large") throw error;
    throw new RpcError("rpc.internal", error.message, { cause: error, data: { code: error.code } });
  }
}

function readRetry(request: Request, seal: Seal, toOwnBinding: () => string): Resumption | undefined {
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
  // A map made by `fromEntries` has own properties only, whatever the keys are called.
  const kept = (sealed?.answers ?? []).map(([key, text]) => [key, RawJson.fromText(text, true)] as const);
  const fresh = Object.keys(given?.value ?? {}).map((key) => [key, given?.at(key)] as const);
  const latest = Object.fromEntries(fresh) as Answers;
  const answers = Object.fromEntries([...kept, ...fresh]) as Answers;
  return { answers, latest, state: sealed?.state };
}

/** Why it failed is not told: a forger learns nothing, and an honest client can do no more than start over. */
function openState(token: RawJson, seal: Seal, binding: string): SealedState {
  const opened = token.kind === "string" ? seal.open(token.value as string, binding) : undefined;
  if (opened?.ok === true) return opened.payload as SealedState;
  throw new RpcError(
    "rpc.invalid_params",
    "Invalid params: requestState is invalid or expired; make the request anew, without it",
  );
}

/** All rounds: the client is asked by requests on the call's own stream, and the call stays open meanwhile. */
async function interactLegacy(
  first: InputRequired,
  wire: WireContext,
  options: InteractionOptions,
  attempt: Attempt,
): Promise<Interacted> {
  let outcome: Outcome = first;
  let answers: Answers = {};
  for (let round = 0; round < options.maxRounds; round++) {
    const latest = await askAll(outcome, wire, options);
    answers = { ...answers, ...latest };
    outcome = await attempt({ answers, latest, state: outcome.state });
    if (outcome.kind === "complete") return outcome;
  }
  throw new ToolError(`Gave up after ${options.maxRounds} rounds of questions.`);
}

/** A provider that asks nothing wants to be called again later. */
const pauseMs = 250;

async function askAll(
  { asks }: InputRequired,
  wire: WireContext,
  { clock, askTimeoutMs }: InteractionOptions,
): Promise<Answers> {
  // Before the first question goes out, all of them are known to be askable.
  const entries = Object.entries(asks).map(([key, ask]) => [key, toAskable(ask, wire)] as const);
  if (entries.length === 0) await sleep(pauseMs, clock, wire.signal);
  const stopping = new AbortController();
  const late = new RpcError("rpc.internal", `it did not answer within ${askTimeoutMs / 1000} s`);
  const stopTimer = clock.timer(askTimeoutMs, () => stopping.abort(late));
  const stop = (): void => stopping.abort(wire.signal.reason);
  wire.signal.addEventListener("abort", stop, { once: true });
  try {
    const answers = entries.map(
      async ([key, ask]) => [key, await askOne(ask, wire, stopping.signal)] as const,
    );
    return Object.fromEntries(await Promise.all(answers));
  } finally {
    stopTimer();
    // If one question could not be answered, nobody needs the answers to the others.
    stopping.abort(new DOMException("The questions are no longer asked", "AbortError"));
    wire.signal.removeEventListener("abort", stop);
  }
}

/**
 * A client may refuse a form by an error; to the provider that is a form the user closed. Others cannot be answered. What
 * is no answer at all is neither a yes nor a no of the user, so the provider does not get to see it.
 */
async function askOne(ask: Ask, wire: WireContext, signal: AbortSignal): Promise<RawJson> {
  try {
    const answer = await askClient(ask, wire, signal);
    if (answer !== undefined && isAcceptable(ask, answer)) return answer;
    if (answer !== undefined)
      throw new ToolError(`The client's answer to ${ask.method} does not fit the question.`);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (ask.method === "elicitation/create") return RawJson.fromValue({ action: "cancel" });
    throw new ToolError(`The client refused ${ask.method}: ${error.message}`, { cause: error });
  }
  throw cannotAsk(ask);
}

function assertAskable(asks: InputRequired["asks"], capabilities: ClientCapabilities): void {
  const required: { [name: string]: object } = {};
  for (const missing of Object.values(asks).map((ask) => lacking(ask, capabilities) ?? {})) {
    for (const [name, detail] of Object.entries(missing))
      required[name] = { ...required[name], ...(detail as object) };
  }
  if (Object.keys(required).length > 0) throw missingCapability(required);
}

/** The error for a request that cannot be served without capabilities its sender did not declare. */
export function missingCapability(required: ClientCapabilities): RpcError {
  const names = Object.keys(required).join(", ");
  return new RpcError("rpc.missing_capability", `This request needs the client capabilities: ${names}`, {
    data: { requiredCapabilities: required },
  });
}
