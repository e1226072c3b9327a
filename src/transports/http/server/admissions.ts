import { Numbered } from "../../../async/numbered.ts";

/** Something that goes on for a caller. */
export interface Admitted {
  readonly caller: string | undefined;
  /** The caller may no longer come in: it is ended, and says nothing more but that. */
  revoke(): void;
}

/** Who is let in, and what goes on for them: the right to come in may be taken away in the middle of everything. */
export class Admissions {
  readonly #open = new Numbered<Admitted>();
  /** When a caller was last sent away, in turns. There are as many as there ever were keys that were taken away. */
  readonly #revoked = new Map<string | undefined, number>();
  #turn = 0;

  /** The moment, for `holds`. Taken before it is asked who somebody is. */
  get turn(): number {
    return this.#turn;
  }

  /** Whether a caller who was let in at a moment may still go on. */
  holds(caller: string | undefined, since: number): boolean {
    return this.#turn === since || (this.#revoked.get(caller) ?? 0) <= since;
  }

  /** Says the number it goes on under, by which it is let go. */
  add(admitted: Admitted): number {
    return this.#open.add(admitted);
  }

  delete(number: number): void {
    this.#open.delete(number);
  }

  /** Ends all that goes on for a caller, and what it was let in for and has not begun. */
  revoke(caller: string | undefined): void {
    this.#revoked.set(caller, ++this.#turn);
    for (const admitted of this.#open.values()) if (admitted.caller === caller) admitted.revoke();
  }
}
