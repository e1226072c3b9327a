import { watch } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "../async/clock.ts";

/** How long an editor may take to write a file: several events, often a new file under the old name. */
const settleMs = 100;

/**
 * Calls back some time after a file was written, until the returned function is called. The folder is watched and not the
 * file, because many editors write another file and move it into place.
 */
export function watchConfig(file: string, onWritten: () => void, clock: Clock = systemClock): () => void {
  const path = resolve(file);
  let stopTimer: (() => void) | undefined;
  const watcher = watch(dirname(path), (_event, name) => {
    if (name !== null && name !== basename(path)) return;
    stopTimer?.();
    stopTimer = clock.timer(settleMs, onWritten);
  });
  watcher.on("error", () => {}); // The folder is gone; so is the config, and what we have stays.
  return () => {
    stopTimer?.();
    watcher.close();
  };
}
