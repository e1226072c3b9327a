import { randomBytes } from "node:crypto";
import { type Clock, Quota } from "@junctor/core/async";
import { RpcError, ToolError } from "@junctor/core/errors";
import { defined } from "@junctor/core/options";
import type { CallContext, Outcome, Round } from "@junctor/core/provider";
import { abandonedCall, notParked } from "./abandoned.ts";
import { Flow, type Invoke } from "./flow.ts";

export interface ParkingOptions {
  readonly clock: Clock;
  /** How long a caller may take to come back; 10 minutes. */
  readonly ttlMs?: number;
  /** How long the end of a call is kept for a caller that asks again; 1 minute. */
  readonly keepMs?: number;
  readonly gatherMs?: number;
  /** Most calls parked at once, in all and for one caller. */
  readonly maxParked?: number;
  readonly maxParkedPerCaller?: number | (() => number) | undefined;
  /** The address of this process, where it is one of several; see `ParkedState.at`. */
  readonly at?: string | undefined;
}

type ParkingSettings = Required<Omit<ParkingOptions, "at">> & Pick<ParkingOptions, "at">;

/** What a parked call leaves with its caller, inside the seal. */
export interface ParkedState {
  readonly parked: string;
  /** Where the call was made. */
  readonly server: string;
  /** The process that it waits in, where there are several. */
  readonly at?: string | undefined;
}

/** A parked call, for the people who run the gateway. */
export interface ParkedFacts {
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
interface Parked {
  readonly id: string;
  readonly flow: Flow;
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

/** The parked calls by id. It holds their limits, and gives up each call whose time is over. */
class ParkedCalls {
  readonly #options: ParkingSettings;
  readonly #byId = new Map<string, Parked>();
  readonly #quota: Quota<string | undefined>;

  constructor(options: ParkingSettings) {
    this.#options = options;
    const { maxParked: total, maxParkedPerCaller: each } = options;
    this.#quota = new Quota({ what: "parked calls", total, each });
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Parked | undefined {
    return this.#byId.get(id);
  }

  where(matches: (flow: Flow) => boolean): readonly Parked[] {
    return Array.from(this.#byId.values()).filter(({ flow }) => matches(flow));
  }

  /** Takes a call in; undefined when its caller, or the table, is at a limit. */
  add(id: string, flow: Flow, callId: string | undefined): Parked | undefined {
    if (!this.#makeRoom(flow.caller)) return undefined;
    const parkedAt = this.#options.clock.now();
    const times = { parkedAt, leftAt: 0, until: 0 };
    const parked: Parked = { id, flow, callId, stopTimer: () => {}, ...times, isEndSent: false };
    this.#byId.set(id, parked);
    this.#quota.add(flow.caller);
    return parked;
  }

  /** Gives a call up after this time, in place of the time it had. Does nothing if it is not in the table. */
  keep(parked: Parked, ms: number): void {
    if (!this.#byId.has(parked.id)) return;
    parked.stopTimer();
    parked.until = this.#options.clock.now() + ms;
    parked.stopTimer = this.#options.clock.timer(ms, () => void this.#drop(parked));
  }

  /** Gives up each call that matches: its server hears that there will be no answer. */
  async giveUp(matches: (flow: Flow) => boolean): Promise<void> {
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
      const isInTheWay = refusal.code === "rpc.overloaded" || parked.flow.caller === caller;
      if (!parked.isEndSent || !isInTheWay) continue;
      void this.#drop(parked);
      refusal = this.#quota.refusal(caller);
      if (refusal === undefined) return true;
    }
    return false;
  }

  async #drop({ id, flow, stopTimer }: Parked): Promise<void> {
    stopTimer();
    if (!this.#byId.delete(id)) return;
    this.#quota.give(flow.caller);
    if (!flow.isOver) await flow.giveUp(new Error("The caller did not come back with the answers"));
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
    const flow = new Flow(server, context.caller, { clock, gatherMs });
    const id = randomBytes(16).toString("base64url");
    return flow.start(invoke, context, () => this.#park(id, flow, context));
  }

  /** Resumes a parked call. The seal has made sure that it is the same caller and the same request. */
  async resume(
    state: ParkedState,
    { answers, latest = answers }: Round,
    context: CallContext,
  ): Promise<Outcome> {
    const parked = this.#calls.get(state.parked);
    if (parked === undefined) throw abandonedCall(state.server, notParked);
    if (parked.flow.caller !== context.caller)
      throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another caller");
    const { flow } = parked;
    // The caller is back: the call is not given up, however long the server takes from here.
    parked.stopTimer();
    try {
      return await flow.answer(latest, context, () => this.#park(state.parked, flow, context));
    } finally {
      // The end is kept for a while: its caller may not have got it, and asks again with the same state.
      parked.isEndSent = flow.isOver;
      const keptMs = flow.isOver ? this.#options.keepMs : this.#ttlMs(flow.server);
      if (!flow.isAwaited) this.#calls.keep(parked, keptMs);
    }
  }

  /** The calls that have not ended, oldest first. */
  list(): readonly ParkedFacts[] {
    const now = this.#options.clock.now();
    return this.#calls
      .where((flow) => !flow.isOver)
      .map(({ flow, callId, parkedAt, until }) => ({
        ...(callId === undefined ? {} : { call: callId }),
        server: flow.server,
        ...(flow.caller === undefined ? {} : { caller: flow.caller }),
        ageMs: now - parkedAt,
        ...(flow.isAwaited ? {} : { leftMs: Math.max(0, until - now) }),
        questions: Object.values(flow.questions.toAsks()).map(({ method }) => ({ method })),
        waitsFor: flow.isAwaited ? "server" : "caller",
      }));
  }

  /** Gives up the parked calls of one server. */
  leave(server: string): Promise<void> {
    return this.#calls.giveUp((flow) => flow.server === server);
  }

  /** Gives up the parked calls of a caller whose key was revoked. */
  leaveCaller(caller: string | undefined): Promise<void> {
    return this.#calls.giveUp((flow) => flow.caller === caller);
  }

  /**
   * A call waits for the parked calls of a server to end, until the returned function is called. Meanwhile their callers
   * have less time to come back.
   */
  wants(server: string, withinMs: number): () => void {
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

  #park(id: string, flow: Flow, { observation }: CallContext): ParkedState {
    const parked = this.#calls.get(id) ?? this.#calls.add(id, flow, observation?.id);
    if (parked === undefined) {
      void flow.giveUp(new Error("too many calls wait for answers"));
      throw new ToolError("Too many calls wait for answers; answer or cancel some of them first.");
    }
    parked.leftAt = this.#options.clock.now();
    this.#calls.keep(parked, this.#ttlMs(flow.server));
    return { parked: id, server: flow.server, ...defined({ at: this.#options.at }) };
  }

  #ttlMs(server: string): number {
    return Math.min(this.#options.ttlMs, this.#wanted.get(server)?.ms ?? Infinity);
  }

  /** Gives the callers that are away from parked calls of a server the time they have now. */
  #reset(server: string): void {
    const away = this.#calls.where((flow) => flow.server === server && !flow.isAwaited && !flow.isOver);
    const now = this.#options.clock.now();
    for (const parked of away)
      this.#calls.keep(parked, Math.max(0, parked.leftAt + this.#ttlMs(server) - now));
  }
}
