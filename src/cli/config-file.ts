import { existsSync } from "node:fs";
import type { GatewayConfig } from "../gateway/config/config.ts";
import { readConfig } from "../gateway/config/read-config.ts";
import type { Parsed } from "./command.ts";
import { note } from "./print.ts";
import { UsageError } from "./usage-error.ts";

/** Where a config is looked for when none is named. */
const usualFiles = ["junctor.json", ".mcp.json", "mcp.json"];

/** A config, and where it is. */
export interface ConfigFile {
  readonly file: string;
  readonly config: GatewayConfig;
}

/** Reads the config a command line names. What is odd in it is told on standard error. */
export async function readConfigFile(file: string): Promise<ConfigFile> {
  const config = await readConfig(file, process.env);
  for (const { path, message } of config.warnings)
    await note(`junctor: warning: ${[file, path, message].filter(Boolean).join(": ")}\n`);
  return { file, config };
}

/** The file a command works on: the one that is named, or the usual one in this folder. */
export function findConfigFile(parsed: Parsed): string {
  const file = parsed.valueOf("config") ?? usualFiles.find((name) => existsSync(name));
  if (file !== undefined) return file;
  throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
}
