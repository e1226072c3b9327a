import type { Cancellation } from "../async/cancellation.ts";
import type { Clock } from "../async/clock.ts";
import { createDeferred, type Deferred } from "../async/deferred.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { UpstreamError } from "../errors/upstream-error.ts";
import type { RawJson } from "../json/raw.ts";
import { notOffered } from "../mcp/question.ts";
import type { Ask } from "../mcp/types.ts";
import type { AskCaller } from "../tools/context.ts";
import { AskHabits } from "./ask-habits.ts";

/** A call that is underway, as far as questions are concerned. */
export interface OpenCall {
  /** What it requests, such as the name of a tool. */
  readonly about: string;
  /** Whose call it is: a session or the name of a caller. */
  readonly owner: unknown;
  /** Asks its caller; undefined for a caller that can be asked nothing. */
  readonly ask: AskCaller | undefined;
}

/** How a call ended: the server answered it, it was never sent, or the server may still be at work on it. */
type CallOver = "answered" | "not_sent" | "given_up";

interface AskRouterOptions {
  /** The name of the server, for messages to callers. */
  readonly server: string;
  readonly clock: Clock;
  readonly habits?: AskHabits | undefined;
  /** Told why a question was refused to the server. */
  readonly onRefused: (text: string) => void;
  /** Told when a call begins to wait for its turn; the returned function is called when it waits no longer. */
  readonly onWaiting?: (() => () => void) | undefined;
}

/**
 * Calls that are not known to ask, of callers that can be asked nothing. They are counted and not told apart: a question of
 * any of them is answered in the same way. A question begins a new group, so that it waits for those before it only.
 */
interface QuietGroup extends OpenCall {
  count: number;
  readonly leave: (isGivenUp: boolean) => void;
}

/** A question whose call is not known yet. */
interface Held {
  readonly candidates: Set<OpenCall>;
  /** Resolves with the call once only one can have asked. */
  readonly call: Deferred<OpenCall>;
}

/** A call that was given up: its server may not care, and ask something for it until then. */
interface Ghost {
  readonly owner: unknown;
  readonly until: number;
}

/** A call that waits for its turn. */
interface WaitingTurn {
  readonly call: OpenCall;
  readonly begin: () => void;
}

/** How long a call of an unknown kind waits for others of an unknown kind, at a server that never asked anything. */
const trialMs = 2000;
/** How long a call waits for its turn. */
const maxWaitMs = 60_000;
const maxWaiting = 1000;
/** How long a question is held until it is known whose it is. */
const maxHoldMs = 60_000;
const maxHeld = 100;
/** How long a call that was given up may still be the one that asks. */
const ghostMs = 60_000;

/**
 * Finds the call a legacy server's question belongs to, where neither the question nor the stream it came on tells. A
 * question is held until one call is left that can have asked it: that call cannot end before it is answered, the others
 * do. So that this comes soon, calls that may ask take turns, and all others run beside them. A question that stays
 * ambiguous is refused to the server: it must never reach another caller.
 */
export class AskRouter {
  readonly #options: AskRouterOptions;
  readonly #habits: AskHabits;
  readonly #open = new Set<OpenCall>();
  /** Those of them that may ask. */
  readonly #loud = new Set<OpenCall>();
  readonly #asking = new Set<OpenCall>();
  readonly #held = new Set<Held>();
  /** The group of calls that are begun now, and earlier ones that have not ended. */
  #group: QuietGroup = this.#createGroup();
  readonly #groups = new Set<QuietGroup>();
  readonly #queue = new Set<WaitingTurn>();
  /** Calls that were given up and may still ask something. */
  #ghosts: readonly Ghost[] = [];

  constructor(options: AskRouterOptions) {
    this.#options = options;
    this.#habits = options.habits ?? new AskHabits();
  }

