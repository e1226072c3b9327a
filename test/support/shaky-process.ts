import type { Clock } from "../../packages/core/src/async/clock.ts";
import { StoreError } from "../../packages/core/src/errors/index.ts";
import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";

/** A process that can be stopped and woken, with a clock that may run fast or slow and a bad way to the store. */
export interface ShakyProcess {
  readonly clock: Clock;
  readonly store: ClusterStore;
  readonly isStopped: boolean;
  /** From now on nothing happens in it, while the time goes by. */
  stop(): void;
  /** What came in meanwhile happens now, in any order. */
  wake(): void;
}

interface Weather {
  readonly random: () => number;
  /** How fast its clock runs; 1 is right. */
  readonly rate: number;
  /** How long a request and an answer may take, each. */
  maxDelayMs: number;
  /** How many of 1 operations fail: before they are done, or after. */
  failures: number;
}

export function createShakyProcess(base: Clock, engine: ClusterStore, weather: Weather): ShakyProcess {
  const { random, rate } = weather;
  let isStopped = false;
  const waiting: (() => void)[] = [];
  const happen = (what: () => void): void => {
    if (isStopped) waiting.push(what);
    else what();
  };
  const clock: Clock = {
    now: () => base.now() * rate,
    date: () => base.date(),
    timer: (ms, callback) => {
      let isOver = false;
      const stop = base.timer(ms / rate, () => happen(() => void (isOver || callback())));
      return () => {
        isOver = true;
        stop();
      };
    },
  };
  const lag = (): Promise<void> =>
    new Promise((resolve) => base.timer(Math.floor(random() * weather.maxDelayMs), resolve));
  const lost = (): StoreError => new StoreError("store.unreachable", "lost on the way");

  const operate = <T>(operation: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const run = async (): Promise<T> => {
        const [failsBefore, failsAfter] = [random() < weather.failures / 2, random() < weather.failures / 2];
        await lag();
        if (failsBefore) throw lost();
        const result = await operation();
        await lag();
        if (failsAfter) throw lost();
        return result;
      };
      run().then(
        (value) => happen(() => resolve(value)),
        (error: unknown) => happen(() => reject(error)),
      );
    });

  return {
    clock,
    store: {
      claim: (...args) => operate(() => engine.claim(...args)),
      renew: (...args) => operate(() => engine.renew(...args)),
      release: (...args) => operate(() => engine.release(...args)),
      read: (...args) => operate(() => engine.read(...args)),
      write: (...args) => operate(() => engine.write(...args)),
      register: (...args) => operate(() => engine.register(...args)),
      unregister: (...args) => operate(() => engine.unregister(...args)),
      take: (...args) => operate(() => engine.take(...args)),
      publish: (...args) => operate(() => engine.publish(...args)),
      onNews: (listener) => engine.onNews((news) => void lag().then(() => happen(() => listener(news)))),
      [Symbol.asyncDispose]: async () => {},
    },
    get isStopped() {
      return isStopped;
    },
    stop: () => {
      isStopped = true;
    },
    wake: () => {
      isStopped = false;
      for (const what of waiting.splice(0).toSorted(() => random() - 0.5)) what();
    },
  };
}
