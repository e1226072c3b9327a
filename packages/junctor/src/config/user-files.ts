import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

type Environment = { readonly [name: string]: string | undefined };

/** The folder for files that can be made again, such as remembered lists: `$XDG_CACHE_HOME/junctor` or the like. */
export function cacheFolder(env: Environment = process.env): string {
  return userFolder(env, "XDG_CACHE_HOME", [".cache"], ["Library", "Caches"]);
}

/** The folder for files that must be kept, such as the secret of sessions: `$XDG_STATE_HOME/junctor` or the like. */
export function stateFolder(env: Environment = process.env): string {
  return userFolder(env, "XDG_STATE_HOME", [".local", "state"], ["Library", "Application Support"]);
}

function userFolder(
  env: Environment,
  variable: string,
  linux: readonly string[],
  mac: readonly string[],
): string {
  const named = env[variable];
  // The XDG specification says that relative paths are to be ignored.
  if (named !== undefined && named.startsWith("/")) return join(named, "junctor");
  if (process.platform === "win32")
    return join(env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "junctor");
  const parts = process.platform === "darwin" ? mac : linux;
  return join(homedir(), ...parts, "junctor");
}

/**
 * Writes a file that only this user may read, unless `mode` says otherwise. It is written beside its place and moved there, so
 * a reader never sees half of it and a full disk leaves the old one. Makes the folders it needs. Throws the system's error.
 */
export function writePrivateFile(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    writeFileSync(next, text, { mode, flag: "wx", flush: true });
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

/** The same without holding up this process, for files that are written while calls are served. */
export async function writePrivateFileAsync(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFile(next, text, { mode: 0o600, flag: "wx" });
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}

/**
 * Writes such a file unless there is one; false when there is. Of several processes that do so at once, one succeeds, and the
 * others find the whole of what it wrote. Throws the system's error.
 */
export function createPrivateFile(path: string, text: string): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    writeFileSync(next, text, { mode: 0o600, flag: "wx", flush: true });
    linkSync(next, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(next, { force: true });
  }
}

/**
 * The text of a private file; undefined when there is none. On POSIX systems a file that belongs to another user, or that
 * others may write, counts as missing: its content would be theirs. So does a file over `maxBytes`.
 */
export function readPrivateFile(path: string, maxBytes: number): string | undefined {
  let descriptor: number;
  try {
    // A pipe would keep us waiting for a writer.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
  try {
    const stats = fstatSync(descriptor);
    const { size, mode, uid } = stats;
    if (!stats.isFile()) return undefined;
    const isOurs = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
    return isOurs && size <= maxBytes ? readFileSync(descriptor, "utf8") : undefined;
  } finally {
    closeSync(descriptor);
  }
}