  /**
   * The same for a caller that can be asked nothing, and a request that is not known to ask. Gives the function to be called
   * when the call is over; undefined when the request may ask.
   */
  enterQuietly(about: string): ((isGivenUp: boolean) => void) | undefined {
    if (this.#habits.mayAsk(about)) return undefined;
    this.#group.count++;
    return this.#group.leave;
  }

  /** A call is about to be sent. A promise means that it waits for its turn; it rejects when the turn does not come. */
  enter(call: OpenCall, stop: Cancellation): Promise<void> | undefined {
    if (this.#mayBegin(call) && !(this.#queue.size > 0 && this.#isLoud(call))) {
      this.#begin(call);
      return undefined;
    }
    return this.#turn(call, stop);
  }

  /** A call asked something on a stream of its own, which says whose the question is: its like need no turns. */
  attributed(call: OpenCall): void {
    if (!this.#loud.has(call)) return;
    this.#habits.noteQuiet(call.about);
    if (!this.#isLoud(call)) this.#loud.delete(call);
    this.#serveQueue();
  }

  /** A call is over. */
  leave(call: OpenCall, end: CallOver): void {
    this.#open.delete(call);
    this.#loud.delete(call);
    const hasAsked = this.#asking.delete(call);
    if (end === "answered" && !hasAsked) this.#habits.noteQuiet(call.about);
    if (end === "given_up") this.#addGhost(call.owner);
    for (const held of this.#held) this.#narrow(held, call, end === "given_up");
    this.#serveQueue();
  }

  /** Asks the caller of the call that asked. Rejects with an `RpcError` when that is not known in time. */
  async ask(ask: Ask, signal: AbortSignal): Promise<RawJson> {
    const call = await this.#find(ask, signal);
    if (call.about !== "") this.#habits.noteAsked(call.about);
    this.#asking.add(call);
    if (call.ask === undefined) throw notOffered(ask, {});
    return call.ask(ask, signal);
  }

  #addGhost(owner: unknown): void {
    const until = this.#options.clock.now() + ghostMs;
    this.#ghosts = [
      ...this.#ghosts.filter((ghost) => ghost.owner !== owner).slice(-maxWaiting),
      { owner, until },
    ];
  }

  #createGroup(): QuietGroup {
    const group: QuietGroup = {
      about: "",
      owner: undefined,
      ask: undefined,
      count: 0,
      leave: (isGivenUp) => {
        // No caller is its owner: the caller that gave it up can be asked nothing.
        if (isGivenUp) this.#addGhost(group);
        if (--group.count > 0 || !this.#groups.delete(group)) return;
        for (const held of this.#held) this.#narrow(held, group, false);
      },
    };
    return group;
  }

  #isLoud({ about }: OpenCall): boolean {
    return this.#habits.mayAsk(about);
  }

  #mayBegin(call: OpenCall): boolean {
    return !this.#isLoud(call) || (this.#loud.size === 0 && this.#held.size === 0);
  }

  #begin(call: OpenCall): void {
    this.#open.add(call);
    if (this.#isLoud(call)) this.#loud.add(call);
  }

  #serveQueue(): void {
    for (const waiting of this.#queue) if (this.#mayBegin(waiting.call)) waiting.begin();
  }

  #turn(call: OpenCall, stop: Cancellation): Promise<void> {
    const { server, clock, onWaiting } = this.#options;
    if (this.#queue.size >= maxWaiting)
      return Promise.reject(busy(server, `has more calls waiting than it may (${maxWaiting})`));
    return new Promise((resolve, reject) => {
      const doneWaiting = onWaiting?.();
      const end = (settle: () => void): void => {
        stopTimer();
        stopTrial();
        stop.offAbort(giveUp);
        this.#queue.delete(waiting);
        doneWaiting?.();
        settle();
      };
      const begin = (): void => {
        this.#begin(call);
        end(resolve);
      };
      const waiting: WaitingTurn = { call, begin };
      const giveUp = (): void => end(() => reject(stop.reason));
      const stopTimer = clock.timer(maxWaitMs, () => {
        const text = `is busy with a call that may ask its caller something, and it did not end within ${maxWaitMs} ms`;
        end(() => reject(busy(server, text)));
      });
      const stopTrial = clock.timer(trialMs, () => {
        // Most servers never ask; callers of one of those must not wait for each other for long.
        if (!this.#habits.hasAsked && this.#held.size === 0) begin();
      });
      this.#queue.add(waiting);
      if (stop.isAborted) giveUp();
      else stop.onAbort(giveUp);
    });
  }

  async #find({ method }: Ask, signal: AbortSignal): Promise<OpenCall> {
    const { clock } = this.#options;
    this.#ghosts = this.#ghosts.filter(({ until }) => until > clock.now());
    if (this.#group.count > 0) {
      this.#groups.add(this.#group);
      this.#group = this.#createGroup();
    }
    const all = [...this.#open, ...this.#groups];
    const [only, ...others] = all;
    // A question of a call that was given up may reach the caller that gave it up, and no other.
    const isDoubtful = this.#ghosts.some((ghost) =>
      [...this.#open].some(({ owner }) => owner !== ghost.owner),
    );
    if (isDoubtful) throw this.#refusal(`${method} may belong to a call that was given up`);
    if (only === undefined) throw this.#refusal(`${method} belongs to no call that is underway`);
    if (others.length === 0 || all.every((call) => call.ask === undefined)) return only;
    if (this.#held.size >= maxHeld) throw this.#refusal(several(method));
    const held: Held = { candidates: new Set(all), call: createDeferred<OpenCall>() };
    this.#held.add(held);
    const refuse = (): void => held.call.reject(this.#refusal(several(method)));
    const stopTimer = clock.timer(maxHoldMs, refuse);
    const withdraw = (): void => held.call.reject(signal.reason);
    signal.addEventListener("abort", withdraw, { once: true });
    if (signal.aborted) withdraw();
    try {
      return await held.call.promise;
    } finally {
      stopTimer();
      signal.removeEventListener("abort", withdraw);
      this.#held.delete(held);
      this.#serveQueue();
    }
  }

  /** One call less can have asked a question. One that was given up can have, and is not there to be answered. */
  #narrow({ candidates, call: found }: Held, call: OpenCall, isGhost: boolean): void {
    if (!candidates.delete(call)) return;
    const isDoubtful = isGhost && [...candidates].some(({ owner }) => owner !== call.owner);
    if (isDoubtful) return found.reject(this.#refusal("The question may belong to a call that was given up"));
    const [only, ...others] = candidates;
    if (only === undefined)
      found.reject(this.#refusal("Every call that can have asked the question is over"));
    else if (others.length === 0) found.resolve(only);
  }

  #refusal(text: string): RpcError {
    this.#options.onRefused(`A question of ${this.#options.server} was refused: ${text}`);
    return new RpcError("rpc.invalid_params", text);
  }
}

function several(method: string): string {
  return `There are several calls it can be for, and ${method} does not say which`;
}

function busy(server: string, why: string): UpstreamError {
  return new UpstreamError("busy", `${server} ${why}; this one was not sent.`, {
    server,
    delivery: "not_sent",
  });
}
