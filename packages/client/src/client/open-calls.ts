import type { Clock } from "@junctor/core/async";
import type { ClientCapabilities } from "@junctor/core/mcp";
import type { AskCaller } from "@junctor/core/provider";
import type { QuestionHabits } from "./question-habits.ts";

/** A call that is underway, as far as questions are concerned. */
export interface OpenCall {
  /** What it requests, such as the name of a tool. */
  readonly about: string;
  /** Whose call it is: a session or the name of a caller. */
  readonly owner: unknown;
  /** Whose share of the turns it takes: the name of the caller, else its session. */
  readonly holder?: unknown;
  /** Asks its caller; undefined for a caller that can be asked nothing. */
  readonly ask: AskCaller | undefined;
  /** How many questions it asked so far. */
  questions?: number;
  /** A question was refused that it may have asked. */
  isSuspected?: boolean;
  /** Cancels it on the server, and fails it with this error. */
  readonly giveUp?: (error: Error) => void;
  /** The capabilities that its caller lacks for what was asked. */
  lacks?: ClientCapabilities | undefined;
}

/**
 * Calls that are not known to ask, of callers that can be asked nothing. They are only counted: a question of
 * any of them is answered in the same way. A question begins a new group, so that it waits for those before it only.
 */
interface QuietGroup extends OpenCall {
  count: number;
  readonly leave: (isGivenUp: boolean) => void;
}

/** A call that is over, for which its server may ask something until then. */
interface Ghost {
  readonly about: string;
  readonly owner: unknown;
  readonly until: number;
  /** Its result came, so it can only have asked right after that. */
  readonly isAnswered: boolean;
}

/** How long a call that was given up may still be the one that asks, and any call of a server that was seen to ask after the end of one. */
const ghostMs = 60_000;
/** How long after its end a call that may ask can be the one that asks: what was sent right after the result is still on the way. */
export const settleMs = 20;
const maxGhosts = 1000;

/** The calls that can ask something: those that are underway, and those that were given up a short time ago. */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #onGroupOver: (group: OpenCall, isGivenUp: boolean) => void;
  readonly #calls = new Set<OpenCall>();
  /** The group of calls that are begun now, and earlier ones that have not ended. */
  #group: QuietGroup = this.#createGroup();
  readonly #groups = new Set<QuietGroup>();
  #ghosts: readonly Ghost[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, onGroupOver: (group: OpenCall, isGivenUp: boolean) => void) {
    this.#clock = clock;
    this.#onGroupOver = onGroupOver;
  }

  add(call: OpenCall): void {
    this.#calls.add(call);
  }

  /** Counts a call to the quiet group. Gives the function to be called when the call is over. */
  addQuiet(): (isGivenUp: boolean) => void {
    this.#group.count++;
    return this.#group.leave;
  }

  /** A call is over. */
  delete(call: OpenCall, end: "answered" | "not_sent" | "given_up", habits: QuestionHabits): void {
    this.#calls.delete(call);
    if (end === "not_sent") return;
    const isAnswered = end === "answered";
    if (!isAnswered || habits.hasAskedAfterEnd) this.#addGhost(call, ghostMs, isAnswered);
    else if (call.isSuspected === true || (habits.mayAsk(call.about) && !hasAskedAll(call, habits)))
      this.#addGhost(call, settleMs, isAnswered);
    this.#endedAt = this.#clock.now();
  }

  /** Whether a call ended a short time ago. */
  get hasEndedLately(): boolean {
    return this.#clock.now() - this.#endedAt < ghostMs;
  }

  /** Whether no other caller has a call underway. */
  isAlone(owner: unknown): boolean {
    return [...this.#calls].every((call) => call.owner === owner);
  }

  /** The calls that can have asked a question that comes now. */
  candidates(): readonly OpenCall[] {
    if (this.#group.count > 0) {
      this.#groups.add(this.#group);
      this.#group = this.#createGroup();
    }
    return [...this.#calls, ...this.#groups];
  }

  /**
   * Whether a question that comes now may belong to a call that is over. That is so if a call of another caller is underway, or
   * if the call that is over may ask and all calls underway are of quiet tools. A tool whose result came right before the question
   * is no longer expected to ask only once.
   */
  isDoubtful(habits: QuestionHabits): boolean {
    const now = this.#clock.now();
    this.#ghosts = this.#ghosts.filter(({ until }) => until > now);
    if (this.#ghosts.length === 0) return false;
    for (const { about, isAnswered } of this.#ghosts) if (isAnswered) habits.noteAskedMore(about);
    const calls = [...this.#calls];
    const isAsking = calls.some(({ about }) => habits.mayAsk(about));
    return this.#ghosts.some(
      (ghost) =>
        calls.some(({ owner }) => owner !== ghost.owner) ||
        (calls.length > 0 && !isAsking && habits.mayAsk(ghost.about)),
    );
  }

  #addGhost({ about, owner }: Pick<OpenCall, "about" | "owner">, ms: number, isAnswered: boolean): void {
    const isSame = (ghost: Ghost): boolean =>
      ghost.owner === owner && ghost.about === about && ghost.isAnswered === isAnswered;
    const others = this.#ghosts.filter((ghost) => !isSame(ghost)).slice(-maxGhosts);
    const until = Math.max(
      this.#clock.now() + ms,
      ...this.#ghosts.filter(isSame).map((ghost) => ghost.until),
    );
    this.#ghosts = [...others, { about, owner, until, isAnswered }];
  }

  #createGroup(): QuietGroup {
    let hasGivenUp = false;
    const group: QuietGroup = {
      about: "",
      owner: undefined,
      ask: undefined,
      count: 0,
      leave: (isGivenUp) => {
        // No caller is its owner: the caller that gave it up can be asked nothing.
        if (isGivenUp) this.#addGhost({ about: group.about, owner: group }, ghostMs, false);
        hasGivenUp ||= isGivenUp;
        if (--group.count === 0 && this.#groups.delete(group)) this.#onGroupOver(group, hasGivenUp);
      },
    };
    return group;
  }
}

/** Whether a call asked the one question that its tool is known to ask. */
function hasAskedAll({ about, questions }: OpenCall, habits: QuestionHabits): boolean {
  return questions === 1 && habits.asksOnce(about);
}
