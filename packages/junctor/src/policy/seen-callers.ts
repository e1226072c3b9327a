import type { Caller } from "@junctor/core/mcp";

/** The most callers that are remembered. */
const maxSeen = 1000;

/**
 * The callers that came in lately by a token or a certificate, with all that it proved of them. The config knows no such caller
 * by name. One is forgotten when its proof has expired, or when more than 1,000 others came after it.
 */
export class SeenCallers {
  readonly #seen = new Map<string, Caller>();
  readonly #date: () => number;

  /** `date` is the wall clock, in milliseconds. */
  constructor(date: () => number) {
    this.#date = date;
  }

  /** A caller was let in. The same object stands for all requests with one token, so that most cost one look. */
  note(caller: Caller): void {
    if (caller.issuer === undefined || this.#seen.get(caller.name) === caller) return;
    this.#seen.delete(caller.name);
    this.#seen.set(caller.name, caller);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxSeen && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** A caller by its name; undefined if it is not remembered. */
  find(name: string): Caller | undefined {
    const caller = this.#seen.get(name);
    if (caller?.expiresAt === undefined || caller.expiresAt > this.#date()) return caller;
    this.#seen.delete(name);
    return undefined;
  }

  /** Their names, the newest last. */
  names(): readonly string[] {
    return [...this.#seen.keys()].filter((name) => this.find(name) !== undefined);
  }
}
