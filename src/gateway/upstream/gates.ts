import type { StartGate } from "./start-gate.ts";

export interface GatesOptions {
  readonly gate: StartGate;
  /**
   * Counts, for all lines of the server, what was started and did not last. It holds back no line that is kept alive, and
   * nobody while what is started stays up.
   */
  readonly common?: StartGate | undefined;
  /** Whether it is started again by itself when it was lost; else when it is needed next. */
  readonly keepsAlive: boolean;
}

/** What holds back the starts of one line: those it had lately, and what did not last of all lines of its server. */
export class Gates {
  readonly #options: GatesOptions;
  /** Something was started in this life. */
  #hasStarted = false;

  constructor(options: GatesOptions) {
    this.#options = options;
  }

  /** How long the next start has to wait. */
  get delayMs(): number {
    return Math.max(this.#options.gate.delayMs, this.commonMs);
  }

  /** How long it has to wait because of the other lines. */
  get commonMs(): number {
    const { common, keepsAlive } = this.#options;
    return keepsAlive ? 0 : (common?.delayMs ?? 0);
  }

  /** A new life begins. */
  begin(): void {
    this.#hasStarted = false;
  }

  noteStart(): void {
    this.#options.gate.note();
    this.#hasStarted = true;
  }

  /** It ended without having lasted. */
  noteEnd(): void {
    if (this.#hasStarted) this.#options.common?.note();
  }
}
