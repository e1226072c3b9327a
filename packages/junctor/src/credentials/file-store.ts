import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { CredentialStore } from "@junctor/client";
import { createMemoryStore } from "@junctor/client/internal";
import { type Clock, systemClock } from "@junctor/core/async";
import { createPrivateFile, readPrivateFile, stateFolder, writePrivateFile } from "../config/index.ts";
import { withLockFile } from "./lock-file.ts";

/** Credentials in files that only this user may read, each encrypted by itself. Several processes may use them at once. */
export interface FileStore extends CredentialStore {
  /** All that can be read, by id. */
  all(): ReadonlyMap<string, object>;
  /** Whether the key is the user's own (`JUNCTOR_SECRET`), and not a file beside the credentials. */
  readonly hasOwnKey: boolean;
}

interface FileStoreOptions {
  /** The folder of the files; one of the user's when left out. */
  readonly folder?: string;
  /** Secrets that keys are made of: the first encrypts, all decrypt. Without one a key is kept beside the files. */
  readonly secrets?: readonly string[];
  readonly clock?: Clock;
}

/** Longer records are none of ours. */
const maxBytes = 256 * 1024;
const keyBytes = 32;

export function createFileStore(options: FileStoreOptions = {}): FileStore {
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
