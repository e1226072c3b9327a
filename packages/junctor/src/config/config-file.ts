import { Buffer } from "node:buffer";
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  type StatsListener,
  unwatchFile,
  watch,
  watchFile,
} from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "@junctor/core/async";
import { ConfigError } from "@junctor/core/errors";
import type { GatewayConfig } from "./config.ts";
import { type ConfigSource, readKeychain } from "./expand.ts";
import { parseConfig } from "./parse-config.ts";
import { findSandboxProblem } from "./sandbox.ts";

const maxBytes = 1024 * 1024;

/**
 * Reads and parses a config file, and the `envFile`s it names. Rejects with a `ConfigError` when it cannot be read, or
 * with everything that is wrong in it. Relative paths in it are resolved against its folder.
 *
 * @example
 * const config = await readConfig("mcp.json", process.env);
 */
export async function readConfig(
  file: string,
  env: { readonly [name: string]: string | undefined },
): Promise<GatewayConfig> {
  return parseConfigFile(file, readConfigText(file, true), env);
}

/** Parses the text of a config file that was read before. Throws a `ConfigError` with everything that is wrong in it. */
export function parseConfigFile(
  file: string,
  text: string,
  env: { readonly [name: string]: string | undefined },
  workspace?: string | false,
): GatewayConfig {
  if (/\.(ya?ml|toml)$/i.test(file) && !/^\s*\{/.test(text)) {
    const message = 'is not JSON: write the config as { "mcpServers": { … } }, in a file such as mcp.json';
    throw new ConfigError(file, [{ path: "", message }]);
  }
  return parseConfig(text, { file, env, folder: dirname(resolve(file)), workspace, ...sourceOfFiles });
}

/** How a config reads other files and secrets of this machine, and finds out about sandboxes. */
export const sourceOfFiles: Pick<ConfigSource, "readText" | "readSecret" | "findSandboxProblem"> = {
  readText: (path) => readSmallFile(path),
  readSecret: readKeychain,
  findSandboxProblem,
};

/** The text of a config file; at the start it may be a pipe. Throws a `ConfigError` when it cannot be read. */
export function readConfigText(file: string, mayBePipe = false): string {
  try {
    return readSmallFile(resolve(file), maxBytes, mayBePipe);
  } catch (error) {
    throw new ConfigError(file, [{ path: "", message: explain(error, file) }], { cause: error });
  }
}

/**
 * The text of a file of up to 1 MiB, or `limit`, in UTF-8. Throws the system's error, or a `RangeError` when it is
 * larger. A pipe or device, which could keep this process waiting, is refused unless `mayBePipe`.
 */
export function readSmallFile(path: string, limit: number = maxBytes, mayBePipe = false): string {
  const { O_RDONLY, O_NONBLOCK } = constants;
  const descriptor = openSync(path, mayBePipe ? O_RDONLY : O_RDONLY | O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw Object.assign(new Error("It is a folder."), { code: "EISDIR" });
    if (!mayBePipe && !stats.isFile())
      throw Object.assign(new Error("It is not a file."), { code: "no file" });
    if (stats.size > limit) throw new RangeError("The file is too large.");
    return new TextDecoder("utf-8", { fatal: true }).decode(readUpTo(descriptor, limit));
  } finally {
    closeSync(descriptor);
  }
}

/** Some files have no end, and no size either. */
function readUpTo(descriptor: number, limit: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let size = 0; ;) {
    const piece = Buffer.allocUnsafe(64 * 1024);
    const read = readSync(descriptor, piece);
    if (read === 0) return Buffer.concat(pieces);
    pieces.push(piece.subarray(0, read));
    size += read;
    if (size > limit) throw new RangeError("The file is too large.");
  }
}

function explain(error: unknown, file: string): string {
  if (error instanceof RangeError) return "is larger than 1 MiB: is it a config?";
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" && file.startsWith("~"))
    return "does not exist: the shell fills in ~ only without quotes; write the whole path";
  return explanations[code] ?? `cannot be read (${code || message}): name another file`;
}

const explanations: { readonly [code: string]: string } = {
  ENOENT: "does not exist: create it, or name another file",
  ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8: save it in that encoding",
  "no file": "is not a file any more: restore it",
  EISDIR: "is a folder: name the file in it",
  EACCES: "may not be read by this user: chmod u+r makes its owner a reader, or name another file",
  EPERM: "may not be read by this user: chmod u+r makes its owner a reader, or name another file",
};

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
  // The watcher misses changes behind symbolic links, and folders that are made again.
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
