import { resolve } from "node:path";
import { isLoopback } from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import { isOpen, type GatewayConfig, parseConfigValue } from "../../config/index.ts";
import { assertProfile, type ConfigFile, findConfigFile } from "../config/index.ts";
import { type Parsed, UsageError, parsePort, refuseOperands } from "../terminal/index.ts";
import { type ReloadChoice, reloadChoices } from "./follow-config.ts";

/** What `junctor serve` is to serve, and how: the command line and the config, checked. Plain data. */
export interface ServePlan {
  /** Undefined for the demo. */
  readonly opened: ConfigFile | undefined;
  /** That of the file, or the one that holds without a file. */
  readonly config: GatewayConfig;
  /** The path of the config, or `demo`: tokens of one do not open at another. */
  readonly served: string;
  readonly transport: "http" | "stdio" | "tcp";
  readonly host: string;
  readonly port: number;
  /** The profile that is served alone. */
  readonly profile: string | undefined;
  readonly choice: ReloadChoice;
  readonly level: string;
  /** Whether the command line says the level, whatever the config says now or later. */
  readonly isLevelGiven: boolean;
}

/** Reads the command line and the config. Asks a person about a config that was found. Throws `UsageError` and `BindError`. */
export async function readServePlan(parsed: Parsed): Promise<ServePlan> {
  assertSensible(parsed);
  const opened = await findConfigFile(parsed, !parsed.has("stdio"));
  const config = opened?.config ?? noConfig;
  const host = parsed.valueOf("host") ?? config.http.host ?? "127.0.0.1";
  assertKeys(host, config, parsed);
  const profile = parsed.valueOf("profile");
  if (profile !== undefined) assertProfile(config, profile, undefined, opened?.file);
  const tcp = parsed.valueOf("tcp");
  const port =
    tcp === undefined
      ? parsePort("port", parsed.valueOf("port") ?? String(config.http.port ?? 7780))
      : parsePort("tcp", tcp);
  return {
    opened,
    config,
    served: opened === undefined ? "demo" : resolve(opened.file),
    transport: parsed.has("stdio") ? "stdio" : tcp === undefined ? "http" : "tcp",
    host,
    port,
    profile,
    choice: reloadChoiceOf(parsed),
    level: levelOf(parsed, opened),
    isLevelGiven: parsed.valueOf("log-level") !== undefined,
  };
}

function assertSensible(parsed: Parsed): void {
  refuseOperands("serve", parsed);
  const transports = [
    parsed.has("stdio") ? "--stdio" : undefined,
    parsed.valueOf("tcp") === undefined ? undefined : "--tcp",
    parsed.valueOf("port") === undefined ? undefined : "--port",
  ].filter((flag) => flag !== undefined);
  if (transports.length > 1) throw new UsageError(`choose one of ${transports.join(" and ")}`);
  if (parsed.has("stdio") && parsed.has("host"))
    throw new UsageError("--stdio listens on no address; leave out --host");
}

const levels = ["trace", "debug", "info", "warn", "error", "silent"];

function levelOf(parsed: Parsed, opened: ConfigFile | undefined): string {
  // The demo has nothing to tell but what its greeting says.
  const usual = opened?.config.log.level ?? "warn";
  const level = parsed.valueOf("log-level") ?? usual;
  if (!levels.includes(level))
    throw new UsageError(`--log-level needs one of ${levels.join(", ")}, not ${JSON.stringify(level)}`);
  return level;
}

function reloadChoiceOf(parsed: Parsed): ReloadChoice {
  const value = parsed.valueOf("reload") ?? "safe";
  const choice = reloadChoices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw new UsageError(`--reload needs one of ${reloadChoices.join(", ")}, not ${JSON.stringify(value)}`);
}

/** Others may reach an address that is not this machine's own, so they must be known. */
function assertKeys(host: string, config: GatewayConfig, parsed: Parsed): void {
  if (parsed.has("stdio") || isLoopback(host)) return;
  if (parsed.has("tcp")) throw new BindError(host, "there are no keys on a TCP port");
  if (!isOpen(config)) return;
  throw new BindError(
    host,
    'the config has neither keys nor issuers: write "junctor": { "keys": { "NAME": { "env": "VARIABLE" } } }',
  );
}

/** What holds when there is no config. */
const noConfig: GatewayConfig = parseConfigValue({ junctor: {} }, { file: "no config", env: {} });
