import { type Clock } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { lacking, projectAsk } from "../mcp/project/ask.ts";
import type { Seal } from "../mcp/seal.ts";
import type { WireContext } from "../mcp/server.ts";
import type { Ask, ClientCapabilities } from "../mcp/types.ts";
import type { Answers, InputRequired, Outcome, Resumption } from "../tools/provider.ts";
import { toBinding } from "./binding.ts";

export interface InteractionOptions {
  readonly seal: Seal;
  readonly clock: Clock;
  /** How long a caller may take to come back with its answers. */
  readonly stateTtlMs: number;
  /** Most rounds of questions in one legacy call. */
  readonly maxRounds: number;
}

/** One attempt at a request, with what is known from earlier rounds. */
export type Attempt = (resumption: Resumption | undefined) => Promise<Outcome>;

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
): Promise<Interacted> {
  return wire.era.kind === "modern"
    ? interactModern(request, wire, options, attempt)
    : interactLegacy(wire, options, attempt);
}

/** One round: the answers come in the request, the next questions go out in the result, the state goes with them. */
async function interactModern(
  request: Request,
  wire: WireContext,
  { seal, stateTtlMs }: InteractionOptions,
  attempt: Attempt,
): Promise<Interacted> {
  const binding = toBinding(wire.caller, request.method, request.params);
  const resumption = readRetry(request, seal, binding);
  const outcome = await attempt(resumption);
  if (outcome.kind === "complete") return outcome;
  const { asks, state } = outcome;
  assertAskable(asks, wire.era.kind === "modern" ? wire.era.capabilities : {});
  const answers = Object.entries(resumption?.answers ?? {}).map(([key, raw]) => [key, raw.text] as const);
  const hasAsks = Object.keys(asks).length > 0;
  const needsState = state !== undefined || answers.length > 0 || !hasAsks;
  const result = {
    resultType: "input_required",
    ...(hasAsks ? { inputRequests: asks } : {}),
    ...(needsState ? { requestState: seal.seal({ answers, state }, binding, stateTtlMs) } : {}),
  };
  return { kind: "input_required", result: RawJson.fromValue(result) };
}

interface SealedState {
  readonly answers: readonly (readonly [string, string])[];
  readonly state?: unknown;
}

function readRetry(request: Request, seal: Seal, binding: string): Resumption | undefined {
  const given = request.params?.at("inputResponses");
  const token = request.params?.at("requestState");
  if (given === undefined && token === undefined) return undefined;
  if (given !== undefined && given.kind !== "object") {
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: inputResponses must be an object of answers by key",
    );
  }
  const sealed = token === undefined ? undefined : openState(token, seal, binding);
  // A map made by `fromEntries` has own properties only, whatever the keys are called.
  const kept = (sealed?.answers ?? []).map(([key, text]) => [key, RawJson.fromText(text)] as const);
  const fresh = Object.keys(given?.value ?? {}).map((key) => [key, given?.at(key)] as const);
  const answers = Object.fromEntries([...kept, ...fresh]) as Answers;
  return { answers, state: sealed?.state };
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
  wire: WireContext,
  options: InteractionOptions,
  attempt: Attempt,
): Promise<Interacted> {
  let resumption: Resumption | undefined;
  for (let round = 0; round <= options.maxRounds; round++) {
    const outcome = await attempt(resumption);
    if (outcome.kind === "complete") return outcome;
    const given = await askAll(outcome, wire, options.clock);
    resumption = { answers: { ...resumption?.answers, ...given }, state: outcome.state };
  }
  throw new ToolError(`Gave up after ${options.maxRounds} rounds of questions.`);
}

/** A provider that asks nothing wants to be called again later. */
const pauseMs = 250;

async function askAll({ asks }: InputRequired, wire: WireContext, clock: Clock): Promise<Answers> {
  const entries = Object.entries(asks);
  if (entries.length === 0) await clock.sleep(pauseMs, wire.signal);
  const handshake = wire.era.kind === "legacy" ? wire.era.session?.handshake : undefined;
  const answers = entries.map(async ([key, ask]): Promise<[string, RawJson]> => {
    const cannot = new ToolError(`This needs ${ask.method}, which the client does not offer.`);
    if (handshake === undefined || wire.ask === undefined || lacking(ask, handshake.capabilities))
      throw cannot;
    const projected = projectAsk(ask, handshake.revision, crypto.randomUUID());
    if (projected === undefined) throw cannot;
    return [key, await askOne(projected, wire.ask.bind(wire), wire.signal)];
  });
  return Object.fromEntries(await Promise.all(answers));
}

/** A client may refuse a form by an error; to the provider that is a form the user closed. Others cannot be answered. */
async function askOne(
  ask: Ask,
  send: NonNullable<WireContext["ask"]>,
  signal: AbortSignal,
): Promise<RawJson> {
  const params = ask.params === undefined ? undefined : RawJson.fromValue(ask.params);
  try {
    return await send(ask.method, params, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RpcError)) throw error;
    if (ask.method === "elicitation/create") return RawJson.fromValue({ action: "cancel" });
    throw new ToolError(`The client refused ${ask.method}: ${error.message}`, { cause: error });
  }
}

function assertAskable(asks: InputRequired["asks"], capabilities: ClientCapabilities): void {
  const missing = Object.values(asks).flatMap((ask) => lacking(ask, capabilities) ?? []);
  if (missing.length > 0) throw missingCapability(Object.assign({}, ...missing) as ClientCapabilities);
}

/** The error for a request that cannot be served without capabilities its sender did not declare. */
export function missingCapability(required: ClientCapabilities): RpcError {
  const names = Object.keys(required).join(", ");
  return new RpcError("rpc.missing_capability", `This request needs the client capabilities: ${names}`, {
    data: { requiredCapabilities: required },
  });
}
