import { statSync, type StatsListener, unwatchFile, watch, watchFile } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "../async/clock.ts";

/** How long an editor may take to write a file: several events, often a new file under the old name. */
const settleMs = 100;

/** How often the file is looked at. */
const pollMs = 3000;

/**
 * Calls back once some time after a file was written, until the returned function is called. The folder is watched and not
 * the file, because many editors write another file and move it into place.
 */
export function watchConfig(file: string, onWritten: () => void, clock: Clock = systemClock): () => void {
  const path = resolve(file);
  let stopTimer: (() => void) | undefined;
  /** The state of the file that was last told. */
  let told = stateOf(path);
  const tell = (): void => {
    const state = stateOf(path);
    // The folder and the look at the file both tell of one edit, seconds apart.
    if (state === told) return;
    told = state;
    onWritten();
  };
  const later = (): void => {
    stopTimer?.();
    stopTimer = clock.timer(settleMs, tell);
  };
  const watcher = watch(dirname(path), (_event, name) => {
    if (name !== null && name !== basename(path)) return;
    later();
  });
  watcher.on("error", () => {}); // The folder is gone; what we have stays, and the file is looked at all the same.
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

/** Differs after every edit; undefined while the file cannot be looked at. */
function stateOf(path: string): string | undefined {
  try {
    const { ino, mtimeMs, size } = statSync(path);
    return `${ino} ${mtimeMs} ${size}`;
  } catch {
    return undefined;
  }
}
