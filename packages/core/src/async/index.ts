export { andThen, type Awaitable, ending, isPromise, recover, settled, tryThen } from "./awaitable.ts";
export { type Backoff, createBackoff, LeakyBucket, LeakyBuckets, Repeats } from "./pacing.ts";
export {
  type Cancellation,
  fromSignal,
  Deadline,
  Deadlines,
  type TimeLimits,
  LazyAbort,
} from "./deadline.ts";
export {
  awakeTimer,
  type Clock,
  dateOf,
  sleep,
  systemClock,
  timedOut,
  waitFor,
  cpuMsSince,
  cpuTime,
  createSlices,
} from "./clock.ts";
export { ClosingSet, Numbered, setNewest } from "./collections.ts";
export { createDeferred, type Deferred, BoundedQueue } from "./queue.ts";
export { type CallerLimits, Quota } from "./quota.ts";
