import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CredentialStore } from "@junctor/client";
import { createMemoryStore } from "@junctor/client/internal";
import { type Clock, sleep, systemClock } from "@junctor/core/async";
import { createPrivateFile, readPrivateFile, stateFolder, writePrivateFile } from "../config/index.ts";

/** Credentials in files that only this user may read, each encrypted by itself. Several processes may use them at once. */
export interface FileStore extends CredentialStore {
  /** All that can be read, by id. */
  all(): ReadonlyMap<string, object>;
  /** Whether the key is the user's own (`JUNCTOR_SECRET`), and not a file beside the credentials. */
  readonly hasOwnKey: boolean;
}

/** Longer records are not ours. */
const maxBytes = 256 * 1024;
const keyBytes = 32;

export function createFileStore(
  options: {
    /** The folder of the files; one of the user's when left out. */
    readonly folder?: string;
    /** Secrets that keys are made of: the first encrypts, all decrypt. Without one a key is kept beside the files. */
    readonly secrets?: readonly string[];
    readonly clock?: Clock;
  } = {},
): FileStore {
  const { folder = join(stateFolder(), "credentials"), secrets = [], clock = systemClock } = options;
  const queue = createMemoryStore();
  let keys: readonly [Buffer, ...Buffer[]] | undefined;
  const readKeys = (): readonly [Buffer, ...Buffer[]] => {
    const [first, ...rest] = secrets.map(deriveKey);
    return first === undefined ? [readKeyFile(folder)] : [first, ...rest];
  };
  const keysOf = (): readonly [Buffer, ...Buffer[]] => (keys ??= readKeys());
  const pathOf = (id: string): string =>
    join(folder, `${createHash("sha256").update(id).digest("hex")}.json`);
  const read = (path: string): { readonly id: string; readonly value: object } | undefined => {
    const text = readPrivateFile(path, maxBytes);
    if (text === undefined) return undefined;
    return keysOf()
      .map((key) => decrypt(text, key))
      .find((found) => found !== undefined);
  };
  return {
    hasOwnKey: secrets.length > 0,
    read: async (id) => {
      const found = read(pathOf(id));
      return found?.id === id ? found.value : undefined;
    },
    write: async (id, value) => writePrivateFile(pathOf(id), encrypt(id, value, keysOf()[0])),
    remove: async (id) => rmSync(pathOf(id), { force: true }),
    alone: (id, work) =>
      queue.alone(id, () => {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        return withLockFile(`${pathOf(id)}.lock`, clock, work);
      }),
    all: () => {
      const found = new Map<string, object>();
      for (const file of filesIn(folder)) {
        const record = read(join(folder, file));
        if (record !== undefined && pathOf(record.id).endsWith(file)) found.set(record.id, record.value);
      }
      return found;
    },
  };
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
  } catch {
    return [];
  }
}

function deriveKey(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "junctor", "credentials of servers", keyBytes));
}

function readKeyFile(folder: string): Buffer {
  const path = join(folder, "key");
  createPrivateFile(path, `${randomBytes(keyBytes).toString("hex")}\n`);
  const text = readPrivateFile(path, 1024)?.trim();
  if (text === undefined || !/^[0-9a-f]{64}$/.test(text))
    throw new Error(`${path} is not a key file of this user: remove it, then log in again`);
  return Buffer.from(text, "hex");
}

/** The id is bound to the record, so that no record can be put in the place of another. */
function encrypt(id: string, value: object, key: Buffer): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(id));
  const data = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
  const parts = [nonce, cipher.getAuthTag(), data].map((part) => part.toString("base64"));
  return `${JSON.stringify({ version: 1, id, sealed: parts.join(".") })}\n`;
}

/** Undefined for a record of another key, or one that was changed. */
function decrypt(text: string, key: Buffer): { readonly id: string; readonly value: object } | undefined {
  try {
    const { id, sealed } = JSON.parse(text) as { readonly id: string; readonly sealed: string };
    const [nonce, tag, data] = sealed.split(".").map((part) => Buffer.from(part, "base64"));
    if (nonce === undefined || tag?.length !== 16 || data === undefined) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", key, nonce);
    decipher.setAAD(Buffer.from(id));
    decipher.setAuthTag(tag);
    const plain = Buffer.concat([decipher.update(data), decipher.final()]).toString("utf8");
    return { id, value: JSON.parse(plain) as object };
  } catch {
    return undefined;
  }
}

/** How often a lock is tried while another process holds it. */
const pollMs = 40;

/** A lock is touched every `signMs`; untouched for `staleMs` means that its process died. */
const signMs = 3000;
const staleMs = 15_000;

/**
 * Runs work while no other process does so under the same path. A lock that its holder left behind when it was killed is taken over after
 * 15 seconds, or at once where its process is gone. Rejects with the system's error when no lock can be written.
 */
async function withLockFile<T>(path: string, clock: Clock, work: () => Promise<T>): Promise<T> {
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
    if ((await readText(path)) === own) await rm(path, { force: true });
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
  const text = await readText(path);
  if (text === undefined || !(await isLeft(path, text, clock))) return;
  const aside = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await rename(path, aside);
    // Another process may have been faster: then this is its lock, and goes back.
    if ((await readText(aside)) !== text) await link(aside, path);
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

function readText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
