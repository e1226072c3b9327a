import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { suggest } from "@junctor/core/options";
import { parseConfigFile, readConfigText, type GatewayConfig, parseConfig } from "../../config/index.ts";
import { note, type Parsed, type SharedValues, UsageError } from "../terminal/index.ts";
import { assertAgreed, isAgreed } from "./agreements.ts";
import { checkPlaces, findExposed } from "./config-place.ts";

/** Where a config is looked for when none is named. */
export const usualFiles: readonly string[] = ["junctor.json", ".mcp.json", "mcp.json"];

/** A config, and where it is. */
export interface ConfigFile {
  readonly file: string;
  readonly config: GatewayConfig;
  /** Whether a person said that it may be where others write. */
  readonly isTrusted: boolean;
}

/** Reads the config a command line names. Warnings about it go to standard error. */
export async function readConfigFile(parsed: Parsed<SharedValues<"config">>): Promise<ConfigFile> {
  const file = parsed.flags.config ?? "";
  return toConfigFile(file, readConfigText(file, true), parsed.flags["unsafe-config"]);
}

/**
 * The config a command works on: the one that is named, else the usual one in this folder, once a person agreed to it, else
 * undefined. `mayAsk` is false where the standard input is not the person's.
 */
export async function findConfigFile(
  parsed: Parsed<SharedValues<"config">>,
  mayAsk = true,
): Promise<ConfigFile | undefined> {
  if (parsed.flags.config !== undefined) return readConfigFile(parsed);
  const file = usualFiles.find((name) => existsSync(name));
  if (file === undefined) return undefined;
  // The file is read once, so that the content the person agreed to is the content that is used.
  const text = readConfigText(file);
  // Parsing asks the keychain for the secrets that the config names.
  await assertAgreed({ file, text }, mayAsk);
  return toConfigFile(file, text, parsed.flags["unsafe-config"]);
}

/**
 * Parses a config that was found, without asking the person. Until they agreed to it, no keychain is asked and no file that it names is
 * read, so servers with secrets of the keychain are disabled. Throws a `ConfigError`.
 */
export function parseFoundConfig(file: string): GatewayConfig {
  const text = readConfigText(file);
  if (isAgreed(file, text)) return parseConfigFile(file, text, process.env);
  const folder = dirname(resolve(file));
  return parseConfig(text, { file, env: process.env, folder, readText: () => "" });
}

async function toConfigFile(file: string, text: string, isTrusted: boolean): Promise<ConfigFile> {
  const config = parseConfigFile(file, text, process.env);
  const places = checkPlaces(file, config, isTrusted);
  const odd = [
    ...config.warnings,
    ...findExposed(file, config),
    ...places.map((message) => ({ path: "", message })),
  ];
  for (const { path, message } of odd)
    await note(`junctor: warning: ${[file, path, message].filter(Boolean).join(": ")}\n`);
  return { file, config, isTrusted };
}

/** Refuses a profile that the config does not have. */
export function assertProfile(
  { profiles }: GatewayConfig,
  name: string,
  server: string | undefined,
  file: string | undefined,
): void {
  if (server !== undefined)
    throw new UsageError("--profile is for all servers of a config: leave out the server");
  const names = profiles.map((profile) => profile.name);
  if (names.includes(name)) return;
  const list = names.length === 0 ? "it has none, so leave out --profile" : `there are ${names.join(", ")}`;
  throw new UsageError(
    `${file ?? "the config"} has no profile ${JSON.stringify(name)}; ${suggest(name, names, list)}`,
  );
}
