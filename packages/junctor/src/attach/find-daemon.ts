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
  statSync,
  writeFileSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { BrandedError } from "@junctor/core/errors";
import { type DaemonFacts, greetDaemon, HelloError, type Introduction } from "./hello.ts";

/** A daemon that was started. It ends if it finds that another was faster. */
export interface StartedDaemon {
  readonly pid: number | undefined;
  /** Resolves with the exit code when it ends, or null when a signal ended it. */
  readonly ended: Promise<number | null>;
}

interface FindOptions {
  /** Where the daemon is found now: the folder and its key may be removed and made again at any time. */
  readonly openPlace: () => RunPlace;
  readonly introduction: Introduction;
  readonly env: { readonly [name: string]: string | undefined };
  /** Starts a daemon in a process of its own. */
  readonly start: () => StartedDaemon;
  /** How long a daemon that was started may take to answer; 5 s. */
  readonly patienceMs?: number;
}

/** A daemon that is ready for MCP lines. */
interface FoundDaemon {
  readonly socket: Socket;
  readonly daemon: DaemonFacts;
}

const pauseMs = 15;

/**
 * Joins the daemon. Starts one when no daemon answers, or when the one that runs is older than this build. Rejects with the last reason
 * when no daemon could be joined in time.
 */
export async function findDaemon(options: FindOptions): Promise<FoundDaemon> {
  const { openPlace, introduction, start, patienceMs = 5000 } = options;
  const until = performance.now() + patienceMs;
  let starts = 0;
  let isOurs = false;
  let exit: number | null | undefined;
  let last: unknown = new Error("no daemon answered");
  const startOnce = (place: RunPlace): void => {
    if (isOurs || starts >= maxStarts || isStarting(place)) return;
    starts++;
    isOurs = true;
    noteStart(place, "");
    const started = start();
    if (started.pid !== undefined) noteStart(place, String(started.pid));
    void started.ended.then((code) => {
      // A daemon that was killed says nothing about the next one.
      if (code === null) isOurs = false;
      else exit = code;
    });
  };
  while (performance.now() < until) {
    const place = openPlace();
    try {
      const found = await joinDaemon(place, options);
      const isOlder = compareBuilds(found.daemon.build, introduction.build) < 0;
      // The daemon that was started for the upgrade has ended, so the old one stays.
      if (!isOlder || exit !== undefined) return found;
      found.socket.destroy();
      startOnce(place);
    } catch (error) {
      last = error;
      if (error instanceof HelloError && error.reason === "refused") throw error;
      startOnce(place);
      // A daemon that exits with 0 found another; one that failed would fail again.
      if (exit !== undefined && exit !== 0)
        throw new Error(`the daemon ended with code ${exit}`, { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw last;
}

/** How often a daemon that is killed while it starts is started again. */
const maxStarts = 3;

/** How long fronts wait for a daemon that is starting. */
const startMs = 1500;

const startNote = ({ folder, hash }: RunPlace): string => join(folder, `starting-${hash}`);

/**
 * Whether another front has just started a daemon. All clients lose it at the same time, and a daemon for each of them would only
 * hold up the one that stays. This is a hint and no lock: a note that is left behind is soon too old.
 */
function isStarting(place: RunPlace): boolean {
  const file = startNote(place);
  const noted = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const age = performance.timeOrigin + performance.now() - noted;
  return age >= 0 && age < startMs && isAlive(file);
}

/** Whether the noted process runs, or is not noted yet. */
function isAlive(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, "utf8"));
    return pid === 0 || process.kill(pid, 0);
  } catch {
    return false;
  }
}

function noteStart(place: RunPlace, pid: string): void {
  try {
    writeFileSync(startNote(place), pid, { mode: 0o600 });
  } catch {
    // The folder was removed; the daemon makes it again.
  }
}

/** The daemon listens: when it is lost, the next one is started at once. */
export function forgetStart(place: RunPlace): void {
  rmSync(startNote(place), { force: true });
}

/** Joins the daemon at the socket. Rejects when there is none, or with a `HelloError`. */
export async function joinDaemon(
  place: RunPlace,
  { introduction, env }: Pick<FindOptions, "introduction" | "env">,
): Promise<FoundDaemon> {
  const socket = await reach(place.socket);
  try {
    const { daemon } = await greetDaemon(socket, { key: place.key, introduction, env });
    return { socket, daemon };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Makes a control request to the daemon at the socket. Rejects when there is none, or it does not answer in time. */
export async function askDaemon(
  place: RunPlace,
  introduction: Introduction,
  { env = {}, answerMs }: Partial<Pick<FindOptions, "env">> & { readonly answerMs?: number | undefined } = {},
): Promise<unknown> {
  const socket = await reach(place.socket);
  try {
    return (await greetDaemon(socket, { key: place.key, introduction, env, answerMs })).answer;
  } finally {
    socket.destroy();
  }
}

async function reach(path: string): Promise<Socket> {
  const socket = connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  socket.on("error", () => {}); // Its end is what matters.
  return socket;
}

/** Negative when the first version is older. Only numbers count: `1.2.0-beta` is as old as `1.2.0`. */
export function compareBuilds(one: string, other: string): number {
  const [a, b] = [one, other].map((build) => (build.match(/\d+/g) ?? []).slice(0, 3).map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (a?.[index] ?? 0) - (b?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

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

/** The run folder or its key cannot be trusted. */
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

/** The hash that names the place of a config. */
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
  if (!stats.isDirectory()) throw new RunFolderError(`${folder} is not a folder: remove it`);
  if (stats.uid !== user) throw new RunFolderError(`${folder} belongs to another user: remove it`);
  if ((stats.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/** Of several processes that make the key at once, one succeeds, and the others find the whole of it. */
function readKey(path: string): Buffer {
  for (let attempt = 0; ; attempt++) {
    const found = readIfKey(path);
    if (found !== undefined) return found;
    if (attempt > 2) throw new RunFolderError(`${path} is not a key of this user: remove it`);
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
    throw new RunFolderError(`${path} is not a key of this user: remove it`);
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
