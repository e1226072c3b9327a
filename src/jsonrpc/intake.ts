import type { Clock } from "../async/clock.ts";
import type { Channel, Incoming } from "./channel.ts";
import type { RequestId, Response } from "./message.ts";

/** How far the transport may be behind with our answers, in number and in characters, before no request is started. */
const maxUnsent = 64;
const maxUnsentLength = 16 * 1024 * 1024;
/** Most characters of answers that wait for the other side, with those that are expected of requests underway. */
const maxExpectedLength = 64 * 1024 * 1024;
/** How long the first answers are taken to be, until some have come. */
const firstExpected = 1024 * 1024;
/** How long requests are held while the other side takes everything we send; then so many of them are started. */
const holdMs = 1000;
const maxRelieved = 64;
/** Most messages that were read and wait to be started, in number and in bytes; beyond that nothing more is read. */
const maxHeld = 1024;
const maxHeldBytes = 4 * 1024 * 1024;

interface IntakeOptions {
  readonly clock: Clock;
  /** How many requests are worked on. */
  readonly underway: () => number;
  /** Starts what waited. */
  readonly start: (incoming: Incoming) => void;
  /** Told of an answer that could not be sent. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * The pace of a peer. What it is asked is started as fast as the other side takes the answers: when too much waits for a
 * slow reader, requests are held, and when too many are held, nothing more is read. No answer is dropped. How much memory
 * the answers to requests underway will take is not known before they are there, so they are taken to be as long as
 * those before them.
 */
export class Intake {
  readonly #channel: Pick<Channel, "send">;
  readonly #options: IntakeOptions;
  #unsent = 0;
  #unsentLength = 0;
  /** Characters of an answer: grows at once with a longer one, and shrinks slowly. */
  #expected = firstExpected;
  /** Answers that the transport will take together: one promise to watch instead of one for each. */
  #company: { readonly taken: Promise<void>; count: number; length: number } | undefined;
  readonly #held: Incoming[] = [];
  #heldBytes = 0;
  #stopTimer: (() => void) | undefined;
  #waiting: (() => void)[] = [];

  constructor(channel: Pick<Channel, "send">, options: IntakeOptions) {
    this.#channel = channel;
    this.#options = options;
  }

  /** Whether so much is held that nothing more is to be read. */
  get isFull(): boolean {
    return this.#held.length >= maxHeld || this.#heldBytes > maxHeldBytes;
  }

  /** Whether nothing is held, and every answer is taken. */
  get isEmpty(): boolean {
    return this.#unsent === 0 && this.#held.length === 0;
  }

  get hasHeld(): boolean {
    return this.#held.length > 0;
  }

  /** Starts what was read, now or when the other side has taken enough. */
  take(incoming: Incoming): void {
    if (this.#held.length === 0 && this.#hasRoom()) return this.#options.start(incoming);
    this.#held.push(incoming);
    this.#heldBytes += bytesOf(incoming);
    this.#relieveSoon();
  }

  /** Lets go of a request that is held, and says whether there was one. */
  cancel(id: RequestId): boolean {
    const index = this.#held.findIndex((incoming) => incoming.kind === "request" && incoming.id === id);
    const [cancelled] = index === -1 ? [] : this.#held.splice(index, 1);
    if (cancelled === undefined) return false;
    this.#heldBytes -= bytesOf(cancelled);
    this.#changed();
    return true;
  }

  /** Starts everything that is held, whether there is room or not: the peer refuses all of it from now on. */
  flush(): void {
    this.#startHeld(() => true);
  }

  /** Sends an answer. It waits for as long as the other side takes. */
  send(answer: Response | readonly Response[]): void {
    const taken = this.#channel.send(answer);
    const length = lengthOf(answer);
    this.#expected = Math.max(length, (7 * this.#expected + length) / 8);
    this.#unsent++;
    this.#unsentLength += length;
    if (this.#company?.taken === taken) {
      this.#company.count++;
      this.#company.length += length;
      return;
    }
    const together = { taken, count: 1, length };
    this.#company = together;
    const onTaken = (): void => {
      this.#unsent -= together.count;
      this.#unsentLength -= together.length;
      this.#startHeld(() => this.#hasRoom());
      this.#changed();
    };
    taken.then(onTaken, (error: unknown) => {
      this.#options.onFailed(error);
      // What is held now would be done for a reader that is gone.
      this.#held.length = 0;
      this.#heldBytes = 0;
      onTaken();
    });
  }

  /** Resolves when an answer was taken, or something that was held is started or cancelled. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #hasRoom(): boolean {
    if (this.#unsent >= maxUnsent || this.#unsentLength > maxUnsentLength) return false;
    const underway = this.#options.underway();
    return underway === 0 || this.#unsentLength + underway * this.#expected <= maxExpectedLength;
  }

  /** Requests may take long and have short answers: they are not held for ever while the other side keeps up. */
  #relieveSoon(): void {
    if (this.#held.length === 0 || this.#unsent > 0) return;
    this.#stopTimer ??= this.#options.clock.timer(holdMs, () => {
      this.#stopTimer = undefined;
      let relieved = 0;
      this.#startHeld(() => this.#unsent === 0 && relieved++ < maxRelieved);
    });
  }

  #startHeld(mayStart: () => boolean): void {
    if (this.#held.length > 0) {
      let started = 0;
      while (started < this.#held.length && mayStart()) {
        const incoming = this.#held[started++] as Incoming;
        this.#heldBytes -= bytesOf(incoming);
        this.#options.start(incoming);
      }
      this.#held.splice(0, started);
      if (started > 0) this.#changed();
      this.#relieveSoon();
    }
    if (this.#held.length === 0) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
    }
  }

  #changed(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** About how much memory a message takes that is held. After a batch, which may be of any size, nothing more is read. */
function bytesOf(incoming: Incoming): number {
  if (incoming.kind === "batch") return maxHeldBytes + 1;
  return incoming.kind === "request" ? (incoming.params?.byteLength ?? 0) : 0;
}

/** About how long an answer is; errors are short. */
function lengthOf(answer: Response | readonly Response[]): number {
  if (Array.isArray(answer))
    return (answer as readonly Response[]).reduce((sum, item) => sum + lengthOf(item), 0);
  const response = answer as Response;
  if (response.kind === "error") return 0;
  const { written } = response.result;
  return typeof written === "string" ? written.length : response.result.byteLength;
}
