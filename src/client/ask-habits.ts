/** Most requests of each sort that are remembered; a server that keeps inventing names gains nothing. */
const maxRemembered = 10_000;

/** Which requests of a server ask its callers something, as far as that was seen. Shared by all lines to the server. */
export class AskHabits {
  readonly #asking = new Set<string>();
  /** The protocol lets a server ask during `tools/call`, `prompts/get` and `resources/read`. Quiet calls together have no name. */
  readonly #quiet = new Set<string>(["completion/complete", ""]);

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
    if (this.#asking.size < maxRemembered) this.#asking.add(about);
  }

  /** A request of this kind ended and had asked nothing. One that asked once is never taken for quiet again. */
  noteQuiet(about: string): void {
    if (!this.#asking.has(about) && this.#quiet.size < maxRemembered) this.#quiet.add(about);
  }
}
