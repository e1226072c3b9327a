import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { type Clock, sleep } from "@junctor/core/async";

/** How often it is tried again while another process holds a lock. */
const pollMs = 40;

/** A lock is touched every `signMs`; untouched for `staleMs` means that its process died. */
const signMs = 3000;
const staleMs = 15_000;

/**
 * Runs work while no other process does so under the same path. A lock that its holder left behind when it was killed is taken over after
 * 15 seconds, or at once where its process is gone. Rejects with the system's error when no lock can be written.
 */
export async function withLockFile<T>(path: string, clock: Clock, work: () => Promise<T>): Promise<T> {
  const own = `${process.pid} ${randomBytes(9).toString("base64url")}`;
  while (!(await create(path, own))) {
    await takeOver(path, clock);
    await sleep(pollMs, clock);
  }
  let stopSign = (): void => {};
  const sign = (): void => {
    stopSign = clock.timer(signMs, () => {
      const now = clock.date() / 1000;
      utimes(path, now, now).then(sign, sign);
    });
  };
  sign();
  try {
    return await work();
  } finally {
    stopSign();
    if ((await read(path)) === own) await rm(path, { force: true });
  }
}

async function create(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes the lock of a holder that is gone. */
async function takeOver(path: string, clock: Clock): Promise<void> {
  const text = await read(path);
  if (text === undefined || !(await isLeft(path, text, clock))) return;
  const aside = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await rename(path, aside);
    // Another process may have been faster: then this is its lock, and goes back.
    if ((await read(aside)) !== text) await link(aside, path);
  } catch {
    // It is gone, or there is a newer one.
  } finally {
    await rm(aside, { force: true });
  }
}

async function isLeft(path: string, text: string, clock: Clock): Promise<boolean> {
  const pid = Number.parseInt(text, 10);
  const modified = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => clock.date(),
  );
  if (clock.date() - modified > staleMs) return true;
  // An empty file is one that is being written.
  return Number.isInteger(pid) && pid !== process.pid && !isRunning(pid);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function read(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
