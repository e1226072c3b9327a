import { type StatsListener, unwatchFile, watch, watchFile } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "@junctor/core/async";

/** How long an editor may take to write a file: several events, often a new file under the old name. */
const settleMs = 100;

/** How often the file is looked at. */
const pollMs = 3000;

/**
 * Calls back some time after a file was written, until the returned function is called. The folder is watched and not the
 * file, because many editors write another file and move it into place.
 */
export function watchConfig(file: string, onWritten: () => void, clock: Clock = systemClock): () => void {
  const path = resolve(file);
  let stopTimer: (() => void) | undefined;
  const later = (): void => {
    stopTimer?.();
    stopTimer = clock.timer(settleMs, onWritten);
  };
  const watcher = watch(dirname(path), (_event, name) => {
    if (name !== null && name !== basename(path)) return;
    later();
  });
  watcher.on("error", () => {}); // The folder is gone; the config stays as it is, and the file is still polled.
  // Symbolic links that are changed elsewhere, and folders that are made anew, tell no watcher.
  const onStat: StatsListener = (now, before) => {
    if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino) later();
  };
  watchFile(path, { interval: pollMs, persistent: false }, onStat);
  return () => {
    stopTimer?.();
    watcher.close();
    unwatchFile(path, onStat);
  };
}
