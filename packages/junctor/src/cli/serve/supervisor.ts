import { type Clock, createDeferred, type Deferred } from "@junctor/core/async";
import type { GatewayLog } from "../../log/index.ts";
import { type Complaint } from "../terminal/index.ts";

/** How a worker ended. */
export interface WorkerEnd {
  /** `exit code 1`, `SIGKILL`. */
  readonly how: string;
  /** Why it could not start, for the person who started the gateway. */
  readonly complaint?: Complaint | undefined;
}

/** A worker, as its supervisor sees it. */
export interface SupervisedWorker {
  /** Resolves when it serves. */
  readonly up: Promise<void>;
  /** Resolves when its process is gone. */
  readonly ended: Promise<WorkerEnd>;
  /** Asks it to finish its calls and end. */
  stop(): void;
  /** Ends it at once. */
  kill(): void;
}

interface SupervisorOptions<Worker> {
  readonly count: number;
  /** Starts the worker with this number, from 1 on. */
  readonly start: (number: number) => Worker;
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** How long workers may take to end. */
  readonly stopMs: number;
}

/** One of the workers, which may be between two processes. */
interface WorkerSlot<Worker> {
  worker: Worker | undefined;
  isUp: boolean;
  /** How many of its processes ended soon after their start, one after the other. */
  quickEnds: number;
  /** Stops the timer of the next start, or of this one. */
  stopTimer: () => void;
}

/** A process that lived for less is started again with a delay, unless it is the first. */
const minLifeMs = 10_000;
const firstDelayMs = 200;
const maxDelayMs = 30_000;
/** How long a worker may take until it serves. */
const startMs = 60_000;
/** As long as no worker ever served, so many ends show that none will. */
const maxFirstEnds = 5;

/**
 * Keeps a number of workers running. One that ends is replaced: at once, or with a growing delay when it ends soon after its start
 * again and again. When no worker ever came up, the first that says why, or the fifth that ends, is the end of all.
 */
export class Supervisor<Worker extends SupervisedWorker> {
  readonly #options: SupervisorOptions<Worker>;
  readonly #slots = new Map<number, WorkerSlot<Worker>>();
  readonly #allUp: Deferred<void> = createDeferred<void>();
  readonly #failed: Deferred<Complaint> = createDeferred<Complaint>();
  readonly #ended: Deferred<void> = createDeferred<void>();
  #hasServed = false;
  #firstEnds = 0;
  #isStopping = false;

  constructor(options: SupervisorOptions<Worker>) {
    this.#options = options;
    for (let number = 1; number <= options.count; number++)
      this.#slots.set(number, { worker: undefined, isUp: false, quickEnds: 0, stopTimer: () => {} });
    for (const [number, slot] of this.#slots) this.#start(number, slot);
  }

  /** Resolves when all workers are up for the first time. */
  get allUp(): Promise<void> {
    return this.#allUp.promise;
  }

  /** Resolves when the workers cannot start at all. They are being stopped then. */
  get failed(): Promise<Complaint> {
    return this.#failed.promise;
  }

  /** The workers that run or start now. */
  get running(): readonly Worker[] {
    return [...this.#slots.values()].flatMap(({ worker }) => worker ?? []);
  }

  /** Has all workers end, and resolves when they did. The last ones are killed. */
  async stop(): Promise<void> {
    const { clock, stopMs, log } = this.#options;
    if (!this.#isStopping) {
      this.#isStopping = true;
      for (const { stopTimer } of this.#slots.values()) stopTimer();
      for (const worker of this.running) worker.stop();
    }
    if (this.running.length === 0) return;
    const stopTimer = clock.timer(stopMs, () => {
      log.error({}, "workers did not end in time, and are killed");
      for (const worker of this.running) worker.kill();
    });
    await this.#ended.promise;
    stopTimer();
  }

  #start(number: number, slot: WorkerSlot<Worker>): void {
    const { clock, log } = this.#options;
    const worker = this.#options.start(number);
    const startedAt = clock.now();
    slot.worker = worker;
    slot.isUp = false;
    slot.stopTimer = clock.timer(startMs, () => {
      log.error({ worker: number }, "a worker did not start in time, and is killed");
      worker.kill();
    });
    void worker.up.then(() => {
      if (slot.worker !== worker) return;
      slot.stopTimer();
      slot.isUp = true;
      this.#hasServed = true;
      if ([...this.#slots.values()].every(({ isUp }) => isUp)) this.#allUp.resolve();
    });
    void worker.ended.then((end) => {
      slot.stopTimer();
      slot.worker = undefined;
      slot.isUp = false;
      if (this.#isStopping) {
        if (this.running.length === 0) this.#ended.resolve();
        return;
      }
      if (!this.#hasServed && (end.complaint !== undefined || ++this.#firstEnds >= maxFirstEnds))
        return this.#giveUp(end);
      slot.quickEnds = clock.now() - startedAt < minLifeMs ? slot.quickEnds + 1 : 0;
      const delayMs = toDelay(slot.quickEnds);
      const why = end.complaint === undefined ? {} : { error: end.complaint.text.trim() };
      log.error({ worker: number, how: end.how, delayMs, ...why }, "a worker ended, and is replaced");
      slot.stopTimer = clock.timer(delayMs, () => this.#start(number, slot));
    });
  }

  #giveUp({ how, complaint }: WorkerEnd): void {
    const text = `junctor: the workers end before they serve (${how})\n`;
    this.#failed.resolve(complaint ?? { text, exitCode: 3 });
    void this.stop();
  }
}

function toDelay(quickEnds: number): number {
  return quickEnds < 2 ? 0 : Math.min(maxDelayMs, firstDelayMs * 2 ** (quickEnds - 2));
}
