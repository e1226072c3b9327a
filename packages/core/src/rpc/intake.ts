import type { Clock } from "../async/index.ts";
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
const holdMs = 100;
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
  /** Called when an answer could not be sent. */
  readonly onFailed: (error: unknown) => void;
}

/** Messages that were read and are not started yet. */
class HeldMessages {
  readonly #messages: Incoming[] = [];
  #bytes = 0;

  get size(): number {
    return this.#messages.length;
  }

  /** Whether so much is held that nothing more is to be read. */
  get isFull(): boolean {
    return this.#messages.length >= maxHeld || this.#bytes > maxHeldBytes;
  }

  push(incoming: Incoming): void {
    this.#messages.push(incoming);
    this.#bytes += bytesOf(incoming);
  }

  /** Lets go of a request, and says whether there was one. */
  cancel(id: RequestId): boolean {
    const index = this.#messages.findIndex((incoming) => incoming.kind === "request" && incoming.id === id);
    const [cancelled] = index === -1 ? [] : this.#messages.splice(index, 1);
    if (cancelled === undefined) return false;
    this.#bytes -= bytesOf(cancelled);
    return true;
  }

  /** Starts messages in their order for as long as that may be done, and says how many. */
  start(mayStart: () => boolean, start: (incoming: Incoming) => void): number {
    let started = 0;
    while (this.#messages.length > 0 && mayStart()) {
      // Taken out first: the message may end the peer, which starts the rest.
      const incoming = this.#messages.shift() as Incoming;
      this.#bytes -= bytesOf(incoming);
      start(incoming);
      started++;
    }
    return started;
  }

  clear(): void {
    this.#messages.length = 0;
    this.#bytes = 0;
  }
}

/** The answers of a peer that the transport has not taken yet. */
class UnsentAnswers {
  readonly #channel: Pick<Channel, "send">;
  readonly #onTaken: (failure?: { readonly error: unknown }) => void;
  #count = 0;
  #length = 0;
  /** Characters of an answer: grows at once with a longer one, and shrinks slowly. */
  #expected = firstExpected;
  /** Answers that the transport will take together: one promise to watch instead of one for each. */
  #company: { readonly taken: Promise<void>; count: number; length: number } | undefined;

  constructor(channel: Pick<Channel, "send">, onTaken: (failure?: { readonly error: unknown }) => void) {
    this.#channel = channel;
    this.#onTaken = onTaken;
  }

  get count(): number {
    return this.#count;
  }

  /** Sends an answer. It waits for as long as the other side takes. */
  send(answer: Response | readonly Response[]): void {
    const taken = this.#channel.send(answer);
    const length = lengthOf(answer);
    this.#expected = Math.max(length, (7 * this.#expected + length) / 8);
    this.#count++;
    this.#length += length;
    if (this.#company?.taken === taken) {
      this.#company.count++;
      this.#company.length += length;
      return;
    }
    const together = { taken, count: 1, length };
    this.#company = together;
    const onTaken = (failure?: { readonly error: unknown }): void => {
      this.#count -= together.count;
      this.#length -= together.length;
      this.#onTaken(failure);
    };
    taken.then(
      () => onTaken(),
      (error: unknown) => onTaken({ error }),
    );
  }

  /** Whether the transport is so far behind that no request is to be started. */
  get areTooMany(): boolean {
    return this.#count >= maxUnsent || this.#length > maxUnsentLength;
  }

  /** Whether there is room for the answer to one more request, beside those to the requests underway. */
  hasRoom(underway: number): boolean {
    if (this.areTooMany) return false;
    return underway === 0 || this.#length + underway * this.#expected <= maxExpectedLength;
  }
}

/**
 * The pace of a peer. Requests are started as fast as the other side takes the answers: when too much waits for a slow
 * reader, requests are held, and when too many are held, nothing more is read. No answer is dropped. How much memory the
 * answers to requests underway will take is not known before they are there, so they are taken to be as long as those
 * before them.
 */
export class Intake {
  readonly held: HeldMessages = new HeldMessages();
  readonly answers: UnsentAnswers;
  readonly #options: IntakeOptions;
  #stopTimer: (() => void) | undefined;
  #waiting: (() => void)[] = [];

  constructor(channel: Pick<Channel, "send">, options: IntakeOptions) {
    this.#options = options;
    this.answers = new UnsentAnswers(channel, (failure) => {
      if (failure !== undefined) {
        options.onFailed(failure.error);
        // The reader is gone: requests that are held would be served for no one.
        this.held.clear();
      }
      this.#startHeld(() => this.#hasRoom());
      this.#changed();
    });
  }

  /** Whether nothing is held, and every answer is taken. */
  get isEmpty(): boolean {
    return this.answers.count === 0 && this.held.size === 0;
  }

  /** Starts a message, now or when the other side has taken enough. */
  take(incoming: Incoming): void {
    const isPing = incoming.kind === "request" && incoming.method === "ping" && !this.answers.areTooMany;
    if (isPing || (this.held.size === 0 && this.#hasRoom())) return this.#options.start(incoming);
    this.held.push(incoming);
    this.#relieveSoon();
  }

  /** Lets go of a request that is held, and says whether there was one. */
  cancel(id: RequestId): boolean {
    const isCancelled = this.held.cancel(id);
    if (isCancelled) this.#changed();
    return isCancelled;
  }

  /** Starts everything that is held, whether there is room or not: the peer refuses all of it from now on. */
  flush(): void {
    this.#startHeld(() => true);
  }

  /** Resolves when an answer was taken, or a message that was held is started or cancelled. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #hasRoom(): boolean {
    return this.answers.hasRoom(this.#options.underway());
  }

  /** Requests may take long and have short answers: they are not held for ever while the other side keeps up. */
  #relieveSoon(): void {
    if (this.held.size === 0 || this.answers.count > 0) return;
    this.#stopTimer ??= this.#options.clock.timer(holdMs, () => {
      this.#stopTimer = undefined;
      if (this.answers.count > 0) return;
      let relieved = 0;
      this.#startHeld(() => !this.answers.areTooMany && relieved++ < maxRelieved);
    });
  }

  #startHeld(mayStart: () => boolean): void {
    if (this.held.size > 0) {
      if (this.held.start(mayStart, this.#options.start) > 0) this.#changed();
      this.#relieveSoon();
    }
    if (this.held.size === 0) {
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
