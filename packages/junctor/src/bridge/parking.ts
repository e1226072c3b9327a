import { randomBytes } from "node:crypto";
import { type Clock, createDeferred, type Deferred, Quota, sleep, waitFor } from "@junctor/core/async";
import { rpcCodes, RpcError, ToolError, UpstreamError } from "@junctor/core/errors";
import { isJsonObject, type JsonObject, type RawJson } from "@junctor/core/json";
import {
  askVisits,
  type ClientCapabilities,
  closedForm,
  declaredExtension,
  isAcceptable,
  isAtLeast,
  isLegacyRevision,
  lacking,
  missingAfter,
  missingCapability,
  notOffered,
  pagesOf,
  type Question,
  type Questions,
  toModernQuestion,
  toRelayable,
  unanswered,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import {
  type Answers,
  type CallContext,
  type CallEvent,
  type InputRequired,
  type Outcome,
  type Round,
  withContext,
} from "@junctor/core/provider";

/** How a call that was parked ended. */
type End =
  | { readonly kind: "outcome"; readonly outcome: Outcome }
  | { readonly kind: "failed"; readonly error: unknown };

/** Makes the call that may have to be parked. */
type Invoke = (context: CallContext) => Promise<Outcome>;

interface ParkedCallOptions {
  readonly clock: Clock;
  /** How long a question waits for others that come with it. */
  readonly gatherMs: number;
}

/** A question a legacy server waits for. */
interface OpenQuestion {
  readonly ask: Question;
  readonly answer: Deferred<RawJson>;
}

/** The open questions of one call, by the keys that its caller knows them by. */
class OpenQuestions {
  readonly #options: ParkedCallOptions;
  readonly #open = new Map<string, OpenQuestion>();
  #asked = 0;
  #isClosed = false;
  #changed = createDeferred<void>();

  constructor(options: ParkedCallOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Adds a question and resolves with its answer. Aborting withdraws the question. */
  async put(ask: Question, signal: AbortSignal): Promise<RawJson> {
    signal.throwIfAborted();
    const key = `ask-${++this.#asked}`;
    const answer = createDeferred<RawJson>();
    this.#open.set(key, { ask: toModernQuestion(ask), answer });
    const withdraw = (): void => {
      this.#open.delete(key);
      answer.reject(signal.reason);
    };
    signal.addEventListener("abort", withdraw, { once: true });
    this.#wake();
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener("abort", withdraw);
    }
  }

  /** Passes answers on, each once. A question whose answer does not fit stays open. */
  answer(answers: Answers): void {
    for (const [key, answer] of Object.entries(answers)) {
      const question = this.#open.get(key);
      if (question === undefined || !isAcceptable(question.ask, answer)) continue;
      this.#open.delete(key);
      question.answer.resolve(answer);
    }
  }

  /** Settles all open questions. There will be no others. */
  close(settle: (question: OpenQuestion) => void): void {
    this.#isClosed = true;
    for (const question of this.#open.values()) settle(question);
    this.#open.clear();
    this.#wake();
  }

  /** Waits until there are questions or they are closed. Questions that come shortly after the first share its round. */
  async gather(signal: AbortSignal): Promise<void> {
    const { clock, gatherMs } = this.#options;
    // All questions may be withdrawn during the wait for more.
    do {
      while (!this.#isClosed && this.#open.size === 0) await waitFor(this.#changed.promise, { signal });
      if (!this.#isClosed) await sleep(gatherMs, clock, signal);
    } while (!this.#isClosed && this.#open.size === 0);
  }

  toAsks(): Questions {
    return Object.fromEntries(Array.from(this.#open, ([key, { ask }]) => [key, ask]));
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = createDeferred();
  }
}

/**
 * One call of a legacy server on behalf of a modern caller. The server waits in the middle of it for answers; the caller
 * does not: it gets the questions as a result, leaves, and comes back with the answers. The call runs once, whatever the
 * caller does.
 */
export class ParkedCall {
  readonly server: string;
  readonly caller: string | undefined;
  readonly #working = new AbortController();
  readonly questions: OpenQuestions;
  /** The requests that are open now; the newest gets progress. */
  readonly #open = new Set<CallContext>();
  #end: End | undefined;
  /** The capabilities that the caller lacks for what was asked. */
  #missing: ClientCapabilities | undefined;

  constructor(server: string, caller: string | undefined, options: ParkedCallOptions) {
    this.server = server;
    this.caller = caller;
    this.questions = new OpenQuestions(options);
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** Whether a request of the caller waits for the next questions or the end. */
  get isAwaited(): boolean {
    return this.#open.size > 0;
  }

  /** Makes the call. Resolves with its outcome, or with the first questions, which `toState` completes. */
  start(invoke: Invoke, context: CallContext, toState: () => unknown): Promise<Outcome> {
    const inner = withContext(context, {
      signal: this.#working.signal,
      ask: (ask: Question, signal: AbortSignal) => this.#ask(ask, context, signal),
      // The request that brings the answers may want progress, though the first did not; only now can progress be asked of the server.
      wantsProgress: true,
      emit: async (event: CallEvent) => [...this.#open].at(-1)?.emit(event),
    });
    invoke(inner).then(
      (outcome) => this.#finish({ kind: "outcome", outcome }),
      (error: unknown) => this.#finish({ kind: "failed", error }),
    );
    return this.#next(context, toState);
  }

  /** Passes answers on and resolves with the next questions or the end. A question without a fitting answer is asked again. */
  async answer(answers: Answers, context: CallContext, toState: () => unknown): Promise<Outcome> {
    this.questions.answer(answers);
    return this.questions.size > 0 ? toInputRequired(this.questions, toState) : this.#next(context, toState);
  }

  /** The caller will not answer: the server gets the answer that its revision defines for that, and then the call is cancelled. */
  async giveUp(reason: unknown): Promise<void> {
    this.#end ??= { kind: "failed", error: abandonedCall(this.server, "it was given up") };
    this.questions.close(({ ask, answer }) => {
      const closed = closedForm(ask);
      if (closed === undefined) answer.reject(unanswered(ask));
      else answer.resolve(closed);
    });
    // The answers leave before the cancellation does.
    await new Promise((resolve) => setImmediate(resolve));
    this.#working.abort(reason);
  }

  async #ask(ask: Question, context: CallContext, signal: AbortSignal): Promise<RawJson> {
    // The server decides what a missing answer means: many tools go on without it.
    const lacks = lacking(ask, context.capabilities);
    if (lacks === undefined) return this.questions.put(ask, signal);
    this.#missing = lacks;
    throw notOffered(ask, context.capabilities);
  }

  #finish(end: End): void {
    this.#end ??= this.#toEnd(end);
    // A server that ended its call waits for no answer, but our side must not go on waiting for one.
    this.questions.close(({ answer }) => answer.reject(new DOMException("The call is over", "AbortError")));
  }

  /** A tool that failed after it could not ask tells its caller which capabilities it lacks. */
  #toEnd(end: End): End {
    const isComplete = end.kind === "outcome" && end.outcome.kind === "complete";
    const error =
      isComplete && this.#missing !== undefined ? missingAfter(this.#missing, end.outcome.result) : undefined;
    return error === undefined ? end : { kind: "failed", error };
  }

  /** Waits for questions or the end. A caller that leaves while none of its other requests waits gives the call up. */
  async #next(context: CallContext, toState: () => unknown): Promise<Outcome> {
    this.#open.add(context);
    try {
      await this.questions.gather(context.signal);
    } catch (error) {
      this.#open.delete(context);
      if (this.#open.size === 0) void this.giveUp(context.signal.reason);
      throw error;
    } finally {
      this.#open.delete(context);
    }
    if (this.#end === undefined) return toInputRequired(this.questions, toState);
    if (this.#end.kind === "failed") throw this.#end.error;
    return this.#end.outcome;
  }
}

function toInputRequired(questions: OpenQuestions, toState: () => unknown): InputRequired {
  return { kind: "input_required", asks: questions.toAsks(), state: toState(), keepsAnswers: false };
}

export interface ParkingOptions {
  readonly clock: Clock;
  /** How long a caller may take to come back; 10 minutes. */
  readonly ttlMs?: number;
  /** How long the end of a call is kept for a caller that asks again; 1 minute. */
  readonly keepMs?: number;
  readonly gatherMs?: number;
  /** The most calls parked at once, in all and for one caller. */
  readonly maxParked?: number;
  readonly maxParkedPerCaller?: number | (() => number) | undefined;
  /** The address of this process, where it is one of several; see `ParkedState.at`. */
  readonly at?: string | undefined;
}

type ParkingSettings = Required<Omit<ParkingOptions, "at">> & Pick<ParkingOptions, "at">;

/** The sealed state that a parked call leaves with its caller. */
export interface ParkedState {
  readonly parked: string;
  /** Where the call was made. */
  readonly server: string;
  /** The process that it waits in, where there are several. */
  readonly at?: string | undefined;
}

/** A parked call as operators see it. */
export interface ParkedCallStatus {
  readonly call?: string;
  readonly server: string;
  readonly caller?: string;
  readonly ageMs: number;
  /** The time before it is given up; missing while its caller is here. */
  readonly leftMs?: number;
  readonly questions: readonly { readonly method: string }[];
  readonly waitsFor: "caller" | "server";
}

/** One call in the table. */
interface ParkedEntry {
  readonly id: string;
  readonly call: ParkedCall;
  stopTimer: () => void;
  /** When its caller left with the first question, and with the last. */
  readonly parkedAt: number;
  leftAt: number;
  /** When it is given up, unless its caller is back before. */
  until: number;
  /** The id of the call in the admin API and in logs. */
  readonly callId: string | undefined;
  /** Whether its end was sent to its caller. It is kept only in case that answer was lost on the way. */
  isEndSent: boolean;
}

export function isParkedState(state: unknown): state is ParkedState {
  return typeof state === "object" && state !== null && typeof (state as ParkedState).parked === "string";
}

/** The parked calls by id. It enforces their limits, and gives up each call whose time is over. */
class ParkedCalls {
  readonly #options: ParkingSettings;
  readonly #byId = new Map<string, ParkedEntry>();
  readonly #quota: Quota<string | undefined>;

  constructor(options: ParkingSettings) {
    this.#options = options;
    const { maxParked: total, maxParkedPerCaller: each } = options;
    this.#quota = new Quota({ what: "parked calls", total, each });
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): ParkedEntry | undefined {
    return this.#byId.get(id);
  }

  where(matches: (call: ParkedCall) => boolean): readonly ParkedEntry[] {
    return Array.from(this.#byId.values()).filter(({ call }) => matches(call));
  }

  /** Takes a call in; undefined when its caller, or the table, is at a limit. */
  add(id: string, call: ParkedCall, callId: string | undefined): ParkedEntry | undefined {
    if (!this.#makeRoom(call.caller)) return undefined;
    const parkedAt = this.#options.clock.now();
    const times = { parkedAt, leftAt: 0, until: 0 };
    const parked: ParkedEntry = { id, call, callId, stopTimer: () => {}, ...times, isEndSent: false };
    this.#byId.set(id, parked);
    this.#quota.add(call.caller);
    return parked;
  }

  /** Gives a call up after this time, in place of the time it had. Does nothing if it is not in the table. */
  keep(parked: ParkedEntry, ms: number): void {
    if (!this.#byId.has(parked.id)) return;
    parked.stopTimer();
    parked.until = this.#options.clock.now() + ms;
    parked.stopTimer = this.#options.clock.timer(ms, () => void this.#drop(parked));
  }

  /** Gives up each call that matches: its server learns that there will be no answer. */
  async giveUp(matches: (call: ParkedCall) => boolean): Promise<void> {
    await Promise.all(this.where(matches).map((parked) => this.#drop(parked)));
  }

  /**
   * Whether one more call of a caller may wait. At a limit, calls whose end was sent are dropped first: the caller's own,
   * or those of all callers when the table is full.
   */
  #makeRoom(caller: string | undefined): boolean {
    let refusal = this.#quota.refusal(caller);
    if (refusal === undefined) return true;
    for (const parked of this.#byId.values()) {
      const isInTheWay = refusal.code === "rpc.overloaded" || parked.call.caller === caller;
      if (!parked.isEndSent || !isInTheWay) continue;
      void this.#drop(parked);
      refusal = this.#quota.refusal(caller);
      if (refusal === undefined) return true;
    }
    return false;
  }

  async #drop({ id, call, stopTimer }: ParkedEntry): Promise<void> {
    stopTimer();
    if (!this.#byId.delete(id)) return;
    this.#quota.give(call.caller);
    if (!call.isOver) await call.giveUp(new Error("The caller did not come back with the answers"));
  }
}

/** The calls that wait for answers of callers that have left. A call that was given up is never made again. */
export class Parking {
  readonly #options: ParkingSettings;
  readonly #calls: ParkedCalls;
  /** By server: how many calls wait until its parked calls end, and how long the callers of parked calls may take meanwhile. */
  readonly #wanted = new Map<string, { count: number; readonly ms: number }>();

  constructor(options: ParkingOptions) {
    this.#options = {
      ttlMs: 10 * 60_000,
      keepMs: 60_000,
      gatherMs: 30,
      maxParked: 16_384,
      maxParkedPerCaller: 1024,
      ...defined(options),
    };
    this.#calls = new ParkedCalls(this.#options);
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Makes a call for a modern caller. When it asks something it is parked, and the outcome is the questions. */
  run(server: string, invoke: Invoke, context: CallContext): Promise<Outcome> {
    const { clock, gatherMs } = this.#options;
    const call = new ParkedCall(server, context.caller, { clock, gatherMs });
    const id = randomBytes(16).toString("base64url");
    return call.start(invoke, context, () => this.#park(id, call, context));
  }

  /** Resumes a parked call. The seal has made sure that it is the same caller and the same request. */
  async resume(
    state: ParkedState,
    { answers, latest = answers }: Round,
    context: CallContext,
  ): Promise<Outcome> {
    const parked = this.#calls.get(state.parked);
    if (parked === undefined) throw abandonedCall(state.server, notParked);
    if (parked.call.caller !== context.caller)
      throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another caller");
    const { call } = parked;
    // The caller is back: the call is not given up, however long the server takes from here.
    parked.stopTimer();
    try {
      return await call.answer(latest, context, () => this.#park(state.parked, call, context));
    } finally {
      // The end is kept for a while: its caller may not have got it, and asks again with the same state.
      parked.isEndSent = call.isOver;
      const keptMs = call.isOver ? this.#options.keepMs : this.#ttlMs(call.server);
      if (!call.isAwaited) this.#calls.keep(parked, keptMs);
    }
  }

  /** The calls that have not ended, oldest first. */
  list(): readonly ParkedCallStatus[] {
    const now = this.#options.clock.now();
    return this.#calls
      .where((call) => !call.isOver)
      .map(({ call, callId, parkedAt, until }) => ({
        ...(callId === undefined ? {} : { call: callId }),
        server: call.server,
        ...(call.caller === undefined ? {} : { caller: call.caller }),
        ageMs: now - parkedAt,
        ...(call.isAwaited ? {} : { leftMs: Math.max(0, until - now) }),
        questions: Object.values(call.questions.toAsks()).map(({ method }) => ({ method })),
        waitsFor: call.isAwaited ? "server" : "caller",
      }));
  }

  /** Gives up the parked calls of one server. */
  giveUpServer(server: string): Promise<void> {
    return this.#calls.giveUp((call) => call.server === server);
  }

  /** Gives up the parked calls of a caller whose key was revoked. */
  giveUpCaller(caller: string | undefined): Promise<void> {
    return this.#calls.giveUp((call) => call.caller === caller);
  }

  /**
   * A call waits for the parked calls of a server to end, until the returned function is called. Meanwhile their callers
   * have less time to come back.
   */
  shortenWaits(server: string, withinMs: number): () => void {
    const wanted = this.#wanted.get(server) ?? { count: 0, ms: withinMs };
    wanted.count++;
    this.#wanted.set(server, wanted);
    this.#reset(server);
    return () => {
      if (--wanted.count > 0) return;
      this.#wanted.delete(server);
      this.#reset(server);
    };
  }

  /** Gives up all parked calls. */
  close(): Promise<void> {
    return this.#calls.giveUp(() => true);
  }

  #park(id: string, call: ParkedCall, { observation }: CallContext): ParkedState {
    const parked = this.#calls.get(id) ?? this.#calls.add(id, call, observation?.id);
    if (parked === undefined) {
      void call.giveUp(new Error("too many calls wait for answers"));
      throw new ToolError("Too many calls wait for answers; answer or cancel some of them first.");
    }
    parked.leftAt = this.#options.clock.now();
    this.#calls.keep(parked, this.#ttlMs(call.server));
    return { parked: id, server: call.server, ...defined({ at: this.#options.at }) };
  }

  #ttlMs(server: string): number {
    return Math.min(this.#options.ttlMs, this.#wanted.get(server)?.ms ?? Infinity);
  }

  /** Restarts the timers of a server's parked calls whose callers are away, with the time that applies now. */
  #reset(server: string): void {
    const away = this.#calls.where((call) => call.server === server && !call.isAwaited && !call.isOver);
    const now = this.#options.clock.now();
    for (const parked of away)
      this.#calls.keep(parked, Math.max(0, parked.leftAt + this.#ttlMs(server) - now));
  }
}

/**
 * Turns a server's error into one that the caller's revision knows: each of these codes exists in one era only. All other errors stay as
 * they are.
 */
export function toCallerError(
  error: unknown,
  caller: Pick<CallContext, "revision" | "capabilities">,
  server: string,
): unknown {
  if (!(error instanceof RpcError)) return error;
  if (error.rpcCode === rpcCodes["rpc.missing_capability"]) return toMissing(error, caller, server);
  const { revision, capabilities } = caller;
  const pages = pagesOf(error);
  if (pages === undefined) return error;
  if (isLegacyRevision(revision)) {
    if (!isAtLeast(revision, "2025-11-25"))
      return new ToolError(
        `${server} does this only after the user has visited a page, which the client cannot show.`,
      );
    if (askVisits(pages) !== undefined) return error;
  } else if (capabilities.elicitation?.url === undefined)
    return missingCapability({ elicitation: { url: {} } });
  const text = `${server} wants the user to visit a page, and gives no http or https address.`;
  return new UpstreamError("failed", text, { server, delivery: "answered", cause: error });
}

/** A server's error about missing capabilities, without those that the caller has declared. */
function toMissing(
  error: RpcError,
  { revision, capabilities }: Pick<CallContext, "revision" | "capabilities">,
  server: string,
): Error {
  const { requiredCapabilities } = (error.data ?? {}) as { readonly requiredCapabilities?: unknown };
  const { extensions, ...required } = isJsonObject(requiredCapabilities) ? requiredCapabilities : {};
  const declared = toRelayable(capabilities, revision).capabilities;
  const wanted = isJsonObject(extensions) ? extensions : {};
  const ids = Object.keys(wanted).filter((id) => declaredExtension(capabilities, id) === undefined);
  const lacks = {
    ...without(required, declared),
    ...(ids.length === 0 ? {} : { extensions: Object.fromEntries(ids.map((id) => [id, wanted[id]])) }),
  };
  const names = [...Object.keys(lacks).filter((name) => name !== "extensions"), ...ids];
  const isUnclear = Object.keys(required).length === 0 && Object.keys(wanted).length === 0;
  if (names.length === 0 && !isUnclear) {
    const needs = [...Object.keys(required), ...Object.keys(wanted)].join(" and ");
    const text = `${server} wants ${needs}, which the caller declared and the gateway does not pass on to it. The call was not carried out.`;
    return new UpstreamError("failed", text, { server, delivery: "answered", cause: error });
  }
  const needs = isUnclear ? "something of its user" : names.join(" and ");
  if (isLegacyRevision(revision))
    return new ToolError(`This needs ${needs}, which the client does not offer.`, { cause: error });
  const isWhole = names.length === Object.keys(required).length + Object.keys(wanted).length;
  if (isUnclear || isWhole) return error;
  return missingCapability(lacks as ClientCapabilities);
}

/** The members that a map of capabilities does not have. */
function without(wanted: JsonObject, declared: object): JsonObject {
  const rest = Object.entries(wanted).flatMap(([name, more]): (readonly [string, unknown])[] => {
    const own = (declared as JsonObject)[name];
    if (!isJsonObject(own)) return [[name, more]];
    const inner = isJsonObject(more) ? without(more, own) : {};
    return Object.keys(inner).length === 0 ? [] : [[name, inner]];
  });
  return Object.fromEntries(rest);
}

/**
 * A legacy server's refusal to act before the user has visited some pages, as questions to a modern caller. The server
 * has done nothing, so the retry makes the request again.
 */
export function toPageQuestions(
  error: unknown,
  capabilities: ClientCapabilities,
  server: string,
): InputRequired | undefined {
  const asks = capabilities.elicitation?.url === undefined ? undefined : askVisits(pagesOf(error) ?? []);
  return asks && wrapState({ kind: "input_required", asks, state: again }, server);
}

/**
 * The error for a caller that comes back to a parked call that is no longer there. The server had begun to work on it, and
 * how far it came is unknown.
 */
export function abandonedCall(server: string, why: string): UpstreamError {
  const text =
    `The call that waited for these answers is gone: ${why}. ${server} had begun to work on it, and whether it carried it ` +
    "out is unknown. The call was not made again: make the request again, without requestState, if it may be carried out twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** The error for a caller that asks for a task of a replica that is gone. */
export function abandonedTask(server: string): UpstreamError {
  const text =
    `The replica of the gateway that had this task has ended. ${server} had begun to work on it, and it is unknown whether it ` +
    "finished. Call the tool again if it is safe to run it twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** Why a call is not in the table, as far as that can be known. */
export const notParked =
  "its caller came back too late, or the gateway or the server was restarted meanwhile";

/** The state of a modern server behind the gateway, with the name of that server. Our own server seals it before it leaves. */
interface WrappedState {
  readonly via: string;
  readonly state?: unknown;
}

/**
 * Puts the name of its server around a state. All callers look like one to a server behind the gateway, so its own seal
 * cannot tell them apart. Our seal binds the state to the caller, and the name to the server.
 */
export function wrapState(outcome: InputRequired, server: string): InputRequired {
  const { state } = outcome;
  const wrapped: WrappedState = { via: server, ...(state === undefined ? {} : { state }) };
  return { ...outcome, state: wrapped, keepsAnswers: false };
}

/**
 * The state as its server gave it; undefined when the request is to be made again. Throws when the state belongs to another server, and
 * when the user declined.
 */
export function unwrapState(round: Round, server: string): Round | undefined {
  const { via, state } = (round.state ?? {}) as Partial<WrappedState>;
  if (round.state !== undefined && via !== server)
    throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another server");
  if (!isAgain(state)) return { ...round, state };
  // A repeated request would be refused again, and the user asked again, without end.
  if (Object.values(round.answers).some(isRefusal))
    throw new ToolError(
      `${server} does this only after the user has visited a page, and the user does not want to.`,
    );
  return undefined;
}

function isRefusal(answer: RawJson): boolean {
  const action = answer.kind === "object" ? answer.at("action")?.value : undefined;
  return action === "decline" || action === "cancel";
}

/** The state of a request that is to be made again, because the server refused it before it did anything. */
const again = { again: true } as const;

/** A server's own state is a string. */
function isAgain(state: unknown): boolean {
  return typeof state === "object" && state !== null && "again" in state;
}

/** The sealed state that the questions of a followed task leave with its caller. */
export interface FollowedState {
  readonly followed: string;
  /** The keys of questions that were answered. */
  readonly answered: readonly string[];
  /** The replica where the process of the task is, where there are several. */
  readonly at?: string | undefined;
}

export function isFollowedState(state: unknown): state is FollowedState {
  return typeof state === "object" && state !== null && typeof (state as FollowedState).followed === "string";
}

/** The replica where the task of a wrapped state is followed, if the state names one. */
export function followedAt(wrapped: unknown): string | undefined {
  const { state } = (wrapped ?? {}) as Partial<WrappedState>;
  return isFollowedState(state) ? state.at : undefined;
}

/** A round that reached the replica its state names, without that name: it must not be passed on again. */
export function arrived(round: Round): Round {
  const { via, state } = round.state as WrappedState;
  return { ...round, state: { via, state: { ...(state as FollowedState), at: undefined } } };
}
