import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { BrandedError } from "@junctor/core/errors";

/** Where the daemon of one config is found. */
export interface RunPlace {
  readonly folder: string;
  /** The path of the socket, or the name of the pipe on Windows. */
  readonly socket: string;
  /** Differs for each config file. */
  readonly hash: string;
  readonly key: Buffer;
}

/** The folder of this user's config, launcher and backups. */
export function homeFolder(): string {
  return join(homedir(), ".junctor");
}

/** The config that is used when none is named. */
export function userConfig(): string {
  return join(homeFolder(), "junctor.json");
}

/** A folder or key at which no daemon can be met safely. */
class RunFolderError extends BrandedError {
  protected static override readonly brand = "RunFolderError";

  override readonly name = "RunFolderError";
  readonly code = "cli.run_folder";
}

/** The system refuses longer paths of sockets: 108 bytes on Linux, 104 on macOS, our longest name included. */
const maxFolderBytes = 70;

/**
 * The place of the daemon for a config. Makes the folder and the key if there are none. Throws an error that says what to do
 * when others may enter the folder: they could take the daemon's place.
 */
export function openRunPlace(config: string, env: NodeJS.ProcessEnv = process.env): RunPlace {
  const hash = placeHash(config);
  const folder = runFolder(env);
  if (isTooLong(folder))
    throw new RunFolderError(`${folder} is too long for a socket: set XDG_RUNTIME_DIR to a shorter folder`);
  const key = openKey(folder);
  const socket =
    process.platform === "win32"
      ? `\\\\.\\pipe\\junctor-${hashOfUser()}-${hash}`
      : join(folder, `d-${hash}.sock`);
  return { folder, socket, hash, key };
}

/** Which of the places is that of a config. */
export function placeHash(config: string): string {
  return createHash("sha256").update(toRealPath(config)).digest("hex").slice(0, 12);
}

/** The places at which daemons of this user may listen, whatever their configs. Makes nothing. */
export function listRunPlaces(env: NodeJS.ProcessEnv = process.env): readonly RunPlace[] {
  const folder = runFolder(env);
  if (isTooLong(folder)) return [];
  const key = readIfKey(join(folder, "key"));
  if (key === undefined || process.platform === "win32") return [];
  return readdirSync(folder).flatMap((name) => {
    const [, hash] = /^d-([0-9a-f]{12})\.sock$/.exec(name) ?? [];
    return hash === undefined ? [] : [{ folder, socket: join(folder, name), hash, key }];
  });
}

/** `$XDG_RUNTIME_DIR/junctor`, which the system removes when the user logs out, or `~/.junctor/run`. */
function runFolder(env: NodeJS.ProcessEnv = process.env): string {
  const named = env["XDG_RUNTIME_DIR"];
  return named !== undefined && named.startsWith("/") ? join(named, "junctor") : join(homeFolder(), "run");
}

function isTooLong(folder: string): boolean {
  return Buffer.byteLength(folder) > maxFolderBytes;
}

/** Makes the folder and its key, if they are missing. A folder that is removed meanwhile is made again, within reason. */
function openKey(folder: string): Buffer {
  for (let attempt = 0; ; attempt++) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if (process.getuid !== undefined) assertOurs(folder, process.getuid());
      return readKey(join(folder, "key"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt > 2) throw error;
    }
  }
}

function assertOurs(folder: string, user: number): void {
  const stats = lstatSync(folder);
  if (!stats.isDirectory()) throw new RunFolderError(`${folder} is no folder: remove it`);
  if (stats.uid !== user) throw new RunFolderError(`${folder} belongs to another user: remove it`);
  if ((stats.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/** Of several processes that make the key at once, one succeeds, and the others find the whole of it. */
function readKey(path: string): Buffer {
  for (let attempt = 0; ; attempt++) {
    const found = readIfKey(path);
    if (found !== undefined) return found;
    if (attempt > 2) throw new RunFolderError(`${path} is no key of this user: remove it`);
    const next = `${path}.${randomBytes(6).toString("hex")}`;
    try {
      writeFileSync(next, randomBytes(32), { mode: 0o600, flag: "wx" });
      linkSync(next, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      rmSync(next, { force: true });
    }
  }
}

function readIfKey(path: string): Buffer | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const isOurs =
    process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o077) === 0);
  if (!stats.isFile() || !isOurs || stats.size !== 32)
    throw new RunFolderError(`${path} is no key of this user: remove it`);
  return readFileSync(path);
}

function hashOfUser(): string {
  return createHash("sha256").update(homedir()).digest("hex").slice(0, 12);
}

function toRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
}
