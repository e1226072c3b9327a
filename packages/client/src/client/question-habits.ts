/** Most requests of each sort that are remembered; a server that keeps inventing names gains nothing. */
const maxRemembered = 10_000;

/** How long after its last question that stayed unanswered a caller is taken for one that answers. */
const forgivenMs = 10 * 60_000;

/** What a server does with questions, and who left them unanswered. Shared by all connections to the server. */
export class QuestionHabits {
  readonly #asking = new Set<string>();
  /** The protocol lets a server ask during `tools/call`, `prompts/get` and `resources/read`. Quiet calls together have no name. */
  readonly #quiet = new Set<string>(["completion/complete", ""]);
  /** Requests whose calls asked one question each, so far. */
  readonly #askingOnce = new Set<string>();
  /** Requests of which a call asked more than one question. */
  readonly #askingMore = new Set<string>();
  /** A call of the server asked something while another question of it was open. */
  #hasAskedTogether = false;
  #hasAskedAfterEnd = false;
  /** By holder of calls, those first that were noted longest ago. */
  readonly #unanswered = new Map<unknown, { readonly count: number; readonly until: number }>();

  readonly #onFirstAsked: () => void;

  constructor(onFirstAsked: () => void = () => {}) {
    this.#onFirstAsked = onFirstAsked;
  }

  /** Whether the server ever asked anything. */
  get hasAsked(): boolean {
    return this.#asking.size > 0;
  }

  /** Whether a request of this kind may ask: it did before, or it never ended without asking. */
  mayAsk(about: string): boolean {
    return !this.#quiet.has(about);
  }

  noteAsked(about: string): void {
    this.#quiet.delete(about);
    if (!this.hasAsked) this.#onFirstAsked();
    if (this.#asking.size < maxRemembered) this.#asking.add(about);
  }

  /** Whether a call of this kind that asked its question will most likely ask no other. */
  asksOnce(about: string): boolean {
    return this.#askingOnce.has(about) && !this.#hasAskedTogether;
  }

  /** Whether the server ever asked something when no call was underway that can have asked it. */
  get hasAskedAfterEnd(): boolean {
    return this.#hasAskedAfterEnd;
  }

  /** A call asked for the nth time. `isTogether`: while another question of it was open. */
  noteQuestion(about: string, count: number, isTogether: boolean): void {
    this.noteAsked(about);
    this.#hasAskedTogether ||= isTogether;
    if (count > 1) this.noteAskedMore(about);
  }

  /** A call of this kind asked, or may have asked, more than one question. */
  noteAskedMore(about: string): void {
    this.#askingOnce.delete(about);
    if (this.#askingMore.size < maxRemembered) this.#askingMore.add(about);
  }

  /** A call ended after so many questions. */
  noteEnd(about: string, questions: number): void {
    if (questions === 0) this.noteQuiet(about);
    if (questions === 1 && !this.#askingMore.has(about) && this.#askingOnce.size < maxRemembered)
      this.#askingOnce.add(about);
  }

  noteAskedAfterEnd(): void {
    this.#hasAskedAfterEnd = true;
  }

  /** A request of this kind ended and had asked nothing. One that asked once is never taken for quiet again. */
  noteQuiet(about: string): void {
    if (!this.#asking.has(about) && this.#quiet.size < maxRemembered) this.#quiet.add(about);
  }

  /** How many questions a caller left unanswered lately, while others waited for it. */
  unansweredBy(holder: unknown, now: number): number {
    const { count, until } = this.#unanswered.get(holder) ?? { count: 0, until: 0 };
    return now < until ? count : 0;
  }

  noteUnanswered(holder: unknown, now: number): void {
    const count = this.unansweredBy(holder, now) + 1;
    this.#unanswered.delete(holder); // So that it counts as new.
    this.#unanswered.set(holder, { count, until: now + forgivenMs });
    for (const [each, { until }] of this.#unanswered) {
      if (now < until && this.#unanswered.size <= maxRemembered) break;
      this.#unanswered.delete(each);
    }
  }
}
