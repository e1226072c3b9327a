import { setImmediate } from "node:timers/promises";

/** Whether a promise settles within a few turns of the event loop, so that it cannot have waited for a timer or a process. */
export async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  const turns = async (): Promise<boolean> => {
    for (let turn = 0; turn < 20; turn++) await setImmediate();
    return false;
  };
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, turns()]);
}
