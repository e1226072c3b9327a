import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../../errors/config-error.ts";
import { findSandboxProblem } from "../sandbox.ts";
import type { GatewayConfig } from "./config.ts";
import type { ConfigSource } from "./expand.ts";
import { parseConfig } from "./parse-config.ts";

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
  return parseConfigFile(file, readConfigText(file), env);
}

/** Parses the text of a config file that was read before. Throws a `ConfigError` with everything that is wrong in it. */
export function parseConfigFile(
  file: string,
  text: string,
  env: { readonly [name: string]: string | undefined },
): GatewayConfig {
  return parseConfig(text, { file, env, folder: dirname(resolve(file)), ...sourceOfFiles });
}

/** What a config on this machine is read with. */
export const sourceOfFiles: Pick<ConfigSource, "readText" | "findSandboxProblem"> = {
  readText: readSmallFile,
  findSandboxProblem,
};

/** The text of a config file. Throws a `ConfigError` when it cannot be read. */
export function readConfigText(file: string): string {
  try {
    return readSmallFile(resolve(file));
  } catch (error) {
    throw new ConfigError(file, [{ path: "", message: explain(error) }], { cause: error });
  }
}

/**
 * The text of a file of up to 1 MiB, or `limit`, in UTF-8. Throws the system's error, or a `RangeError` when it is
 * larger.
 */
export function readSmallFile(path: string, limit: number = maxBytes): string {
  const descriptor = openSync(path, "r");
  try {
    // A pipe or a device says 0, and is read as it comes.
    if (fstatSync(descriptor).size > limit) throw new RangeError("The file is too large.");
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

function explain(error: unknown): string {
  if (error instanceof RangeError) return "is larger than 1 MiB: is it a config?";
  const { code = "", message } = error as NodeJS.ErrnoException;
  return explanations[code] ?? `cannot be read (${code || message}): name another file`;
}

const explanations: { readonly [code: string]: string } = {
  ENOENT: "does not exist: create it, or name another file",
  ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8: save it in that encoding",
  EISDIR: "is a folder: name the file in it",
  EACCES: "may not be read by this user: change its permissions",
  EPERM: "may not be read by this user: change its permissions",
};
