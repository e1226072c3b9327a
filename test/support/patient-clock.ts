import { type Clock, systemClock } from "../../packages/core/src/async/clock.ts";

const longMs = 1000;
const patience = 20;

/** The time of this machine, on which time limits take twenty times as long: however busy it is, nothing comes too late. */
export const patientClock: Clock = {
  now: systemClock.now,
  date: systemClock.date,
  timer: (ms, callback) => systemClock.timer(ms < longMs ? ms : patience * ms, callback),
};
