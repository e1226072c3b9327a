import { randomBytes } from "node:crypto";
import type { Clock } from "../../async/clock.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { ToolError } from "../../errors/tool-error.ts";
import type { CallContext } from "../../tools/context.ts";
import type { Outcome, Resumption } from "../../tools/provider.ts";
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
  readonly maxParkedPerCaller?: number;
}

/** What a parked call leaves with its caller, inside the seal. */
export interface ParkedState {
  readonly parked: string;
  /** Where the call was made. */
  readonly server: string;
}

/** A flow in the table, and what takes it out again. */
interface Parked {
  readonly flow: Flow;
  stopTimer: () => void;
  /** When its caller left with the question. */
  leftAt: number;
  /** Whether its caller was told how it ended, and it is only kept in case that was lost on the way. */
  isTold: boolean;
}

export function isParkedState(state: unknown): state is ParkedState {
  return typeof state === "object" && state !== null && typeof (state as ParkedState).parked === "string";
}

/** The calls that wait for answers of callers that have left. One that is gone is never made again by itself. */
export class Parking {
  readonly #options: Required<ParkingOptions>;
  readonly #flows = new Map<string, Parked>();
  readonly #perCaller = new Map<string | undefined, number>();
  /** How many calls wait for the parked calls of a server, and how long the callers of those may take meanwhile. */
  readonly #wanted = new Map<string, { count: number; readonly ms: number }>();

  constructor(options: ParkingOptions) {
    this.#options = {
      ttlMs: 10 * 60_000,
      keepMs: 60_000,
      gatherMs: 30,
      maxParked: 16_384,
      maxParkedPerCaller: 1024,
      ...options,
    };
  }

  get size(): number {
    return this.#flows.size;
  }

  /** Makes a call for a modern caller. When it asks something it is parked, and the outcome is the questions. */
  run(server: string, invoke: Invoke, context: CallContext): Promise<Outcome> {
    const { clock, gatherMs } = this.#options;
    const flow = new Flow(server, context.caller, { clock, gatherMs });
    const id = randomBytes(16).toString("base64url");
    return flow.start(invoke, context, () => this.#park(id, flow));
  }

  /** Goes on with a parked call. The seal has made sure that it is the same caller and the same request. */
  async resume(
    state: ParkedState,
    { answers, latest = answers }: Resumption,
    context: CallContext,
  ): Promise<Outcome> {
    const parked = this.#flows.get(state.parked);
    if (parked === undefined) throw abandonedCall(state.server, notParked);
    if (parked.flow.caller !== context.caller)
      throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another caller");
    const { flow } = parked;
    // Its caller is back: however long the server takes from here, nobody is waited for.
    parked.stopTimer();
    try {
      return await flow.answer(latest, context, () => this.#park(state.parked, flow));
    } finally {
      // The end is kept for a while: its caller may not have got it, and asks again with the same state.
      parked.isTold = flow.isOver;
      const keptMs = flow.isOver ? this.#options.keepMs : this.#ttlMs(flow.server);
      if (!flow.isAwaited && this.#flows.has(state.parked)) this.#keep(state.parked, parked, keptMs);
    }
  }

  /** Gives up what waits at one server, which is told that nobody will answer. */
  async leave(server: string): Promise<void> {
    const flows = Array.from(this.#flows).filter(([, { flow }]) => flow.server === server);
    await Promise.all(flows.map(([id, parked]) => this.#drop(id, parked)));
  }

  /** Gives up the parked calls of a caller whose key was revoked. */
  async leaveCaller(caller: string | undefined): Promise<void> {
    const flows = Array.from(this.#flows).filter(([, { flow }]) => flow.caller === caller);
    await Promise.all(flows.map(([id, parked]) => this.#drop(id, parked)));
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

  /** Gives everything up: every server is told that nobody will answer. */
  async close(): Promise<void> {
    const flows = Array.from(this.#flows.entries());
    await Promise.all(flows.map(([id, parked]) => this.#drop(id, parked)));
  }

  #park(id: string, flow: Flow): ParkedState {
    const known = this.#flows.get(id);
    if (known === undefined && !this.#makeRoom(flow.caller)) {
      void flow.giveUp(new Error("too many calls wait for answers"));
      throw new ToolError("Too many calls wait for answers; answer or let go of some of them first.");
    }
    const leftAt = this.#options.clock.now();
    const parked = known ?? { flow, stopTimer: () => {}, leftAt, isTold: false };
    parked.leftAt = leftAt;
    if (known === undefined) this.#perCaller.set(flow.caller, (this.#perCaller.get(flow.caller) ?? 0) + 1);
    this.#flows.set(id, parked);
    this.#keep(id, parked, this.#ttlMs(flow.server));
    return { parked: id, server: flow.server };
  }

  /** Whether one more call of a caller may wait. At a limit, what is only kept for those who ask twice goes first. */
  #makeRoom(caller: string | undefined): boolean {
    const { maxParked, maxParkedPerCaller } = this.#options;
    const isCallerFull = (): boolean => (this.#perCaller.get(caller) ?? 0) >= maxParkedPerCaller;
    const isFull = (): boolean => this.#flows.size >= maxParked || isCallerFull();
    if (!isFull()) return true;
    for (const [id, parked] of this.#flows) {
      if (!parked.isTold || (isCallerFull() && parked.flow.caller !== caller)) continue;
      void this.#drop(id, parked);
      if (!isFull()) return true;
    }
    return false;
  }

  #ttlMs(server: string): number {
    return Math.min(this.#options.ttlMs, this.#wanted.get(server)?.ms ?? Infinity);
  }

  /** Gives the callers that are away from parked calls of a server the time they have now. */
  #reset(server: string): void {
    const { clock } = this.#options;
    for (const [id, parked] of this.#flows) {
      if (parked.flow.server !== server || parked.flow.isAwaited || parked.flow.isOver) continue;
      this.#keep(id, parked, Math.max(0, parked.leftAt + this.#ttlMs(server) - clock.now()));
    }
  }

  #keep(id: string, parked: Parked, ms: number): void {
    parked.stopTimer();
    parked.stopTimer = this.#options.clock.timer(ms, () => void this.#drop(id, parked));
  }

  async #drop(id: string, parked: Parked): Promise<void> {
    parked.stopTimer();
    if (!this.#flows.delete(id)) return;
    const { caller } = parked.flow;
    const left = (this.#perCaller.get(caller) ?? 1) - 1;
    if (left > 0) this.#perCaller.set(caller, left);
    else this.#perCaller.delete(caller);
    if (!parked.flow.isOver) await parked.flow.giveUp(new Error("nobody came back with the answers"));
  }
}
